"""One SQLite file that holds parts: named, numbered, checksummed blobs of arrays.

Beside them it may hold many small blobs, each with a number and a checksum, that are not listed in
memory. The store does not know what any of them means; see `everhash.collection`.
"""
