"""Methods that learn from a stream, one file each."""
