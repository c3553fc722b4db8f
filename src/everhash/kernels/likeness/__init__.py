"""Likeness codes: one sign bit a dimension, and the searches that estimate cosines from them.

    encoding.py   codes of entries and of queries
    cosines.py    cosines of queries and features
    cell_lists.py entries listed by cell
    cells.py      the search of the cells that are nearest to a query
    estimates.py  estimated cosines, and the searches of all entries by them
    order.py      labels by the best score their entries can have
    best.py       the k best entries by score, likeness and place
    meaning.py    the search by probability of having the query's label, then by likeness
    reference.py  the specification of all of it, in NumPy
    ready.py      the kernels the rest of everhash may call; get it by `kernels.load_likeness()`

An entry is x / |x| = along c + |x_perp| o, for a fixed unit direction c and o a unit row across it.
Its code is the signs of R o, R a random rotation, and two floats: along, and scale = |x_perp| / f,
f the sum of sizes of R o. A query's part across c is turned too, and rounded to 8 bits a
coordinate. Its product with the signs is a whole number T, so that the estimate

    cos(q, x) = q_along * along + (step * T) * scale

is the same float32 on every path. It has no bias: RaBitQ (Gao and Long, SIGMOD 2024).
"""
