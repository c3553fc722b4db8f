"""Benchmarks: data, protocols, runs and reports."""
