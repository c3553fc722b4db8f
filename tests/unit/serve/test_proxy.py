"""nginx, with the configuration that docs/service.md recommends, in front of a service."""

from __future__ import annotations

import re
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

import everhash
from tests.conftest import missing
from tests.unit.client.scripted_service import CERTIFICATE
from tests.unit.serve.serving import DIM, filled, serving, until

CONFIGURATION = Path(__file__).parents[3] / "docs" / "nginx.conf"
TRUSTED = ssl.create_default_context(cadata=CERTIFICATE[CERTIFICATE.index("-----BEGIN CERT") :])
NGINX = shutil.which("nginx") or "/usr/sbin/nginx"


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of nginx, which passes on to a service; heads have one second."""
    if not Path(NGINX).exists():
        missing("nginx is not installed", "apt-get install nginx-light")
    folder = tmp_path_factory.mktemp("nginx")
    (folder / "shop.pem").write_text(CERTIFICATE)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with filled() as collection, serving(collection) as served:
        text = CONFIGURATION.read_text()
        text = text.replace("127.0.0.1:8765", f"127.0.0.1:{served.port}")
        text = text.replace("listen 443 ssl", f"listen 127.0.0.1:{port} ssl")
        text = re.sub(r"/etc/ssl/shop\.(pem|key)", str(folder / "shop.pem"), text)
        text = text.replace("client_header_timeout 10s", "client_header_timeout 1s")
        paths = "".join(
            f"{name}_temp_path {folder}/{name};"
            for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        text = text.replace("http {", f"http {{ access_log off; {paths}", 1)
        log = folder / "error.log"
        text = f"daemon off; pid {folder}/nginx.pid; error_log {log};\n{text}"
        (folder / "nginx.conf").write_text(text)
        arguments = [NGINX, "-p", str(folder), "-e", str(log), "-c", str(folder / "nginx.conf")]
        process = subprocess.Popen(arguments)
        try:
            until(lambda: answers(port) or process.poll() is not None)
            assert process.poll() is None, log.read_text()
            yield port
        finally:
            process.terminate()
            process.wait(30)


def answers(port: int) -> bool:
    try:
        return httpx.get(f"https://localhost:{port}/live", verify=TRUSTED).status_code == 200
    except httpx.TransportError:
        return False


def test_the_client_works_through_it(
    proxy: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ca.pem").write_text(CERTIFICATE)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    with everhash.connect(f"https://localhost:{proxy}") as collection:
        assert len(collection) == 60
        assert collection.search([[0.5] * DIM] * 20).ids.shape == (20, 10)
        collection.snapshot(tmp_path / "copy.ever")
    assert everhash.verify(tmp_path / "copy.ever").problems == ()


def test_events_arrive_as_they_happen(proxy: int) -> None:
    with (
        httpx.Client(base_url=f"https://localhost:{proxy}", verify=TRUSTED, timeout=20) as client,
        client.stream("GET", "/events") as events,
    ):
        lines = events.iter_lines()
        assert next(lines) == "event: stats"
        body = {"ids": [1], "labels": ["soon"], "new": True}
        answer = httpx.post(f"https://localhost:{proxy}/label", json=body, verify=TRUSTED)
        assert answer.status_code == 200
        while next(lines) != "event: labelled":
            pass


def test_a_head_that_comes_slowly_is_cut_off(proxy: int) -> None:
    with socket.create_connection(("127.0.0.1", proxy), 60) as silent:  # not even TLS
        began = time.monotonic()
        assert silent.recv(1) == b""
        assert time.monotonic() - began < 50  # nginx by itself would wait 60 s


def test_connections_of_one_address_are_limited(proxy: int) -> None:
    seen = []
    with ExitStack() as stack:
        for _ in range(40):
            client = stack.enter_context(
                httpx.Client(base_url=f"https://localhost:{proxy}", verify=TRUSTED, timeout=20)
            )
            seen.append(stack.enter_context(client.stream("GET", "/events")).status_code)
    assert set(seen) == {200, 503}
    assert seen.count(200) <= 32
    until(lambda: answers(proxy))


def test_a_body_that_is_too_large_is_refused(proxy: int) -> None:
    with (
        socket.create_connection(("127.0.0.1", proxy), 60) as bare,
        TRUSTED.wrap_socket(bare, server_hostname="localhost") as connection,
    ):
        head = f"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Length: {65 << 20}\r\n\r\n"
        connection.sendall(head.encode())
        assert connection.recv(12) == b"HTTP/1.1 413"
