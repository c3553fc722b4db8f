"""A page of another site asks the service as a web developer would write it, with fetch."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from everhash.serve.keys import Keys, make_key
from tests.unit.serve.serving import DIM, filled, serving

SECRET, KEY = make_key("read")
ASK = """async ([url, key, body]) => {
  const headers = { "Content-Type": "application/json", Authorization: `Bearer ${key}` };
  try {
    const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
    return { status: answer.status, told: await answer.json() };
  } catch (error) {
    return { refused: String(error) };
  }
}"""


@contextmanager
def site(folder: Path) -> Iterator[str]:
    """Serve a folder as another site; yield its origin."""
    (folder / "index.html").write_text("<!doctype html><title>shop</title>")

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_page_asks_if_its_origin_was_allowed(browser: Any, tmp_path: Path) -> None:
    with site(tmp_path) as origin, filled() as collection:
        keys = Keys([KEY])
        with (
            serving(collection, keys=keys, cors=[origin]) as open_to_it,
            serving(collection, keys=keys) as closed_to_it,
        ):
            page = browser.new_page()
            page.goto(origin)
            body = {"rows": [[0.5] * DIM], "k": 3, "payloads": True}
            allowed = page.evaluate(ASK, [f"{open_to_it.address}/search", SECRET, body])
            wrong = page.evaluate(ASK, [f"{open_to_it.address}/search", "eh_no", body])
            refused = page.evaluate(ASK, [f"{closed_to_it.address}/search", SECRET, body])
            page.close()
    assert allowed["status"] == 200
    assert len(allowed["told"]["matches"][0]["found"]) == 3
    assert wrong["status"] == 401
    assert "Authorization" in wrong["told"]["error"]["hint"]
    assert "Failed to fetch" in refused["refused"]
