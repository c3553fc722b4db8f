"""What the page's files promise by what is in them, and what is not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import everhash

STATIC = Path(everhash.__file__).parent / "serve" / "static"
FILES = sorted(STATIC.iterdir())
SCRIPTS = [path for path in FILES if path.suffix == ".js"]


def test_there_is_a_page() -> None:
    assert {"index.html", "style.css", "main.js", "favicon.svg"} <= {path.name for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_nothing_is_fetched_from_elsewhere(path: Path) -> None:
    text = path.read_text().replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"https?:|//[a-z]+\.|@import|url\(", text)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_data_never_becomes_markup_or_code(path: Path) -> None:
    text = path.read_text()
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)
    assert len(text.splitlines()) <= 300
    assert max(map(len, text.splitlines())) <= 100


def test_the_page_has_no_inline_script_style_or_handler() -> None:
    page = (STATIC / "index.html").read_text()
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|<script(?![^>]*\ssrc=)", page)


def test_every_script_is_reached_and_every_import_exists() -> None:
    reached, todo = set(), {"main.js"}
    while todo:
        name = todo.pop()
        reached.add(name)
        imports = re.findall(r'^import [^"]*"\./([^"]+)";$', (STATIC / name).read_text(), re.M)
        todo |= set(imports) - reached
    assert reached == {path.name for path in SCRIPTS}
