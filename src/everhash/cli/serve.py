"""`everhash serve`: serve a collection over HTTP."""

from __future__ import annotations

import ipaddress
import logging
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import everhash
from everhash.cli.arguments import (
    AsJson,
    check_cluster,
    is_cluster,
    local_argument,
    open_cluster,
)
from everhash.cli.formatting import print_json, printable
from everhash.cli.terminal import note, waiting
from everhash.extras import require

if TYPE_CHECKING:
    from everhash.cluster.serving import ServedCluster

LINE = "%(asctime)s %(levelname)s %(name)s: %(message)s"


Served = Annotated[
    Path, local_argument("The collection's file, or the storage folder of a cluster.")
]
Host = Annotated[
    str, typer.Option(help="Address to listen at; --keys is needed unless it is local.")
]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port to listen at; 0 picks a free one.")]
KeyFile = Annotated[
    Path | None,
    typer.Option(
        help="File of keys, made by everhash key. Without one, only local clients are served.",
        envvar="EVERHASH_KEYS",
        show_default=False,
    ),
]
Readonly = Annotated[
    bool,
    typer.Option("--readonly", help="Refuse writes, and follow the changes of another process."),
]
Cors = Annotated[
    list[str] | None,
    typer.Option(
        help="Origin of another site whose pages may ask, such as https://shop.example; may be "
        "repeated.",
        metavar="ORIGIN",
    ),
]
AccessLog = Annotated[
    bool, typer.Option("--access-log", help="Write a line for each request to stderr.")
]


OnCluster = Annotated[
    bool,
    typer.Option(
        "--cluster", help="Serve a cluster: refuse a path that is not its storage folder."
    ),
]


def serve(
    path: Served,
    host: Host = "127.0.0.1",
    port: Port = 8765,
    keys: KeyFile = None,
    readonly: Readonly = False,
    cors: Cors = None,
    access_log: AccessLog = False,
    cluster: OnCluster = False,
    as_json: AsJson = False,
) -> None:
    """Serve a collection over HTTP until Ctrl-C or SIGTERM; docs/service.md lists the routes.

    Before it ends, it finishes open requests and closes the file.

    Example: everhash serve shop.ever --port 8080 --keys keys.toml
    """
    require("serve")
    if cluster:
        check_cluster(path)

    from everhash.serve.app import make_app
    from everhash.serve.keys import read_keys
    from everhash.serve.server import bind, end_interrupted, open_first, run

    known = None if keys is None else read_keys(keys)
    app = make_app(
        _served(path) if is_cluster(path) else partial(everhash.open, path, readonly=readonly),
        keys=known,
        readonly=readonly,
        public=not is_local(host),
        cors=cors or (),
        access_log=access_log,
    )
    logging.basicConfig(level=logging.WARNING, format=LINE)
    listening = bind(host, port)
    try:
        note(f"loading {printable(path)} …")
        with waiting():
            open_first(app)  # a file that cannot be served fails before the server runs
        address = f"[{host}]" if ":" in host else host
        url = f"http://{address}:{listening.getsockname()[1]}"
        app.service.on_ready = partial(_announce, path, url, as_json=as_json)
        run(app, listening)
    except KeyboardInterrupt:
        end_interrupted(app.service)
    finally:
        app.service.close_collection()
        listening.close()


def _announce(path: Path, url: str, *, as_json: bool) -> None:
    """Say where the collection is served: requests can be answered now."""
    if as_json:
        print_json({"path": str(path), "url": url})
    else:
        typer.echo(f"serving {printable(path)} at {url}")


def _served(storage: Path) -> ServedCluster:
    """Open a cluster to serve it; what is wrong with it is raised before the server runs."""
    from everhash.cluster.serving import ServedCluster
    from everhash.serve import limits

    # a search that misses a shard has to be answered before its request is given up
    return ServedCluster(open_cluster(str(storage), patience=limits.SECONDS / 2), storage)


def is_local(host: str) -> bool:
    """Whether an address can be reached from this machine only.

    >>> is_local("127.0.0.1"), is_local("0.0.0.0")
    (True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
