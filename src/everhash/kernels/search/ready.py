"""The compiled search kernels that the rest of everhash may call; see `kernels.load_search`."""

from __future__ import annotations

from everhash.kernels.search.grouping import lay_out, shell_keys, sort_columns
from everhash.kernels.search.labels import copy_postings, find_posting, insert_postings
from everhash.kernels.search.lists import search_codewords, search_lists
from everhash.kernels.search.margins import scores_at, search_scores, within_scores
from everhash.kernels.search.planes import QUERIES, TILE, search_planes
from everhash.kernels.search.shells import hamming_at, search_shells, within_shells
from everhash.kernels.search.topk import NOBODY

__all__ = [
    "NOBODY",
    "QUERIES",
    "TILE",
    "copy_postings",
    "find_posting",
    "hamming_at",
    "insert_postings",
    "lay_out",
    "scores_at",
    "search_codewords",
    "search_lists",
    "search_planes",
    "search_scores",
    "search_shells",
    "shell_keys",
    "sort_columns",
    "within_scores",
    "within_shells",
]
