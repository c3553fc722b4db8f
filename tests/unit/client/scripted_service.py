"""A service that says what it was told to say, byte for byte."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

LIMITS = {"rows": 10, "queries": 4, "page": 1000, "body": 4096}
CERTIFICATE = """
-----BEGIN EC PRIVATE KEY-----
MHcCAQEEIIm6sxQAY+LNOo3SyXYNn/+W/hwuPSVHQUv2RP5LUj36oAoGCCqGSM49
AwEHoUQDQgAEhgffzJ98RDMF/eRAUMneNiZxeSroISedz3ndYLCze5xquE8Ume+T
TtxvyA3HyxAVg6LNza+LiTKQGPk8UtDbsQ==
-----END EC PRIVATE KEY-----
-----BEGIN CERTIFICATE-----
MIIBcTCCARegAwIBAgIBATAKBggqhkjOPQQDAjAUMRIwEAYDVQQDDAlsb2NhbGhv
c3QwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBQxEjAQBgNVBAMM
CWxvY2FsaG9zdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABIYH38yffEQzBf3k
QFDJ3jYmcXkq6CEnnc953WCws3ucarhPFJnvk07cb8gNx8sQFYOizc2vi4kykBj5
PFLQ27GjWDBWMBQGA1UdEQQNMAuCCWxvY2FsaG9zdDAPBgNVHRMBAf8EBTADAQH/
MA4GA1UdDwEB/wQEAwIChDAdBgNVHQ4EFgQUw1nshLBR1N2LwxxbmNQfQL9bseAw
CgYIKoZIzj0EAwIDSAAwRQIgYltA4K6nLFbNCyET5/9y485IjbQ3mnA8NL8IMF0G
+P8CIQCX2N4xOjoIiMny3xjHLsXvIrSOJVUOFg5bwpT8fwdrsA==
-----END CERTIFICATE-----
"""
"""Of localhost, until 2120; the key protects nothing."""
Answers = dict[str, bytes | Callable[[], bytes | Iterator[bytes]]]


def secured(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """Return what a server needs for https, and the certificate that clients have to trust."""
    file = folder / "localhost.pem"
    file.write_text(CERTIFICATE)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context, file


def answer(content: Any, status: str = "200 OK", kind: str = "application/json") -> bytes:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return (
        f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        + body
    )


class Last(bytes):
    """An answer after which a service hangs up."""


class Scripted:
    """A service that says what it was told to say, byte for byte, and remembers what was asked.

    An answer of b"" closes the connection instead; one in pieces is sent as they come.
    """

    def __init__(self, answers: Answers, secure: ssl.SSLContext | None = None) -> None:
        self._secure = secure
        self.answers: Answers = {
            "/limits": answer(LIMITS),
            "/ready": answer({"ready": True}),
            "/stats": answer({"entries": 0}),
            **answers,
        }
        self.asked: list[str] = []
        self.heads: list[str] = []
        self.connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(connection)
            thread = threading.Thread(target=self._serve, args=[connection])
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            if self._secure is not None:
                connection = self._secure.wrap_socket(connection, server_side=True)
        except OSError:
            connection.close()
            return
        with connection, connection.makefile("rb") as lines:
            try:
                while request := lines.readline():
                    head = b"".join(iter(lambda: lines.readline().strip() + b"\n", b"\n")).decode()
                    length = head.lower().partition("content-length:")[2].partition("\n")[0]
                    lines.read(int(length or 0))
                    target = request.decode().split()[1]
                    self.asked.append(target)
                    self.heads.append(head)
                    script = self.answers[target.partition("?")[0]]
                    said = script() if callable(script) else script
                    for piece in [said] if isinstance(said, bytes) else said:
                        connection.sendall(piece)
                    if not said or isinstance(said, Last):
                        return
            except (OSError, ValueError, IndexError, KeyError):  # not HTTP, or not a route
                return

    def drop_connections(self) -> None:
        """Close what is idle, as a server does after a while."""
        for connection in self._open:
            connection.shutdown(socket.SHUT_RDWR)
        self._open = []

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._open:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue
        for thread in self._threads:
            thread.join()


@contextmanager
def scripted(secure: ssl.SSLContext | None = None, **answers: Any) -> Iterator[Scripted]:
    """Serve while the block runs."""
    service = Scripted({f"/{route}": said for route, said in answers.items()}, secure)
    try:
        yield service
    finally:
        service.close()
