"""The page in a real browser: searching by an entry, in every way, and turning pages."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from everhash.wire.options import WAYS
from tests.browser.collections import IMAGE, MARKUP
from tests.browser.conftest import Open
from tests.browser.processes import Server, Site
from tests.browser.reading import DASH, MINUS, ranking, search_by, show_unlabelled, until
from tests.conftest import slowly

NAMES = {"asymmetric": "asymmetric distance", "hamming": "Hamming distance"}
"""Ways of searching that the page calls otherwise."""


def some_slowly(*quick: str) -> list[Any]:
    """Return all ways of searching; the page treats those that are marked slow like others."""
    return [*quick, *slowly(*(way for way in WAYS if way not in quick))]


def test_a_search_by_a_digit_finds_ten_of_the_same(digits_page: Site, opened: Open) -> None:
    page = opened(digits_page)
    tile = page.locator(".entry:not(.plain)").first
    digit = re.search(r"digit: \d", tile.get_attribute("title"))
    assert digit is not None
    tile.click()
    page.locator(".card").nth(9).wait_for()
    shown = page.locator(".card .second").all_inner_texts()
    assert len(shown) == 10
    assert all(text.endswith(digit[0]) for text in shown)
    pictures = page.locator(".card img")
    until(lambda: pictures.evaluate_all("all => all.filter(it => it.naturalWidth).length") == 10)
    strips = page.locator(".card .strip").evaluate_all("all => all.map(strip => strip.ariaLabel)")
    assert all(re.match(r"\d+ of 32 bits agree · cycle \d.*; 32 inactive$", s) for s in strips)
    assert page.locator("#novel").is_hidden()


@pytest.mark.parametrize("by", some_slowly("relevance", "hamming", "likeness"))
def test_every_way_of_searching_shows_its_scores(by: str, shop: Server, opened: Open) -> None:
    page = opened(shop)
    page.select_option("#by", by)
    search_by(page, "2")
    found = shop.post("/search", {"like": [2], "by": by})["matches"][0]
    until(lambda: ranking(page) == [written(one["id"]) for one in found["found"]])
    scores = page.locator(".card .score").all_inner_texts()
    digits = 0 if found["by"] == "hamming" else 2
    expected = [f"{one['score']:.{digits}f}".replace("-", MINUS) for one in found["found"]]
    assert [*map(len, scores)] == [*map(len, expected)]
    assert [float(score.replace(MINUS, "-")) for score in scores] == pytest.approx(
        [one["score"] for one in found["found"]], abs=0.0051
    )
    alike = [one for one in found["found"] if one["likeness"] is not None]
    assert page.locator(".card .likeness").count() == (0 if by == "likeness" else len(alike))


@pytest.mark.parametrize("by", some_slowly("relevance", "asymmetric"))
def test_the_chosen_way_is_the_one_asked_for_and_is_named(
    by: str, digits_page: Site, opened: Open
) -> None:
    page = opened(digits_page)
    search_by(page, page.locator(".entry.plain").first.get_attribute("data-id"))
    page.select_option("#by", "hamming")

    def asks(request: Any) -> bool:
        body = json.loads(request.post_data) if request.url.endswith("/search") else {}
        return bool(body.get("explain")) and body["by"] == by

    with page.expect_response(lambda answer: asks(answer.request)) as answer:
        page.select_option("#by", by)
    assert answer.value.json()["matches"][0]["by"] == by
    how = f"by {NAMES.get(by, by)}: "
    until(lambda: page.locator("#answers-how").inner_text().startswith(how))
    assert page.locator("#by-word").get_attribute("data-word") == by


def test_what_an_unlabelled_entry_is_taken_for_is_shown(shop: Server, opened: Open) -> None:
    page = opened(shop)
    search_by(page, "2")
    guess = shop.post("/get", {"ids": [2]})["entries"][0]["guess"]
    assert page.locator("#query .chip").first.inner_text() == f"taken for {guess}"


def written(name: int | str) -> str:
    """Return an id as the page writes it."""
    return json.dumps(name, ensure_ascii=False)


def test_labels_payloads_and_ids_are_text_and_run_nothing(shop: Server, opened: Open) -> None:
    page = opened(shop)
    search_by(page, "2")
    page.locator("#query input").fill("<SCRIPT")
    assert page.locator("#query .chips button").all_inner_texts() == [MARKUP]
    page.locator("#query .chips button").click()
    page.get_by_text(f"#2 is {MARKUP} now").wait_for()
    page.get_by_text("asked again: ").wait_for()
    page.locator("#query", has_text="asked by its codeword").wait_for()
    assert page.locator("#query .chip").all_inner_texts() == [MARKUP]
    page.get_by_text("Codewords as text").click()
    assert page.locator("#matrix-rows th").nth(1).inner_text() == IMAGE
    page.locator("#matrix-view").hover(position={"x": 300, "y": 30})
    until(lambda: page.locator("#matrix-told").inner_text().startswith(MARKUP))
    page.locator(".entry.plain", has_text="about 5").first.click()
    page.get_by_text(f"Nearest to #{IMAGE} 5").wait_for()
    page.locator(".card", has_text=f"{MARKUP} about 4").first.wait_for()
    assert page.evaluate("window.ran") is None
    assert page.locator("main script, main img").count() == 0


def test_a_labelled_entry_without_its_row_is_asked_by_its_label(shop: Server, opened: Open) -> None:
    page = opened(shop)
    entry = page.locator(".entry:not(.plain)").first
    name = entry.get_attribute("data-id")
    entry.click()
    page.locator("#query", has_text="asked by its codeword").wait_for()
    found = shop.post("/search", {"like": [json.loads(name)]})["matches"][0]["found"]
    until(lambda: ranking(page) == [json.dumps(one["id"], ensure_ascii=False) for one in found])
    own = page.locator("#query .chip").inner_text()
    assert page.locator(".card").first.locator(".chip").inner_text() == own


def test_no_labelled_entry_is_called_out_of_scope(
    shop: Server, opened: Open, thorough: bool
) -> None:
    page = opened(shop)
    tiles = page.locator(".entry:not(.plain)")
    for name in tiles.evaluate_all("all => all.map(it => it.dataset.id)")[: 27 if thorough else 9]:
        tiles.and_(page.locator(f"[data-id={json.dumps(name)}]")).click()
        page.locator("#query", has_text=f"Nearest to #{json.loads(name)}").wait_for()
        page.locator(".card").first.wait_for()
        assert page.locator("#novel").is_hidden()


def test_searching_takes_no_mouse(digits_page: Site, opened: Open) -> None:
    page = opened(digits_page)
    page.locator(".entry").nth(9).wait_for()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to search"
    page.keyboard.press("Enter")
    passed: list[str] = []
    while not passed or "entry" not in passed[-1].split():
        assert len(passed) < 15, passed
        page.keyboard.press("Tab")
        passed.append(page.evaluate("document.activeElement.className"))
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    chosen = page.evaluate("document.activeElement.dataset.id")
    page.keyboard.press("Enter")
    page.get_by_text(f"Nearest to #{chosen}", exact=True).wait_for()
    assert page.locator("#answers-said").inner_text() == "10 entries found"
    page.locator("#tab-entry").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "file"
    page.keyboard.press("Tab")
    page.keyboard.type("1, 2, x")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    said = "expected 64 numbers a row, but number 3 is “x”"
    until(lambda: page.locator("#vector-error").inner_text() == said)


def test_entries_are_turned_page_by_page(shop: Server, opened: Open) -> None:
    page = opened(shop)

    def turn(button: str, shows: str) -> None:
        page.get_by_role("button", name=button).click()
        page.get_by_text(shows, exact=True).wait_for()

    page.get_by_text(f"1{DASH}60 of 900").wait_for()
    turn("next entries", f"61{DASH}120 of 900")
    turn("previous entries", f"1{DASH}60 of 900")
    turn("newest entries", f"841{DASH}900 of 900")
    assert page.get_by_role("button", name="next entries").is_disabled()
    show_unlabelled(page)
    unlabelled = shop.get("/stats")["unlabelled"]
    page.get_by_text(f"1{DASH}60 of {unlabelled}").wait_for()
    turn("next entries", f"61{DASH}120 of {unlabelled}")
    assert page.locator(".entry:not(.plain)").count() == 0
