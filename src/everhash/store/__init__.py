"""One SQLite file that holds parts: named, numbered, checksummed blobs of arrays.

Beside them it may hold many small blobs, each with a number and a checksum, that nobody lists.
What all of these mean is none of the store's business; see `everhash.collection`.
"""
