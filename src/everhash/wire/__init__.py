"""What a service, its client and the index share: one place for each rule and each format.

routes.py    every route of the service, in one table
options.py   checks of k, distance and radius
ids.py       what an id is
labels.py    labels as JSON
matches.py   matches as JSON or as an Arrow table
arrow.py     rows as an Arrow stream
values.py    values of an answer, checked
media.py     media types
"""
