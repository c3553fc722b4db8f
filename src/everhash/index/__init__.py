"""Entries and exact search over them.

An entry is known by its place, its number in order of arrival. With a label it is found by the
label. Without one it keeps bits of its own, by which it is taken for a label: it is a coded entry.
Every entry may have a likeness code, which tells entries of a label apart.

An `Index` has five parts, each a subclass of the one before:

    state.py        what it holds                       stored.py     add, label, replace, remove
    reading.py      get, page, columns, groups          export.py     out to columns, and back
    index.py        search, refresh, stats

The entries:

    columns.py      the list of columns, and the table  ids.py        id <-> place
    labels.py       place -> labels                     postings.py   label -> places
    features.py     place -> stored features            likeness.py   rows -> likeness codes
    entries.py      what `get` and `page` return

Their codes:

    coded.py        coded entries under one mapping     code_table.py their columns
    encoding.py     rows -> homes, bits, certificates   guesses.py    bits -> the nearest label
    refresh.py      stale bits -> bits up to date       triggers.py   when to refresh
    code_search.py  coded entries in two segments       segment.py    exact search in fixed words
    codewords.py    the labels' words and names         hasher.py     what an index asks of a hasher

Searching:

    ways/           one file a way of searching         queries.py    queries as margins of codes
    entry_query.py  entries as queries                  explain.py    why an entry matched
"""
