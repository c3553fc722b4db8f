"""Make a failing plan smaller: leave out items as long as it fails in the same way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.cluster.plan import Plan


def shrink(plan: Plan, fails: Callable[[Plan], bool]) -> Plan:
    """Return a part of a plan that fails, of which no single item can be left out (ddmin)."""
    items = list(plan.items)
    size = max(1, len(items) // 2)
    while True:
        kept, place = items, 0
        while place < len(kept):
            without = kept[:place] + kept[place + size :]
            if fails(replace(plan, items=tuple(without))):
                kept = without
            else:
                place += size
        if size == 1 and len(kept) == len(items):
            return replace(plan, items=tuple(kept))
        items, size = kept, max(1, size // 2)
