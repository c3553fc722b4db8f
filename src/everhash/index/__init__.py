"""Entries and exact search over them.

An entry is known by its place, its number in order of arrival. With a label it is found by the
label's codeword and keeps no code. Without one, or if the method has no codewords, it keeps bits of
its own: it is a coded entry. Results are ordered by distance, ties by place.

    index.py        Index: search, refresh, stats       stored.py     add, label, remove, get, page
    hasher.py       the protocol that Index asks of a hasher
    ids.py          id <-> place                        labels.py     place -> labels
    postings.py     label -> places                     features.py   place -> stored features
    coded.py        coded entries under one mapping     code_table.py their columns
    encoding.py     rows -> homes, bits, certificates   refresh.py    stale bits -> bits up to date
    queries.py      encoded queries                     entry_query.py  entries as queries
    ranking.py      one ranking over both kinds         explain.py    why an entry matched
    code_search.py  coded entries in two segments       segment.py    exact search in fixed words
    records.py      an index as columns, for files      triggers.py   when to refresh
    entries.py      what `get` and `page` return        arrays.py     array types
"""
