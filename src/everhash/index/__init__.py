"""Entries and exact search over them: arrays and places only; no hasher, no ids, no files.

    segment.py   words, as unlabelled entries have: immutable, built at once
    postings.py  entries known by their label: lists that grow and shrink

A place is an entry's number in order of insertion. Results are ordered by (distance, place).
"""
