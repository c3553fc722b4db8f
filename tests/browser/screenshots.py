"""Make pictures of the page.

python -m tests.browser.screenshots docs                  those of docs/page.md
python -m tests.browser.screenshots looks FOLDER [FILE…]  to look at: each size, light and dark,
                                                          of nothing, the demo, and other files
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from playwright.sync_api import sync_playwright

import everhash
from tests.browser.conftest import NAMES, OPTIONS
from tests.browser.processes import Server, Servers
from tests.browser.reading import PHONE, number, show_unlabelled, until

WIDE = {"width": 1360, "height": 900}
SETTINGS = {
    "desktop": ({"width": 1440, "height": 900}, "light"),
    "tablet": ({"width": 820, "height": 1180}, "light"),
    "phone": ({"width": 390, "height": 844}, "light"),
    "dark": ({"width": 1440, "height": 900}, "dark"),
}


@contextmanager
def started() -> Iterator[tuple[Any, Servers]]:
    """Start a browser, and servers when they are needed."""
    chromium = next(path for name in NAMES if (path := shutil.which(name)))
    with TemporaryDirectory() as files, sync_playwright() as playwright:
        servers = Servers(Path(files))
        browser = playwright.chromium.launch(executable_path=chromium, args=list(OPTIONS))
        try:
            yield browser, servers
        finally:
            browser.close()
            servers.close()


def for_docs(folder: Path) -> None:
    """Take one picture while digits arrive, the others when all are there."""
    with started() as (browser, servers):
        page = opened(browser, servers.demo("digits", 25), WIDE, "light")
        until(lambda: number(page, "entries") > 900, 120)
        search(page)
        take(page, folder / "page-light.png", whole=True)
        settled = servers.demo("scans", 200).until(1500)
        page = opened(browser, settled, WIDE, "dark")
        search(page)
        page.locator("#matrix-view").hover(position={"x": 500, "y": 120})
        take(page, folder / "page-dark.png", whole=True)
        page = opened(browser, settled, PHONE, "light")
        take(page, folder / "page-phone.png", whole=False)


def looks(folder: Path, files: list[Path]) -> None:
    """Take pictures of every setting, with nothing, with the demo, and of other collections."""
    folder.mkdir(exist_ok=True)
    with started() as (browser, servers):
        nothing = servers.folder / "nothing.ever"
        everhash.create(nothing, dim=384).close()
        served = {"digits": servers.demo("digits", 200).until(1500)}
        for file in (nothing, *files):
            served[file.stem] = servers.start(file.stem, "serve", file, "--port", "0")
        for name, server in served.items():
            for setting, (size, scheme) in SETTINGS.items():
                page = opened(browser, server, size, scheme)
                if name != "nothing":
                    page.get_by_role("button", name="Try one").click()
                    page.locator(".card").nth(9).wait_for()
                take(page, folder / f"{name}-{setting}.png", whole=True)
                page.context.close()


def opened(browser: Any, server: Server, size: dict[str, int], scheme: str) -> Any:
    """Open the page of a server."""
    context = browser.new_context(viewport=size, color_scheme=scheme, device_scale_factor=1)
    page = context.new_page()
    page.goto(server.url)
    page.locator(".entry, #empty pre").first.wait_for()
    return page


def search(page: Any) -> None:
    """Search by an unlabelled digit."""
    show_unlabelled(page)
    page.locator(".entry.plain").nth(25).click()
    page.locator(".card").nth(9).wait_for()


def take(page: Any, path: Path, *, whole: bool) -> None:
    """Take the picture once everything has come to rest."""
    page.evaluate("scrollTo(0, 0)")
    time.sleep(1)
    page.screenshot(path=path, full_page=whole)


if __name__ == "__main__":
    if sys.argv[1] == "looks":
        looks(Path(sys.argv[2]), [Path(name) for name in sys.argv[3:]])
    else:
        for_docs(Path(sys.argv[1]))
