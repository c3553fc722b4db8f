"""The page in a real browser: every number it shows is true, and stays so while things change."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import everhash
from everhash.serve import entries
from tests.browser.conftest import Open
from tests.browser.reading import DASH, number, until
from tests.unit.serve.serving import Served, serving

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(0)
CENTRES = RNG.normal(scale=4, size=(3, 8))
NAMES = ("ant", "bee", "cow")


def rows(which: Any) -> Any:
    """Return rows of these labels."""
    return (CENTRES[which] + RNG.normal(size=(len(which), 8))).astype(np.float32)


@pytest.fixture(name="farm")
def make_farm() -> Iterator[Served]:
    """Serve 150 entries, a third of each label, 30 of them unlabelled; 120 have a text."""
    which = np.arange(150) % 3
    labels = [NAMES[i] if row % 5 else None for row, i in enumerate(which)]
    texts = [f"straw {row}" if row % 5 else None for row in range(150)]
    with everhash.create(None, dim=8) as farm:
        farm.ingest(rows(which), labels, payloads=texts)
        farm.learn(rows(np.zeros(15, int)), ["moth"] * 15)  # rows learned, and no entry
        with serving(farm) as served:
            yield served


def opened_at(opened: Open, served: Served) -> Any:
    return opened(SimpleNamespace(url=served.address))


def told(page: Any, text: str) -> None:
    """Wait until the page says of entries that they are these."""
    until(lambda: page.locator("#entries-range").inner_text() == text)


def test_a_look_says_how_many_there_are_and_not_how_many_fit(farm: Served, opened: Open) -> None:
    page = opened_at(opened, farm)
    told(page, f"1{DASH}60 of 150")
    page.fill("#find", "straw")
    told(page, f"1{DASH}60 of 120 found")
    page.get_by_role("button", name="next entries").click()
    told(page, f"61{DASH}120 of 120 found")
    assert page.get_by_role("button", name="next entries").is_disabled()
    page.fill("#find", "straw 14")  # 14 itself, and those of 140 to 149 that have a text
    told(page, "9 found")
    page.fill("#find", "")
    told(page, f"1{DASH}60 of 150")
    page.check("#only-unlabelled")
    told(page, f"1{DASH}30 of 30")


def test_an_entry_named_by_its_id_is_counted_once(opened: Open) -> None:
    with everhash.create(None, dim=8) as made:
        made.add(rows(np.zeros(130, int)), payloads=[f"crate {i} 129" for i in range(130)])
        made.ingest(rows(np.zeros(1, int)), ["ant"], [1290])
        with serving(made) as served:
            page = opened_at(opened, served)
            seen: list[str] = []
            page.fill("#find", "129")
            for first, last in ((1, 61), (62, 121), (122, 130)):
                told(page, f"{first}{DASH}{last} of 130 found")
                tiles = page.locator(".entry").evaluate_all("all => all.map(one => one.dataset.id)")
                seen += tiles
                if not page.get_by_role("button", name="next entries").is_disabled():
                    page.get_by_role("button", name="next entries").click()
            assert seen[0] == "129"
            assert len(seen) == len(set(seen)) == 130
            page.check("#only-unlabelled")
            page.fill("#find", "1290")
            page.get_by_text("No unlabelled entry has this in its id or text.").wait_for()


def test_what_is_not_counted_is_not_told_as_a_count(
    farm: Served, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entries, "COUNTED", 10)
    page = opened_at(opened, farm)
    page.fill("#find", "straw")
    told(page, f"1{DASH}60 found so far")
    page.get_by_role("button", name="next entries").click()
    until(lambda: page.locator("#entries-range").inner_text().startswith(f"61{DASH}120"))


def test_a_label_counts_its_entries_and_lists_them(farm: Served, opened: Open) -> None:
    page = opened_at(opened, farm)
    chip = page.locator("#find-labels button")
    page.fill("#find", "moth")
    until(lambda: chip.all_inner_texts() == ["moth · 0"])  # 15 rows have taught it
    chip.click()
    page.get_by_text("No entry has this label.").wait_for()
    page.fill("#find", "bee")
    until(lambda: chip.all_inner_texts() == ["bee · 40"])
    chip.click()
    told(page, "40 found")
    farm.post("/label", {"ids": [0, 5, 10], "labels": ["bee"] * 3})
    until(lambda: chip.all_inner_texts() == ["bee · 43"])
    farm.post("/unlabel", {"ids": [0, 5]})
    until(lambda: chip.all_inner_texts() == ["bee · 41"])


def test_labels_far_down_are_counted_again_too(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    with everhash.create(None, dim=8, likeness=False) as many:
        many.add(rows(np.zeros(1500, int)), y=[f"kind {i}" for i in range(1500)])
        many.add(rows(np.zeros(1, int)), ["loose"])
        with serving(many) as served:
            page = opened_at(opened, served)
            chip = page.locator("#find-labels button")
            page.fill("#find", "kind 1499")
            until(lambda: chip.all_inner_texts() == ["kind 1499 · 1"])
            served.post("/label", {"ids": ["loose"], "labels": ["kind 1499"], "teach": False})
            until(lambda: chip.all_inner_texts() == ["kind 1499 · 2"])


def test_rows_that_arrive_are_counted_once_each(farm: Served, opened: Open) -> None:
    page = opened_at(opened, farm)
    tally = page.locator("[data-tally=rows]")
    X = rows(np.zeros(5, int)).tolist()
    farm.post("/learn", {"rows": X, "labels": ["ant"] * 5})
    farm.post("/add", {"rows": X})  # other rows, although rows were learned just before
    until(lambda: tally.inner_text() == "10")
    farm.post("/ingest", {"rows": X, "labels": ["ant"] * 5})
    until(lambda: tally.inner_text() == "15")
    until(lambda: page.locator("#about").inner_text() == "160 entries · 4 labels")


def test_numbers_at_a_glance_are_those_of_the_collection(farm: Served, opened: Open) -> None:
    page = opened_at(opened, farm)

    def holds() -> bool:
        stats = farm.get("/stats").json()
        names = ("entries", "labels", "cycles", "width", "stale_bits")
        shown = [number(page, name) for name in names]
        rows = number(page, "rows_learned")
        return shown == [stats[name] for name in names] and rows == stats["learned"]["rows"]

    until(holds)
    assert "30 unlabelled" in page.locator("[data-tile=entries]").inner_text()
    farm.post("/label", {"ids": [0, 5], "labels": ["ant", "newt"], "new": True})
    farm.post("/remove", {"ids": [1]})
    until(holds)
    until(lambda: "28 unlabelled" in page.locator("[data-tile=entries]").inner_text())
    page.get_by_text("Codewords as text").click()
    until(lambda: page.locator("#matrix-rows tr").count() == 5)
    expected = [
        [str(one["label"]), str(one["cycle"]), str(one["entries"]), str(one["lessons"])]
        for one in farm.get("/labels").json()["labels"]
    ]
    cells = "all => all.map(row => [...row.cells].slice(0, 4).map(cell => cell.textContent))"
    until(lambda: page.locator("#matrix-rows tr").evaluate_all(cells) == expected)
