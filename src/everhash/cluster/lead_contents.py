"""What the lead tells whoever copies a whole cluster."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from everhash.cluster.lead_state import LeadState
from everhash.collection.formats import pack_likeness
from everhash.learn.split_sums import SplitSums


@dataclass(frozen=True)
class AskLead:
    """What does the lead know?"""

    request: str


@dataclass(frozen=True)
class LeadContents:
    """What the lead knows after write `seq`."""

    request: str
    seq: int
    model: bytes
    """The hasher, as its file has it; of the products of rows it has the diagonal only."""
    products: NDArray[np.float64] | None
    """Of the rows that no shard has; None while rows are kept."""
    coder: bytes
    """What makes likeness codes."""
    next_id: int

    @classmethod
    def of(cls, state: LeadState, request: str) -> LeadContents:
        """Return what a lead knows."""
        sums = state.learner.memory.sums
        products = sums.own_products.copy() if isinstance(sums, SplitSums) else None
        coder, model = pack_likeness(state.coder), state.hasher.to_bytes()
        return cls(request, state.seq, model, products, coder, state.next_id)
