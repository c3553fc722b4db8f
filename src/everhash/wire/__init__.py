"""What a service, its client and the index share: one place for each rule and each format.

options.py   checks of k, distance and radius
ids.py       what an id is
labels.py    labels as JSON
"""
