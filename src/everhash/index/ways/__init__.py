"""The ways of searching by name.

A new one is a file here with a `Way`, and a line below; docs/architecture.md says what else.
"""

from __future__ import annotations

from everhash.index.ways.codes import ByAsymmetric, ByHamming
from everhash.index.ways.likeness import ByLikeness
from everhash.index.ways.meaning import ByMeaning
from everhash.index.ways.query import Query
from everhash.index.ways.relevance import ByRelevance
from everhash.index.ways.way import Way

WAYS = {way.name: way for way in (ByRelevance, ByMeaning, ByLikeness, ByAsymmetric, ByHamming)}


def prepare(by: str, query: Query) -> Way:
    """Return the way of searching for a batch of queries."""
    way: Way = WAYS[by](query)
    return way
