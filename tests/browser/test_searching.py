"""The page in a real browser: searching by entry, vector and file, and labelling what is found."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from everhash.wire.options import WAYS
from tests.browser.collections import DIM, IMAGE, MARKUP, centres
from tests.browser.conftest import Open
from tests.browser.processes import Server
from tests.browser.reading import DASH, MINUS, number, ranking, search_by, show_unlabelled, until


def test_a_search_by_a_digit_finds_ten_of_the_same(digits_page: Server, opened: Open) -> None:
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


def test_a_label_is_given_in_two_clicks_and_moves_the_ranking(
    digits_page: Server, opened: Open
) -> None:
    page = opened(digits_page)
    page.select_option("#by", "asymmetric")  # by its own bits it is among the first
    show_unlabelled(page)
    unlabelled = digits_page.get("/stats")["unlabelled"]
    chosen = page.locator(".entry.plain").first.get_attribute("data-id")
    search_by(page, chosen)
    before = ranking(page)
    assert chosen in before

    page.locator("#query .chips button").last.click()  # the label that fits it least
    page.get_by_text("asked again: ").wait_for()
    assert chosen not in ranking(page)
    assert page.locator(".moved").count() > 0
    assert page.locator("#query .chip").inner_text() != "unlabelled"
    assert digits_page.get("/stats")["unlabelled"] == unlabelled - 1
    until(lambda: page.locator(f".entry[data-id='{chosen}']").count() == 0)


def test_a_label_is_taken_away_again(digits_page: Server, opened: Open) -> None:
    page = opened(digits_page)
    tile = page.locator(".entry:not(.plain)").first
    name = tile.get_attribute("data-id")
    own = digits_page.post("/get", {"ids": [json.loads(name)]})["entries"][0]["labels"]
    tile.click()
    page.locator("#query").get_by_text("Take label away").click()
    page.get_by_text(f"#{name} has no label any more").wait_for()
    entry = digits_page.post("/get", {"ids": [json.loads(name)]})["entries"][0]
    assert entry["labels"] == []
    page.locator("#query .chip", has_text=f"taken for {entry['guess']}").first.wait_for()
    page.locator("#log [data-kind=unlabelled]").wait_for()
    digits_page.post("/label", {"ids": [json.loads(name)], "labels": own})


@pytest.mark.parametrize("by", WAYS)
def test_every_way_of_searching_shows_its_scores(by: str, shop: Server, opened: Open) -> None:
    page = opened(shop)
    page.select_option("#by", by)
    search_by(page, "2")
    found = shop.post("/search", {"ids": [2], "by": by})["matches"][0]
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


def test_what_an_unlabelled_entry_is_taken_for_is_shown(shop: Server, opened: Open) -> None:
    page = opened(shop)
    search_by(page, "2")
    guess = shop.post("/get", {"ids": [2]})["entries"][0]["guess"]
    assert page.locator("#query .chip").first.inner_text() == f"taken for {guess}"


def written(name: int | str) -> str:
    """Return an id as the page writes it."""
    return json.dumps(name, ensure_ascii=False)


def test_a_label_much_like_a_known_one_is_pointed_out(digits_page: Server, opened: Open) -> None:
    page = opened(digits_page)
    show_unlabelled(page)
    for label, said in (("blemish", "a new label"), ("blemishes", "much like blemish")):
        name = page.locator(".entry.plain").last.get_attribute("data-id")
        search_by(page, name)
        page.locator("#query input").fill(label)
        page.keyboard.press("Enter")
        page.locator("#toast", has_text=said).wait_for()
        page.locator(f".entry[data-id='{name}']").wait_for(state="detached")
    digits_page.post("/labels/merge", {"label": "blemishes", "into": "blemish"})
    page.locator("#log [data-kind=merged]", has_text="merged blemishes into blemish").wait_for()
    page.get_by_text("Codewords as text").click()
    until(lambda: page.locator("#matrix-rows th", has_text="blemishes").count() == 0)
    digits_page.post("/labels/drop", {"label": "blemish"})
    until(lambda: page.locator("#matrix-rows th", has_text="blemish").count() == 0)


def test_a_found_entry_is_given_a_new_label(digits_page: Server, opened: Open) -> None:
    page = opened(digits_page)
    page.select_option("#by", "asymmetric")
    show_unlabelled(page)
    search_by(page, page.locator(".entry.plain").last.get_attribute("data-id"))
    card = page.locator(".card").filter(has=page.get_by_text("Label…")).first
    named = card.get_attribute("data-id")
    card.get_by_text("Label…").click()
    page.locator("#label-dialog input").fill("smudge")
    page.keyboard.press("Enter")
    page.get_by_text(f"#{named} is smudge now").wait_for()
    page.get_by_text("asked again: ").wait_for()
    found = digits_page.post("/get", {"ids": [json.loads(named)]})
    assert found["entries"][0]["labels"] == ["smudge"]
    until(lambda: number(page, "labels") == 11)
    page.get_by_text("Codewords as text").click()
    page.locator("#matrix-rows th", has_text="smudge").wait_for()


def test_labels_payloads_and_ids_are_text_and_run_nothing(shop: Server, opened: Open) -> None:
    page = opened(shop)
    search_by(page, "2")
    page.locator("#query input").fill("<SCRIPT")
    assert page.locator("#query .chips button").all_inner_texts() == [MARKUP]
    page.locator("#query .chips button").click()
    page.get_by_text(f"#2 is {MARKUP} now").wait_for()
    page.get_by_text("asked again: ").wait_for()
    page.get_by_text("asked by its codeword").wait_for()
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
    page.get_by_text("asked by its codeword").wait_for()
    found = shop.post("/search", {"ids": [json.loads(name)]})["matches"][0]["found"]
    until(lambda: ranking(page) == [json.dumps(one["id"], ensure_ascii=False) for one in found])
    own = page.locator("#query .chip").inner_text()
    assert page.locator(".card").first.locator(".chip").inner_text() == own


def test_searching_takes_no_mouse(digits_page: Server, opened: Open) -> None:
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
    page.keyboard.type("1, 2, x")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.locator("#vector-error").inner_text() == "expected 64 numbers, but number 3 is “x”"


def test_a_vector_is_searched_and_noise_is_out_of_scope(digits_page: Server, opened: Open) -> None:
    page = opened(digits_page)
    page.get_by_role("tab", name="By vector").click()
    search = page.locator("#by-vector").get_by_role("button", name="Search")
    for text, said in (
        ("", "expected 64 numbers, got nothing"),
        ("1 2 3", "expected 64 numbers, got 3"),
        ("[1, 2", "expected 64 numbers as a JSON list such as [0.1, 2, -3], but this is no JSON"),
        ("[[1], [2]]", "expected 64 numbers of one row, got 2 rows"),
    ):
        page.fill("#vector", text)
        search.click()
        assert page.locator("#vector-error").inner_text() == said
    digits = load_digits()
    page.fill("#vector", json.dumps([digits.data[3].tolist()]))
    search.click()
    page.locator(".card").nth(9).wait_for()
    shown = page.locator(".card .second").all_inner_texts()
    assert all(text.endswith(f"digit: {digits.target[3]}") for text in shown)
    noise = np.random.default_rng(0).integers(0, 17, 64)
    page.fill("#vector", "; ".join(map(str, noise)))
    search.click()
    page.get_by_text("Perhaps out of scope.").wait_for()
    page.get_by_role("button", name="Why?").click()
    assert re.search(
        r"than (9[5-9]|100) % of the rows that came", page.locator("#novel").inner_text()
    )
    assert "Novelty is the share" in page.locator("#novel-tip").inner_text()


def test_a_file_is_sent_as_it_is_and_read_row_by_row(
    tmp_path: Path, shop: Server, opened: Open
) -> None:
    rows = centres()[[7, 100]]
    np.save(tmp_path / "rows.npy", rows)
    np.save(tmp_path / "wrong.npy", rows[:, :-1])
    page = opened(shop, allowed="422")
    page.get_by_role("tab", name="By file").click()
    search = page.locator("#by-file").get_by_role("button", name="Search")
    search.click()
    assert page.locator("#file-error").inner_text() == "expected a .npy file, got none"
    page.set_input_files("#file", tmp_path / "wrong.npy")
    search.click()
    page.locator("#file-error", has_text=f"is expecting {DIM} features").wait_for()
    page.set_input_files("#file", tmp_path / "rows.npy")
    search.click()
    page.get_by_text("Nearest to row 1 of 2 in rows.npy").wait_for()
    found = shop.post("/search", {"rows": rows.tolist()})["matches"]
    assert ranking(page) == [json.dumps(one["id"]) for one in found[0]["found"]]
    page.get_by_role("button", name="next row").click()
    page.get_by_text("Nearest to row 2 of 2").wait_for()
    assert ranking(page) == [json.dumps(one["id"]) for one in found[1]["found"]]
    assert page.get_by_role("button", name="next row").is_disabled()


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
