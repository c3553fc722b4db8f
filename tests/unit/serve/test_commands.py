"""`everhash serve` and `everhash key`, as somebody at a terminal meets them."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

import everhash
from everhash import cli
from everhash.errors import (
    DataMissingError,
    EverhashError,
    OptionError,
)
from everhash.serve.keys import read_keys
from everhash.serve.server import STOP_SECONDS
from tests.children import ignoring_interrupts
from tests.conftest import slowly
from tests.unit.serve.serving import DIM, filled, until

ROWS = [[0.5] * DIM]
command = import_module("everhash.cli.serve")  # the package has the function under this name


@contextmanager
def started(path: Path, *, background: bool = False) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run `everhash serve` on a free port; yield the process and the address it says."""
    arguments = ("-m", "everhash", "serve", str(path), "--port", "0")
    process = subprocess.Popen(
        ignoring_interrupts(*arguments) if background else [sys.executable, *arguments],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.fullmatch(r"serving (.+) at (http://127\.0\.0\.1:\d+)\n", line)
        assert found, line + (process.stderr.read() if process.stderr and not line else "")
        assert found[1] == str(path)
        yield process, found[2]
    finally:
        process.kill()
        process.communicate()


def ready(address: str) -> bool:
    return httpx.get(f"{address}/ready").status_code == 200


@pytest.mark.parametrize("background", [False, True])
def test_it_says_where_it_serves_and_ends_well(tmp_path: Path, background: bool) -> None:
    """By Ctrl-C; where a script has started it in the background, by SIGTERM alone."""
    path = tmp_path / "shop.ever"
    filled(path).close()
    with started(path, background=background) as (process, address):
        assert ready(address)  # what is said to serve does
        for _ in range(2 * background):
            process.send_signal(signal.SIGINT)
            until(lambda: ready(address), 120)
        with httpx.Client(base_url=address, timeout=60) as client:
            assert client.post("/add", json={"rows": ROWS, "ids": ["a"]}).status_code == 200
            with client.stream("GET", "/events") as events:
                assert next(events.iter_lines()) == "event: stats"
                process.send_signal(signal.SIGTERM if background else signal.SIGINT)
                assert process.wait(60) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""
    with everhash.open(path) as collection:
        assert "a" in collection
    assert not list(tmp_path.glob("*-wal"))


def listens(port: int) -> bool:
    """Whether anybody accepts connections at a port."""
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionRefusedError:
        return False
    return True


def test_at_the_second_interrupt_it_waits_for_nobody(tmp_path: Path) -> None:
    path = tmp_path / "shop.ever"
    filled(path).close()
    with started(path) as (process, address):
        until(lambda: ready(address), 120)
        port = int(address.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as slow:
            head = b"POST /add HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
            slow.sendall(head + b"Content-Length: 9\r\n\r\n")
            assert b"100 Continue" in slow.recv(1000)
            process.send_signal(signal.SIGINT)
            until(lambda: not listens(port))
            assert process.poll() is None  # it waits for the body
            process.send_signal(signal.SIGINT)
            assert process.wait(STOP_SECONDS - 5) == 130
        assert process.stderr is not None
        said = process.stderr.read()
        assert "requests under way were given up" in said
        assert said.count("\n") == 1
    assert not list(tmp_path.glob("*-wal"))  # it was closed


def test_nothing_is_announced_of_a_file_that_is_not_there(tmp_path: Path) -> None:
    ran = CliRunner().invoke(cli.app, ["serve", str(tmp_path / "no.ever")])
    assert isinstance(ran.exception, DataMissingError)
    assert ran.output == ""


def serve_and_wait(path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "everhash", "serve", str(path), "--port", "0"]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_what_cannot_be_opened_fails_before_an_address_is_announced(tmp_path: Path) -> None:
    path, damaged = tmp_path / "shop.ever", tmp_path / "damaged.ever"
    damaged.write_bytes(b"not a collection" * 1000)
    with filled(path):  # another process writes to it
        locked = serve_and_wait(path)
    for ended, code in ((locked, 8), (serve_and_wait(damaged), 5)):
        assert (ended.returncode, ended.stdout) == (code, "")
        assert ended.stderr.startswith("error: ")
        assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize("seconds", [0.05, 0.6, 1.2, *slowly(0.3, 0.9, 1.6, 2.0, 3.0)])
def test_an_interrupt_at_any_moment_ends_well(tmp_path: Path, seconds: float) -> None:
    path = tmp_path / "shop.ever"
    filled(path).close()
    process = subprocess.Popen(
        [sys.executable, "-c", "from everhash.cli import run; print(1, flush=True); run()",
         "serve", str(path), "--port", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.readline()  # the command has begun
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode in (0, 130)
    assert said in ("", "interrupted\n")
    with everhash.open(path) as collection:  # nobody holds it
        assert len(collection) == 60


@pytest.mark.slow
def test_an_interrupt_while_kernels_compile_waits_for_no_compiler(tmp_path: Path) -> None:
    path = tmp_path / "shop.ever"
    filled(path).close()
    slow = (
        "from everhash import kernels; import time; "
        "kernels.load_all = lambda **_: print('compiling', flush=True) or time.sleep(99)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", f"{slow}; from everhash.cli import run; run()",
         "serve", str(path), "--port", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "compiling\n"  # and nothing that says that it serves
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (0, "")
    assert not list(tmp_path.glob("*-wal"))


def failing(*arguments: str) -> EverhashError:
    """Return what a command raises."""
    result = CliRunner().invoke(cli.app, list(arguments))
    assert isinstance(result.exception, EverhashError), result.output
    assert result.output == ""
    return result.exception


def test_what_cannot_be_served_is_refused_at_once(tmp_path: Path) -> None:
    path = str(tmp_path / "shop.ever")
    error = failing("serve", path, "--host", "0.0.0.0")  # noqa: S104
    assert "needs keys" in error.message
    assert isinstance(failing("serve", path, "--keys", "no.toml"), DataMissingError)
    filled(path).close()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        error = failing("serve", path, "--port", str(taken.getsockname()[1]))
        assert isinstance(error, OptionError)
        assert "in use" in error.message
    assert isinstance(failing("serve", path, "--host", "no such host"), OptionError)


def test_keys_may_be_named_by_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("EVERHASH_KEYS", str(tmp_path / "no.toml"))
    error = failing("serve", str(tmp_path / "shop.ever"))
    assert "no.toml" in error.message


def test_only_this_machines_addresses_are_local() -> None:
    local = ("127.0.0.1", "127.1.2.3", "::1", "localhost", "LocalHost")
    assert all(command.is_local(host) for host in local)
    other = ("0.0.0.0", "::", "10.0.0.1", "example.org", "", "localhost.example.org")  # noqa: S104
    assert not any(command.is_local(host) for host in other)


def output(*arguments: str) -> str:
    result = CliRunner().invoke(cli.app, list(arguments))
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_key_is_printed_once_and_its_hash_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    secret = output("key", "write", "--name", "loader", "--keys", str(path)).strip()
    found = read_keys(path).find(secret.encode())
    assert found is not None
    assert (found.name, found.role) == ("loader", "write")
    assert re.fullmatch(r"eh_[\w-]{43}", secret)
    told = json.loads(output("key", "read", "--json"))
    assert set(told) == {"key", "name", "role", "sha256"}
    secret, _, lines = output("key", "admin").partition("\n")
    other = tmp_path / "other.toml"
    other.write_text(lines)
    found = read_keys(other).find(secret.encode())
    assert found is not None
    assert found.role == "admin"


def test_two_keys_cannot_have_one_name(tmp_path: Path) -> None:
    path = str(tmp_path / "keys.toml")
    output("key", "read", "--name", "page", "--keys", path)
    error = failing("key", "write", "--name", "page", "--keys", path)
    assert "same name" in error.message
    assert len(read_keys(Path(path))) == 1


def test_the_service_is_not_loaded_by_other_commands() -> None:
    code = "import sys, everhash.cli.main; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in run.stdout.split()}
    assert not loaded & {"fastapi", "uvicorn", "starlette", "pydantic"}
