"""The page where the server wants a key, refuses writes, or goes away for a while."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import everhash
from everhash.serve.keys import Keys, add_key, make_key
from tests.browser.conftest import Open
from tests.browser.processes import Server, Servers
from tests.unit.serve.serving import serving

pytestmark = pytest.mark.slow


def key_for(role: str, file: Path) -> str:
    """Add a key to a file of keys and return it."""
    secret, key = make_key(role)
    add_key(file, key)
    return secret


def test_a_key_is_asked_for_when_needed_and_kept_in_the_tab(
    tmp_path: Path, shop_file: Path, browser: Any
) -> None:
    keys = tmp_path / "keys.toml"
    read, write = key_for("read", keys), key_for("write", keys)
    file = shutil.copy(shop_file, tmp_path / "shop.ever")
    with Server("serve", file, "--port", "0", "--keys", keys) as server:
        page = browser.new_context().new_page()
        page.set_default_timeout(60_000)
        page.goto(server.url)
        dialog = page.locator("#key-dialog[open]")
        dialog.get_by_text("This server needs a key.").wait_for()
        page.fill("#key", "eh_nothing")
        page.keyboard.press("Enter")
        dialog.get_by_text("The server does not know this key.").wait_for()
        page.fill("#key", read)
        page.keyboard.press("Enter")
        page.locator("#connection[data-state=up]").wait_for()
        page.locator(".entry.plain").first.click()
        page.locator("#query .chips button").first.click()
        dialog.get_by_text("this key may only read").wait_for()
        page.fill("#key", write)
        page.keyboard.press("Enter")
        page.locator("#toast", has_text=" is ").wait_for()
        assert page.evaluate("[localStorage.length, document.cookie]") == [0, ""]
        with page.expect_request("**/events") as asked:
            page.reload()
        assert asked.value.headers["authorization"] == f"Bearer {write}"
        page.locator("#connection[data-state=up]").wait_for()
        page.context.close()


def test_whoever_has_no_key_is_told_where_to_type_it(shop_file: Path, browser: Any) -> None:
    read, key = make_key("read")
    with (
        everhash.open(shop_file, readonly=True) as reader,
        serving(reader, keys=Keys([key]), readonly=True) as served,
    ):
        page = browser.new_context().new_page()
        page.set_default_timeout(60_000)
        page.goto(served.address)
        page.get_by_role("button", name="Not now").click()
        page.locator("#trouble", has_text="type it under Key, at the top right").wait_for()
        assert "Authorization" not in page.locator("body").inner_text()
        page.get_by_role("button", name="Key", exact=True).click()
        page.fill("#key", read)
        page.keyboard.press("Enter")
        page.locator("#connection[data-state=up]").wait_for()
        page.locator(".entry").first.wait_for()
        page.locator("#trouble").wait_for(state="hidden")
        page.context.close()


def test_a_server_that_only_reads_shows_nothing_that_writes(
    servers: Servers, shop_file: Path, opened: Open
) -> None:
    page = opened(servers.start("readonly", "serve", shop_file, "--port", "0", "--readonly"))
    assert page.locator("#readonly").is_visible()
    assert page.locator("#refresh").is_disabled()
    page.locator(".entry.plain").first.click()
    page.locator(".card").first.wait_for()
    assert page.locator("#query form, #query .chips").count() == 0
    assert page.get_by_role("button", name=re.compile("^label ")).count() == 0


@pytest.mark.slow
def test_a_lost_connection_is_told_and_comes_back_by_itself(tmp_path: Path, browser: Any) -> None:
    file = tmp_path / "small.ever"
    everhash.create(file, dim=2).close()
    first = Server("serve", file, "--port", "0")
    page = browser.new_context().new_page()
    page.set_default_timeout(60_000)
    page.goto(first.url)
    page.locator("#connection[data-state=up]").wait_for()
    assert first.stop() == 0
    page.get_by_text("connection lost, next try in").wait_for()
    with everhash.open(file) as collection:
        collection.ingest([[0.0, 1.0]], ["later"])
    port = str(urlsplit(first.url).port)
    with Server("serve", file, "--port", port) as second:
        assert second.url == first.url
        page.locator("#connection[data-state=up]").wait_for()
        page.locator(".entry", has_text="later").wait_for()
        assert page.locator("#trouble").is_hidden()
        page.context.close()
