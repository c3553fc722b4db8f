"""The compiled likeness kernels that the rest of everhash may call; see `load_likeness`."""

from __future__ import annotations

from typing import Any

from everhash.kernels import compiling
from everhash.kernels.likeness.encoding import encode, encode_queries
from everhash.kernels.likeness.estimates import above_likeness, estimates_at, nearest_likeness
from everhash.kernels.likeness.meaning import search_meaning

__all__ = [
    "KERNELS",
    "SECONDS",
    "above_likeness",
    "encode",
    "encode_queries",
    "estimates_at",
    "nearest_likeness",
    "search_meaning",
]

KERNELS: dict[str, Any] = {
    kernel.__name__: kernel
    for kernel in (
        encode,
        encode_queries,
        estimates_at,
        nearest_likeness,
        above_likeness,
        search_meaning,
    )
}
SECONDS = compiling.SECONDS
READY = True
"""Set last: a module that is still compiling does not have it."""
