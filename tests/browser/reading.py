"""What tests read from a page."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

MINUS, DASH, TIMES = "\N{MINUS SIGN}", "\N{EN DASH}", "\N{MULTIPLICATION SIGN}"
PHONE = {"width": 360, "height": 740}
PAINTED = """canvas => {
    const copy = new OffscreenCanvas(canvas.width, canvas.height);
    const pen = copy.getContext("2d", { willReadFrequently: true });
    pen.drawImage(canvas, 0, 0);
    const { data } = pen.getImageData(0, 0, canvas.width, canvas.height);
    let n = 0;
    for (let i = 0; i < data.length; i += 4) n += Math.abs(data[i] - data[i + 2]) > 60;
    return n;
}"""


def until(holds: Callable[[], bool], seconds: float = 60) -> None:
    """Wait until something holds; the page's policy forbids browsers to poll for us."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def number(page: Any, name: str) -> int:
    """Return a number of those at a glance; -1 while it is not known."""
    text = page.locator(f"[data-stat={name}]").inner_text().replace(",", "")
    return int(text) if text.isdigit() else -1


def painted(page: Any) -> int:
    """Return how many pixels of the matrix are blue or orange."""
    return int(page.locator("#matrix-canvas").evaluate(PAINTED))


def ranking(page: Any) -> list[str]:
    """Return the ids found, in order."""
    return list(page.locator(".card").evaluate_all("all => all.map(card => card.dataset.id)"))


def search_by(page: Any, entry: str) -> None:
    """Search by the entry with this id, as JSON writes it."""
    page.locator(f".entry[data-id='{entry}']").click()
    page.get_by_text(f"Nearest to #{entry}", exact=True).wait_for()


def show_unlabelled(page: Any) -> None:
    """Show unlabelled entries only."""
    page.check("#only-unlabelled")
    page.locator(".entry.plain").first.wait_for()
    until(lambda: page.locator(".entry:not(.plain)").count() == 0)
