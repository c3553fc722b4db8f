"""One SQLite file that holds parts: named, numbered, checksummed blobs of arrays.

What the parts mean is none of the store's business; see `everhash.collection`.
"""
