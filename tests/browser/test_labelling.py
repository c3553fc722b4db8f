"""The page in a real browser: labels that are given, named anew, taken away, and the way back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.browser.conftest import Open
from tests.browser.processes import Server, Site
from tests.browser.reading import number, ranking, search_by, show_unlabelled, until

pytestmark = pytest.mark.slow

CONFLICT = "409"
"""What a browser notes of a request that was refused because somebody else was faster."""


def labels_of(server: Site, name: str) -> list[Any]:
    """Return the labels of an entry."""
    found: list[Any] = server.post("/get", {"ids": [json.loads(name)]})["entries"][0]["labels"]
    return found


def test_a_label_is_given_in_two_clicks_and_moves_the_ranking(
    digits_page: Site, opened: Open
) -> None:
    page = opened(digits_page)
    page.select_option("#by", "asymmetric")  # by its own bits it is among the first
    show_unlabelled(page)
    unlabelled = digits_page.get("/stats")["unlabelled"]
    chosen = page.locator(".entry.plain").first.get_attribute("data-id")
    search_by(page, chosen)
    assert chosen in ranking(page)

    page.locator("#query .chips button").last.click()  # the label that fits it least
    page.get_by_text("asked again: ").wait_for()
    assert chosen not in ranking(page)
    assert page.locator(".moved").count() > 0
    assert page.locator("#query .chip").inner_text() != "unlabelled"
    assert digits_page.get("/stats")["unlabelled"] == unlabelled - 1
    until(lambda: page.locator(f".entry[data-id='{chosen}']").count() == 0)

    page.get_by_role("button", name="Undo").click()
    page.locator("#toast", has_text=f"Undone: #{chosen} has no label again").wait_for()
    assert labels_of(digits_page, chosen) == []
    page.locator("#query .chip", has_text="taken for").wait_for()


def test_a_label_is_taken_away_and_given_back(digits_page: Site, opened: Open) -> None:
    page = opened(digits_page)
    tile = page.locator(".entry:not(.plain)").first
    name = tile.get_attribute("data-id")
    own = labels_of(digits_page, name)
    tile.click()
    page.locator("#query").get_by_text("Take label away").click()
    page.get_by_text(f"#{name} has no label any more").wait_for()
    entry = digits_page.post("/get", {"ids": [json.loads(name)]})["entries"][0]
    assert entry["labels"] == []
    page.locator("#query .chip", has_text=f"taken for {entry['guess']}").first.wait_for()
    page.locator("#log [data-kind=unlabelled]").wait_for()
    page.get_by_role("button", name="Undo").click()
    page.locator("#toast", has_text=f"Undone: #{name} is {own[0]} again").wait_for()
    assert labels_of(digits_page, name) == own


def test_a_new_label_is_asked_about_once_and_near_ones_are_shown(
    digits_page: Site, opened: Open
) -> None:
    page = opened(digits_page)
    dialog = page.locator("#new-dialog[open]")
    show_unlabelled(page)

    def choose() -> str:
        chosen: str = page.locator(".entry.plain").last.get_attribute("data-id")
        search_by(page, chosen)
        return chosen

    def name_it(label: str) -> None:
        page.locator("#query input").fill(label)
        page.locator("#query input").press("Enter")

    before = digits_page.get("/labels")["total"]
    first = choose()
    name_it("blemish")
    dialog.get_by_text("blemish is not a label yet").wait_for()
    dialog.get_by_role("button", name="Cancel").click()
    assert labels_of(digits_page, first) == []
    assert digits_page.get("/labels")["total"] == before

    name_it("blemish")
    dialog.get_by_role("button", name="Make a new label").click()
    page.locator("#toast", has_text=f"#{first} is blemish now, a new label").wait_for()
    until(lambda: labels_of(digits_page, first) == ["blemish"])
    page.locator(f".entry[data-id='{first}']").wait_for(state="detached")

    second = choose()
    name_it("Blemishs")
    dialog.get_by_text("Did you mean one of these?").wait_for()
    assert dialog.locator(".chip").all_inner_texts() == ["blemish"]
    dialog.locator(".chip").click()
    page.locator("#toast", has_text=f"#{second} is blemish now").wait_for()
    assert labels_of(digits_page, second) == ["blemish"]
    assert digits_page.get("/labels")["total"] == before + 1
    digits_page.post("/labels/rename", {"label": "blemish", "to": "spot"})
    page.locator("#log [data-kind=renamed]", has_text="renamed blemish to spot").wait_for()
    digits_page.post("/labels/drop", {"label": "spot"})
    page.get_by_text("Codewords as text").click()
    until(lambda: page.locator("#matrix-rows th", has_text="spot").count() == 0)


def test_undo_takes_a_new_label_back_whole(digits_page: Site, opened: Open) -> None:
    page = opened(digits_page)
    page.select_option("#by", "asymmetric")
    show_unlabelled(page)
    before = digits_page.get("/stats")
    search_by(page, page.locator(".entry.plain").last.get_attribute("data-id"))
    card = page.locator(".card").filter(has=page.get_by_text("Label…")).first
    named = card.get_attribute("data-id")
    card.get_by_text("Label…").click()
    page.locator("#label-dialog input").fill("smudge")
    page.keyboard.press("Enter")
    page.locator("#new-dialog").get_by_role("button", name="Make a new label").click()
    page.get_by_text(f"#{named} is smudge now").wait_for()
    page.get_by_text("asked again: ").wait_for()
    assert labels_of(digits_page, named) == ["smudge"]
    until(lambda: number(page, "labels") == before["labels"] + 1)
    page.get_by_text("Codewords as text").click()
    page.locator("#matrix-rows th", has_text="smudge").wait_for()
    page.get_by_role("button", name="Undo").click()
    page.locator("#toast", has_text="Undone").wait_for()
    assert labels_of(digits_page, named) == []
    after = digits_page.get("/stats")
    assert (after["labels"], after["learned"]["rows"]) == (
        before["labels"],
        before["learned"]["rows"],
    )
    until(lambda: page.locator("#matrix-rows th", has_text="smudge").count() == 0)


def test_what_was_changed_meanwhile_is_not_undone(digits_page: Site, opened: Open) -> None:
    page = opened(digits_page, allowed=CONFLICT)
    show_unlabelled(page)
    chosen = page.locator(".entry.plain").last.get_attribute("data-id")
    search_by(page, chosen)
    page.locator("#query .chips button", has_text="3").click()
    page.get_by_text(f"#{chosen} is 3 now").wait_for()
    digits_page.post("/label", {"ids": [json.loads(chosen)], "labels": [4]})
    page.get_by_role("button", name="Undo").click()
    page.locator("#toast", has_text=f"Not undone: #{chosen} is 4 now").wait_for()
    assert labels_of(digits_page, chosen) == [4]
    page.locator("#query .chip", has_text="4").first.wait_for()
    digits_page.post("/unlabel", {"ids": [json.loads(chosen)]})


def race(site: Site, opened: Open) -> tuple[Any, Any, str]:
    """Return two pages that show the same unlabelled entry with a picker, and its id."""
    one, other = (opened(site, allowed=CONFLICT) for _ in range(2))
    show_unlabelled(one)
    chosen = one.locator(".entry.plain").last.get_attribute("data-id")
    show_unlabelled(other)
    for page in (one, other):
        search_by(page, chosen)
    one.locator("#query .chips button", has_text="4").click()
    one.get_by_text(f"#{chosen} is 4 now").wait_for()
    assert labels_of(site, chosen) == [4]
    return one, other, chosen


def test_undo_gives_back_what_a_colleague_gave(digits_page: Site, opened: Open) -> None:
    _, late, chosen = race(digits_page, opened)
    late.locator("#query .chips button", has_text="3").click()
    dialog = late.locator("#changed-dialog[open]")
    dialog.get_by_text(f"#{chosen} is 4 now").wait_for()
    assert labels_of(digits_page, chosen) == [4]  # nothing was done yet
    dialog.get_by_role("button", name="Make it 3").click()
    late.locator("#toast", has_text=f"#{chosen} is 3 now").wait_for()
    assert labels_of(digits_page, chosen) == [3]
    late.get_by_role("button", name="Undo").click()
    late.locator("#toast", has_text=f"Undone: #{chosen} is 4 again").wait_for()
    assert labels_of(digits_page, chosen) == [4]
    digits_page.post("/unlabel", {"ids": [json.loads(chosen)]})


def test_a_colleague_label_stays_if_that_is_the_answer(digits_page: Site, opened: Open) -> None:
    first, late, chosen = race(digits_page, opened)
    late.locator("#query .chips button", has_text="3").click()
    late.locator("#changed-dialog").get_by_role("button", name="Leave it").click()
    late.locator("#query .chip", has_text="4").first.wait_for()
    assert labels_of(digits_page, chosen) == [4]
    assert late.locator("#toast-undo").is_hidden()

    late.locator("#query").get_by_text("Take label away").click()
    late.get_by_text(f"#{chosen} has no label any more").wait_for()
    first.get_by_role("button", name="Undo").click()  # of what does not stand any more
    first.locator("#toast", has_text=f"Not undone: #{chosen} has no label now").wait_for()
    assert labels_of(digits_page, chosen) == []


def test_the_same_label_of_a_colleague_is_no_conflict(digits_page: Site, opened: Open) -> None:
    _, late, chosen = race(digits_page, opened)
    late.locator("#query .chips button", has_text="4").click()
    late.locator("#toast", has_text=f"#{chosen} is 4 already").wait_for()
    assert late.locator("#toast-undo").is_hidden()  # it has done nothing
    assert labels_of(digits_page, chosen) == [4]
    digits_page.post("/unlabel", {"ids": [json.loads(chosen)]})


def test_undo_leaves_a_new_label_that_a_colleague_uses(digits_page: Site, opened: Open) -> None:
    page = opened(digits_page, allowed="422")  # the label is not dropped
    show_unlabelled(page)
    mine, theirs = (
        page.locator(".entry.plain").nth(at).get_attribute("data-id") for at in (-1, -2)
    )
    search_by(page, mine)
    page.locator("#query input").fill("ours")
    page.keyboard.press("Enter")
    page.locator("#new-dialog").get_by_role("button", name="Make a new label").click()
    page.get_by_text(f"#{mine} is ours now").wait_for()
    digits_page.post("/label", {"ids": [json.loads(theirs)], "labels": ["ours"]})
    page.get_by_role("button", name="Undo").click()
    page.locator("#toast", has_text=f"Undone: #{mine} has no label again").wait_for()
    assert labels_of(digits_page, mine) == []
    assert labels_of(digits_page, theirs) == ["ours"]
    digits_page.post("/unlabel", {"ids": [json.loads(theirs)]})
    digits_page.post("/labels/drop", {"label": "ours", "unused": True})


def test_where_there_is_no_way_back_the_question_says_so(shop: Server, opened: Open) -> None:
    page = opened(shop)
    page.locator(".entry.plain").last.click()
    page.locator("#query input").fill("kind 100 and more")
    page.keyboard.press("Enter")
    dialog = page.locator("#new-dialog[open]")
    dialog.get_by_text("there is no undo").wait_for()
    assert "kind 100" in dialog.locator(".chip").all_inner_texts()
    page.keyboard.press("Escape")
    dialog.wait_for(state="detached")
