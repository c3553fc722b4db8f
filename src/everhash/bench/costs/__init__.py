"""Times: how they grow, and how they compare with peers in the same run."""
