"""A collection: a hasher, an index of what it hashed, and a file that keeps both."""
