"""`everhash serve`: serve a collection over HTTP."""

from __future__ import annotations

import ipaddress
import logging
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

import everhash
from everhash.cli.arguments import File
from everhash.cli.formatting import printable
from everhash.extras import require
from everhash.store.connection import find

LINE = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def serve(
    path: File,
    host: Annotated[
        str, typer.Option(help="Address to listen at; --keys is needed unless it is local.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen at; 0 picks a free one.")
    ] = 8765,
    keys: Annotated[
        Path | None,
        typer.Option(
            help="File of keys, made by everhash key. Without one, only local clients are served.",
            envvar="EVERHASH_KEYS",
            show_default=False,
        ),
    ] = None,
    readonly: Annotated[
        bool,
        typer.Option(
            "--readonly", help="Refuse writes, and follow the changes of another process."
        ),
    ] = False,
) -> None:
    """Serve a collection over HTTP until Ctrl-C or SIGTERM; docs/service.md lists the routes.

    Before it ends, it finishes open requests and closes the file.

    Example: everhash serve shop.ever --port 8080 --keys keys.toml
    """
    require("serve")

    from everhash.serve.app import make_app
    from everhash.serve.keys import read_keys
    from everhash.serve.server import bind, run

    known = None if keys is None else read_keys(keys)
    opener = partial(everhash.open, path, readonly=readonly)
    app = make_app(opener, keys=known, readonly=readonly, public=not is_local(host))
    logging.basicConfig(level=logging.WARNING, format=LINE)
    find(path)  # fail before the address is printed
    listening = bind(host, port)
    address = f"[{host}]" if ":" in host else host
    typer.echo(f"serving {printable(path)} at http://{address}:{listening.getsockname()[1]}")
    run(app, listening)


def is_local(host: str) -> bool:
    """Whether an address can be reached from this machine only.

    >>> is_local("127.0.0.1"), is_local("0.0.0.0")
    (True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
