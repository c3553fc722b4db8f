"""Learning the mapping. Start with `hasher`: it is the paper."""
