"""Search by likeness beside other software: how much is found, how fast, and at what cost.

measure.py  a task -> the figures of its row      rows.py     rows and queries, in blocks
race.py     all engines in turns                  engines.py  ours and the peers
child.py    an engine in a process of its own     inserts.py  inserts beside searches
"""
