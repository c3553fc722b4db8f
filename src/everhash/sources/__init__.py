"""Readers of rows from files, arrays, data frames and iterables, all batch by batch.

    .npy                      a 2-d array of features, memory-mapped
    .npz                      arrays by name: X, and optionally y and ids
    .parquet .arrow .feather  columns by name
    .csv                      columns by the names in the first line
    arrays                    X, (X, y) or (X, y, ids)
    tables                    pyarrow, pandas, polars: any object that exports Arrow data
    iterables                 of batches or of rows: a torch DataLoader, a Hugging Face dataset

Memory does not grow with the source. Nothing in a file is run or unpickled, and the size that a
header claims is compared with the size of the file before anything is allocated for it.

    reading.py         picks the reader for a source, and cuts batches to size
    npy.py             .npy and .npz files
    npy_header.py      the checked header of one .npy array, and its rows a few at a time
    csvs.py            CSV files
    tables.py          Parquet, Arrow, data frames
    items.py           iterables of batches or of rows
    arrays.py          arrays in memory
    payload_values.py  JSON payloads from the values of columns
    columns.py         which columns to read, and where an error is; used by all
    batch.py           the type that all of them return
"""

from everhash.sources.batch import Batch
from everhash.sources.reading import count_rows, read

__all__ = ["Batch", "count_rows", "read"]
