"""A real browser, real servers, and an eye on everything a page says and asks for."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import everhash
from tests.browser.collections import make_shop
from tests.browser.processes import Server, Servers, Site
from tests.conftest import missing
from tests.unit.serve.serving import serving

NAMES = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = (
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-first-run"),
)
INSTALL = "apt-get install chromium, and pip install playwright"
WIDE = {"width": 1280, "height": 900}


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """Chromium, without a window; closed before other tests, whose event loops it would disturb."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        found = None
    if found is None:
        missing("the page is tested in a real browser", INSTALL)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(OPTIONS))
        yield browser
        browser.close()


@dataclass
class Watched:
    """A page, and what it has done: words in the console, requests to other hosts."""

    page: Any
    host: str
    words: list[str] = field(default_factory=list)
    strayed: list[str] = field(default_factory=list)

    def hear(self, message: Any) -> None:
        """Note a word in the console."""
        if message.type in ("error", "warning"):
            self.words.append(message.text)

    def note(self, request: Any) -> None:
        """Note a request that leaves the host."""
        parts = urlsplit(request.url)
        if parts.scheme not in ("blob", "data") and parts.netloc != self.host:
            self.strayed.append(request.url)


Open = Callable[..., Any]


@contextmanager
def watching(browser: Any) -> Iterator[Open]:
    """Return a function that opens a server's page; afterwards nothing may have gone wrong.

    `allowed` is a part of console messages that the test expects, say of a refused request.
    """
    contexts: list[Any] = []
    watched: list[tuple[Watched, str]] = []

    def open_page(server: Site, *, allowed: str = "", **options: Any) -> Any:
        contexts.append(browser.new_context(**{"viewport": WIDE, **options}))
        page = contexts[-1].new_page()
        page.set_default_timeout(60_000)
        eye = Watched(page, urlsplit(server.url).netloc)
        watched.append((eye, allowed))
        page.on("console", eye.hear)
        page.on("pageerror", lambda error: eye.words.append(f"uncaught: {error}"))
        page.on("request", eye.note)
        page.goto(server.url)
        page.locator("#connection[data-state=up]").wait_for()
        return page

    yield open_page
    for eye, allowed in watched:
        wrong = [word for word in eye.words if not allowed or allowed not in word]
        assert (wrong, eye.strayed) == ([], [])
    for context in contexts:
        context.close()


@pytest.fixture
def opened(browser: Any) -> Iterator[Open]:
    """Open pages for one test."""
    with watching(browser) as open_page:
        yield open_page


@pytest.fixture(scope="module")
def opened_once(browser: Any) -> Iterator[Open]:
    """Open a page that several tests of a file go on with."""
    with watching(browser) as open_page:
        yield open_page


@pytest.fixture(scope="package")
def servers(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """The servers of all tests, started by those who need them; without a browser nobody does."""
    assert browser.is_connected()
    servers = Servers(tmp_path_factory.mktemp("served"))
    yield servers
    servers.close()


@pytest.fixture(scope="package")
def slow(servers: Servers) -> Server:
    """The demo, with a new label every four seconds."""
    return servers.demo("slow", 10)


@pytest.fixture(scope="package")
def digits_file(servers: Servers) -> Path:
    """What the demo leaves when all digits have arrived."""
    assert servers.demo("digits", 3000).until(1500).stop() == 0
    return servers.folder / "digits.ever"


@pytest.fixture(scope="module")
def digits_page(digits_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A copy of that, served from here; one a file of tests, since they change it."""
    file = shutil.copy(digits_file, tmp_path_factory.mktemp("copy"))
    with everhash.open(file) as digits, serving(digits) as served:
        yield Site(served.address)


@pytest.fixture(scope="package")
def shop_file(servers: Servers) -> Path:
    """A collection with 300 labels, some of them hostile, and nothing but texts and codes."""
    make_shop(servers.folder / "original.ever")
    return servers.folder / "original.ever"


@pytest.fixture(scope="package")
def shop(servers: Servers, shop_file: Path) -> Server:
    """A copy of that, served."""
    file = shutil.copy(shop_file, servers.folder / "shop.ever")
    return servers.start("shop", "serve", file, "--port", "0")
