"""Make the pictures of docs/page.md: python -m tests.browser.screenshots docs."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from playwright.sync_api import sync_playwright

from tests.browser.conftest import NAMES, OPTIONS
from tests.browser.processes import Server, Servers
from tests.browser.reading import PHONE, number, show_unlabelled, until

WIDE = {"width": 1360, "height": 900}


def main(folder: Path) -> None:
    """Take one picture while digits arrive, the others when all are there."""
    chromium = next(path for name in NAMES if (path := shutil.which(name)))
    with TemporaryDirectory() as files, sync_playwright() as playwright:
        servers = Servers(Path(files))
        browser = playwright.chromium.launch(executable_path=chromium, args=list(OPTIONS))
        try:
            moving = servers.demo("moving", 25)
            page = opened(browser, moving, WIDE, "light")
            until(lambda: number(page, "entries") > 900, 120)
            search(page)
            take(page, folder / "page-light.png", whole=True)
            settled = servers.demo("settled", 3000).until(1500)
            page = opened(browser, settled, WIDE, "dark")
            search(page)
            page.locator("#matrix-view").hover(position={"x": 500, "y": 120})
            take(page, folder / "page-dark.png", whole=True)
            page = opened(browser, settled, PHONE, "light")
            take(page, folder / "page-phone.png", whole=False)
        finally:
            browser.close()
            servers.close()


def opened(browser: Any, server: Server, size: dict[str, int], scheme: str) -> Any:
    """Open the page of a server."""
    context = browser.new_context(viewport=size, color_scheme=scheme, device_scale_factor=1)
    page = context.new_page()
    page.goto(server.url)
    page.locator(".entry").nth(20).wait_for()
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
    main(Path(sys.argv[1]))
