"""What a method is, and what it asks of its user."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Description:
    """A method in a few facts."""

    name: str
    title: str
    year: int
    citation: str
    online: bool = True
    """Learns from a stream; otherwise it needs all rows at once."""
    supervised: bool = True
    needs: str = "labels"
    """"labels", "pairs" (drawn from the labels of rows that have come) or "nothing"."""
    needs_class_count: bool = False
    """Must know beforehand how many labels may come."""
    stores_rows: bool = False
    """Keeps every row it has learned."""
    codewords: bool = True
    """Labels have codewords, so that a labelled entry needs no code of its own."""
    batch: int = 1
    """Rows it waits for before it learns from them."""
