"""The page in a real browser: finding an entry by id, text or label, and an empty collection."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import urllib.request
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import everhash
from everhash.serve.entries import LOOKS
from tests.browser.collections import IMAGE, NAMES
from tests.browser.conftest import Open
from tests.browser.processes import Server, Servers
from tests.browser.reading import until
from tests.unit.serve.serving import serving

IDS = "all => all.map(tile => tile.dataset.id)"


def shown(page: Any) -> list[Any]:
    """Return the ids of the entries on show."""
    return [json.loads(name) for name in page.locator(".entry").evaluate_all(IDS)]


def test_the_header_names_the_collection(shop: Server, opened: Open) -> None:
    page = opened(shop)
    page.locator("#name", has_text="shop.ever").wait_for()
    assert page.title() == "shop.ever · everhash"
    assert page.locator("#about").inner_text() == "900 entries · 300 labels"


def test_search_comes_first_and_the_matrix_below(shop: Server, opened: Open) -> None:
    page = opened(shop)
    titles = page.locator("main h2").all_inner_texts()
    assert titles[0] == "Search"
    assert titles.index("Code matrix") > titles.index("Stream")


def test_an_entry_is_found_by_its_id(shop: Server, opened: Open) -> None:
    page = opened(shop)
    page.fill("#find", "898")
    page.keyboard.press("Enter")  # at once: what is picked fits what was typed
    page.get_by_text("Nearest to #898", exact=True).wait_for()
    page.fill("#find", f"{IMAGE} 899")
    until(lambda: shown(page) == [f"{IMAGE} 899"])


def test_entries_are_found_by_the_text_of_their_payload(shop: Server, opened: Open) -> None:
    page = opened(shop)
    page.fill("#find", "ABOUT 89")
    until(lambda: len(shown(page)) == 8)  # 89 itself, and those of 890 to 899 that have a text
    told = shop.get("/entries?text=about%2089&limit=60")["entries"]
    assert shown(page) == [entry["id"] for entry in told]
    assert page.locator("#entries-range").inner_text() == "8 found"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.get_by_text(f"Nearest to #{told[0]['id']}", exact=True).wait_for()
    page.fill("#find", "nowhere to be found")
    page.get_by_text("No entry has this in its id or text.").wait_for()
    page.fill("#find", "")
    until(lambda: len(shown(page)) == 60)


def test_entries_are_found_by_their_label(shop: Server, opened: Open) -> None:
    page = opened(shop)
    page.fill("#find", NAMES[3])
    chip = page.locator("#find-labels button")
    until(lambda: chip.all_inner_texts() == [f"{NAMES[3]} · 2"])
    chip.click()
    until(lambda: shown(page) == [f"{IMAGE} 9", 10])
    assert chip.get_attribute("aria-pressed") == "true"
    chip.click()
    page.get_by_text(
        "No entry has this in its id or text. Choose a label above to list its entries."
    ).wait_for()
    page.check("#only-unlabelled")
    page.get_by_text("No unlabelled entry has this in its id or text.").wait_for()
    chip.click()
    page.get_by_text(f"Entries labelled {NAMES[3]} are hidden by “only unlabelled”.").wait_for()
    page.uncheck("#only-unlabelled")
    until(lambda: shown(page) == [f"{IMAGE} 9", 10])
    page.fill("#find", "kind 29")
    until(lambda: page.locator("#find-labels button").count() == 8)
    assert page.locator("#find-labels button").first.inner_text() == "kind 29 · 2"


def test_labels_that_come_after_the_words_were_typed_are_offered(opened: Open) -> None:
    with everhash.create(None, dim=4) as made:
        made.ingest(np.eye(4)[:2], ["ant", "bee"])
        with serving(made) as served:
            page = opened(SimpleNamespace(url=served.address))
            chips = page.locator("#find-labels button")
            page.fill("#find", "late")
            page.get_by_text("No entry has this in its id or text.").wait_for()
            assert chips.count() == 0
            served.http.post("/ingest", json={"rows": [[0, 0, 1, 0]], "labels": ["late one"]})
            until(lambda: chips.all_inner_texts() == ["late one · 1"])


def test_a_text_far_down_is_found_in_several_steps(opened: Open) -> None:
    n = 2 * LOOKS + 10
    X = np.random.default_rng(0).normal(size=(n, 4))
    texts = [*(f"straw {i}" for i in range(n - 1)), "the needle"]
    with everhash.create(None, dim=4, keep_features="none", likeness=False) as made:
        made.add(X, payloads=texts)
        with serving(made) as served:
            page = opened(SimpleNamespace(url=served.address))
            asked: list[str] = []
            page.on("request", lambda request: asked.append(request.url))
            page.fill("#find", "needle")
            until(lambda: shown(page) == [n - 1])
            assert page.locator("#entries-range").inner_text() == "1 found"
            assert sum("text=needle" in url for url in asked) == 3
            page.fill("#find", "straw")
            until(lambda: len(shown(page)) == 60)
            page.get_by_role("button", name="next entries").click()
            until(lambda: shown(page)[:1] == [60])


def test_one_at_random_is_tried(shop: Server, opened: Open) -> None:
    page = opened(shop)
    page.get_by_role("button", name="Try one").click()
    page.locator("#query", has_text="Nearest to #").wait_for()
    page.locator(".card").first.wait_for()


def test_an_empty_collection_says_how_entries_come(
    servers: Servers, tmp_path: Path, opened: Open
) -> None:
    file = servers.folder / "fresh.ever"
    everhash.create(file, dim=4).close()
    server = servers.start("fresh", "serve", file, "--port", "0")
    page = opened(server)
    page.get_by_text("fresh.ever has no entries yet.").wait_for()
    page.get_by_text("Add rows of 4 numbers").wait_for()
    assert page.locator("#halves, #live, #codes").evaluate_all("all => all.every(it => it.hidden)")
    commands = page.locator("#empty pre").all_inner_texts()
    (tmp_path / "rows.csv").write_text("label,a,b,c,d\ncat,0.1,0.2,0.3,0.4\ndog,-1,2,0.5,3\n")
    run("-m", *shlex.split(commands[0]), folder=tmp_path)
    page.locator(".entry").first.wait_for()
    assert page.locator("#empty").is_hidden()
    run("-c", f"X, y = [[0.1, 0.2, 0.3, 0.4]], ['cat']\n{commands[1]}", folder=tmp_path)
    np.save(tmp_path / "rows.npy", np.eye(4, dtype=np.float32))
    _, url, _, header, *_ = shlex.split(commands[2])
    assert shlex.split(commands[2])[-1] == "@rows.npy"
    rows, kind = (tmp_path / "rows.npy").read_bytes(), dict([header.split(": ")])
    with urllib.request.urlopen(urllib.request.Request(url, rows, kind)) as answer:  # noqa: S310
        assert answer.status == 200
    until(lambda: len(shown(page)) == 7)


def run(*command: str, folder: Path) -> None:
    """Run Python in a folder."""
    subprocess.run([sys.executable, *command], cwd=folder, check=True)
