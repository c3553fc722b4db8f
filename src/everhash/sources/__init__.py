"""Readers of rows from files, arrays, data frames and iterables, all batch by batch.

    .npy                      a 2-d array of features, memory-mapped
    .npz                      arrays by name: X, and optionally y, ids and payloads
    .parquet .arrow .feather  columns by name
    .csv                      columns by the names in the first line
    .jsonl .ndjson            an object a line, whose keys are the columns
    patterns                  such as data/*.parquet: all files that match, sorted
    arrays                    X, (X, y) or (X, y, ids)
    mappings                  {"X": X, "y": y}, with ids, payloads and thumbnails too, or columns
    tables                    pyarrow, pandas, polars: any object that exports Arrow data
    iterables                 of batches or of rows: a torch DataLoader, a Hugging Face dataset

Memory does not grow with the source. Nothing in a file is run or unpickled, and the size that a
header claims is compared with the size of the file before anything is allocated for it.

    reading.py         picks the reader for a source, and cuts batches to size
    npy.py             .npy and .npz files
    npy_header.py      the checked header of one .npy array, and its rows a few at a time
    csvs.py            CSV files
    jsonl.py           JSON lines
    json_values.py     labels, ids and pictures from JSON values
    tables.py          Parquet, Arrow, data frames
    table_slices.py    what is in some rows of a table
    items.py           iterables of batches or of rows
    arrays.py          arrays in memory
    payload_values.py  JSON payloads from the values of columns
    columns.py         which columns to read, by name or found, and where an error is; used by all
    batch.py           the type that all of them return
"""

from everhash.sources.batch import Batch
from everhash.sources.columns import Taken
from everhash.sources.reading import count_rows, expand, infer, read

__all__ = ["Batch", "Taken", "count_rows", "expand", "infer", "read"]
