"""README is short, every link leads somewhere, and every page can be reached."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import LANDING, PAGES, README, anchors, links, name_of

MAX_README_LINES = 150


def test_the_readme_is_short_and_names_the_two_commands() -> None:
    text = README.read_text()
    assert len(text.splitlines()) <= MAX_README_LINES
    assert "make demo" in text
    assert "make test" in text
    assert "pip install" in text


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for target, heading in links(page):
        assert target.exists(), f"{name_of(target)} is not there"
        if heading:
            assert heading in anchors(target), f"{name_of(target)} has no #{heading}"


def test_every_page_can_be_reached_from_the_landing_page() -> None:
    reached: set[Path] = set()
    todo = [LANDING]
    while todo:
        page = todo.pop()
        if page not in reached:
            reached.add(page)
            todo += [target for target, _ in links(page) if target in PAGES]
    assert set(PAGES) - reached == set()


def test_links_are_found_where_they_are(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        '# How it *works*, `now`\n[a](b.md#c) ![p](p.png) <img width=3 src="q.png">\n'
        "[web](https://example.org) [here](#how-it-works-now)\n"
        "```sh\n[no](no.md)\n# no\n```\n`[no](no.md)`\n"
    )
    found = [(target.name, heading) for target, heading in links(page)]
    assert found == [("b.md", "c"), ("p.png", ""), ("q.png", ""), ("page.md", "how-it-works-now")]
    assert anchors(page) == {"how-it-works-now"}
