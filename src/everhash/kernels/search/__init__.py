"""Exact search over packed binary words: Numba kernels, arrays in, arrays out.

    topk.py       intrinsics, the layout of a candidate, the k smallest by counting
    scan.py       words of a contiguous range, for one query
    planes.py     all words, for a batch of queries, as tiles of bit planes
    grouping.py   building a segment: words in order of their shells, equal ones together
    shells.py     words grouped by nearest codeword; a query looks at few shells (Hamming)
    scores.py     asymmetric distance: byte tables, exact bounds for the shells
    margins.py    the searches by asymmetric distance, pruned or not
    labels.py     posting lists: entries known by their label only, and how they are kept
    lists.py      the search in them
    reference.py  the specification of all of it, in NumPy
    ready.py      the kernels the rest of everhash may call; get it by `kernels.load_search()`

Every result is ordered by (distance, place), where the place is the order of insertion.
"""
