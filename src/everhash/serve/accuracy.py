"""How accuracy went while the service ran, for those who come later to look."""

from __future__ import annotations

from typing import Any

POINTS = 240
"""Points kept; before there are more, every other one is left out."""


class AccuracyHistory:
    """Rows that were scored before they were learned, and how many of them were right.

    >>> history = AccuracyHistory()
    >>> history.note({"scored_rows": 4, "accuracy": 0.75})
    >>> history.note({"scored_rows": 8, "accuracy": 0.875})
    >>> history.points
    [(4, 3), (8, 7)]
    """

    def __init__(self) -> None:
        self.points: list[tuple[int, int]] = []
        """(scored rows, right ones) of the whole stream, oldest first."""

    def note(self, learned: dict[str, Any] | None) -> None:
        """Take account of what stats say was learned; None where that is not measured."""
        if learned is None:
            return
        scored = learned["scored_rows"]
        point = (scored, round(scored * (learned["accuracy"] or 0)))
        if self.points and scored < self.points[-1][0]:
            self.points.clear()  # another record took its place
        if self.points and scored == self.points[-1][0]:
            return
        if len(self.points) >= POINTS:
            del self.points[1::2]
        self.points.append(point)
