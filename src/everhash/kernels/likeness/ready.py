"""The compiled likeness kernels that the rest of everhash may call; see `load_likeness`."""

from __future__ import annotations

from everhash.kernels.likeness.cell_lists import list_entries
from everhash.kernels.likeness.cells import search_cells
from everhash.kernels.likeness.cosines import cosines_at, own_cosines_at, unit_rows_at
from everhash.kernels.likeness.encoding import encode, encode_queries
from everhash.kernels.likeness.estimates import above_likeness, estimates_at, nearest_likeness
from everhash.kernels.likeness.meaning import search_meaning
from everhash.kernels.likeness.products import offer_products

__all__ = [
    "above_likeness",
    "cosines_at",
    "encode",
    "encode_queries",
    "estimates_at",
    "list_entries",
    "nearest_likeness",
    "offer_products",
    "own_cosines_at",
    "search_cells",
    "search_meaning",
    "unit_rows_at",
]
