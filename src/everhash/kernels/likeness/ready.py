"""The compiled likeness kernels that the rest of everhash may call; see `load_likeness`."""

from __future__ import annotations

from everhash.kernels.likeness.encoding import encode, encode_queries
from everhash.kernels.likeness.estimates import above_likeness, estimates_at, nearest_likeness
from everhash.kernels.likeness.meaning import search_meaning

__all__ = [
    "above_likeness",
    "encode",
    "encode_queries",
    "estimates_at",
    "nearest_likeness",
    "search_meaning",
]
