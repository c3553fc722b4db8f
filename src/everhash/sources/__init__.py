"""Where rows come from: files, arrays, data frames, loaders; all of them read batch by batch.

    .npy                      a 2-d array of features, memory-mapped
    .npz                      arrays by name: X, and where they are there y and ids
    .parquet .arrow .feather  columns by name
    .csv                      columns by the names in the first line
    arrays                    X, (X, y) or (X, y, ids)
    tables                    pyarrow, pandas, polars: whatever hands out Arrow data
    iterables                 of batches or of rows: a torch DataLoader, a Hugging Face dataset

Memory does not grow with the source. Nothing in a file is run or unpickled, and what a header
claims is held against the size of the file before anything is allocated for it.

    reading.py  finds the reader of a source; calls all of these
    npy.py      NumPy's files, out of stored.py: one array, a few rows at a time
    csvs.py     CSVs
    items.py    iterables
    tables.py   Parquet, Arrow, data frames
    arrays.py   what is in memory
    carried.py  payloads out of columns
    columns.py  which columns are meant, and where a fault is; called by all
    batch.py    what all of them give
"""

from everhash.sources.batch import Batch
from everhash.sources.reading import count_rows, read

__all__ = ["Batch", "count_rows", "read"]
