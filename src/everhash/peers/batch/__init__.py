"""Methods that need all their rows at once, one file each."""
