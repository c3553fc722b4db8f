"""What things cost: how it grows, and how it compares with others in the same run."""
