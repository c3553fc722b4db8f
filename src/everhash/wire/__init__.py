"""What a service, its client and the index share: one place for each rule and each format.

routes.py         every route of the service, in one table
examples.py       a request and its answer for each of them
options.py        checks of k, of the way of searching, and of the radius
ids.py            what an id is
labels.py         labels as JSON
matches.py        matches as JSON
match_tables.py   matches as an Arrow table
arrow.py          rows as an Arrow stream
values.py         values of an answer, checked
media.py          media types
"""
