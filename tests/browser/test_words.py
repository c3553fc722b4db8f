"""The page in a real browser: words are explained by touch, keys and pointer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import everhash
from tests.browser.conftest import Open
from tests.browser.processes import Server
from tests.browser.reading import PHONE

pytestmark = pytest.mark.slow

STATIC = Path(everhash.__file__).parent / "serve" / "static"
ASKED_FOR = {"stale", "cycle", "home", "codeword", "novelty", "likeness", "meaning", "published"}
KNOWN = set(re.findall(r"^  (\w+): \[", (STATIC / "words.js").read_text(), re.M))


def test_every_word_of_the_page_is_in_the_dictionary_and_the_other_way_round() -> None:
    used = set(re.findall(r'data-word="(\w+)"', (STATIC / "index.html").read_text()))
    for path in STATIC.glob("*.js"):
        used |= set(re.findall(r'\bword\("(\w+)"', path.read_text()))
    named = (STATIC / "glance.js").read_text() + (STATIC / "activity.js").read_text()
    ways = {"relevance", "meaning", "likeness", "asymmetric", "hamming"}
    tiles = {name for name in KNOWN if f'"{name}"]' in named or f': "{name}"' in named}
    assert used | ways | tiles == KNOWN
    assert ASKED_FOR <= KNOWN


@pytest.mark.parametrize("name", ["Stale bits", "Cycles", "Width"])
def test_a_word_is_explained_by_touch(name: str, shop: Server, opened: Open) -> None:
    page = opened(shop, viewport=PHONE, has_touch=True)
    word, box = page.get_by_role("button", name=name, exact=True), page.locator("#word-box")
    word.tap()
    box.wait_for()
    place = box.bounding_box()
    assert place["x"] >= 0
    assert place["x"] + place["width"] <= PHONE["width"]
    assert word.get_attribute("aria-expanded") == "true"
    word.tap()
    assert box.is_hidden()
    word.tap()
    page.locator("#name").tap()
    assert box.is_hidden()


def test_a_word_is_explained_by_keys_and_by_the_pointer(shop: Server, opened: Open) -> None:
    page = opened(shop)
    box = page.locator("#word-box")
    word = page.get_by_role("button", name="Stale bits", exact=True)
    word.focus()
    page.keyboard.press("Enter")
    assert box.inner_text().startswith("Stale")
    assert word.get_attribute("aria-describedby") == "word-box"
    page.keyboard.press("Escape")
    assert box.is_hidden()
    page.get_by_role("button", name="codeword", exact=True).hover()
    box.wait_for()
    assert box.inner_text().startswith("Codeword")
    page.locator("#codes-title").hover()
    box.wait_for(state="hidden")


def test_words_of_an_answer_are_explained_too(shop: Server, opened: Open) -> None:
    page = opened(shop)
    page.locator(".entry.plain").first.click()
    for name, begins in (("home", "Home"), ("likeness", "Likeness"), ("bits", "Bits that agree")):
        page.locator(".answers").get_by_role("button", name=name, exact=True).click()
        assert page.locator("#word-box").inner_text().startswith(begins)
    page.locator("#query .chip", has_text="taken for").first.click()
    assert page.locator("#word-box").inner_text().startswith("Taken for")
    page.select_option("#by", "relevance")
    page.get_by_role("button", name="what this way of searching means").click()
    assert page.locator("#word-box").inner_text().startswith("Relevance")
