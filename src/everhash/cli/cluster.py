"""`everhash cluster`: a collection on several machines.

Every command that takes a collection takes the storage folder of a cluster; those that are needed
most stand here too, with the address of Ray as an option.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from everhash import limits
from everhash.cli.arguments import (
    LOCAL,
    RAY,
    AsJson,
    check_cluster,
    connecting,
    file_argument,
    open_cluster,
    reaching,
)
from everhash.cli.collection import Bits, Dim, LabelsPerCycle, RandomState
from everhash.cli.formatting import counted, print_json, printable
from everhash.cli.ingest import Durability, ingest
from everhash.cli.search import search
from everhash.cli.serve import serve
from everhash.cli.stats import stats
from everhash.cli.terminal import Bar
from everhash.learn.options import whole_number

cluster = typer.Typer(
    name="cluster",
    help="A collection on several machines, which Ray joins; see docs/how-to/cluster.md.",
    no_args_is_help=True,
)
Storage = Annotated[
    Path, file_argument("The cluster's folder, by a path that all nodes have.", metavar="STORAGE")
]
Address = Annotated[
    str,
    typer.Option(
        help=f"Address of the Ray cluster, as host:port; auto is the one of this machine, {LOCAL} "
        "starts one for this command only, to try things out.",
        envvar=RAY,
        show_envvar=True,
    ),
]
Partial = Annotated[
    bool,
    typer.Option(
        "--partial", help="Answer by the shards that can be reached, and name the others."
    ),
]
Shards = Annotated[int, typer.Option(help="Parts that entries are spread over.")]
MoreShards = Annotated[
    int | None, typer.Option(help="How many shards to have; more than there are.")
]
Replicas = Annotated[
    int, typer.Option(help="Copies of each shard; with two, searches survive the loss of one.")
]


def _on_cluster(
    command: Callable[..., None], *, without: tuple[str, ...] = (), partial: bool = False
) -> Callable[..., None]:
    """Return a command of a collection for a cluster: with options that say how to reach it."""
    first, *others = inspect.signature(command, eval_str=True).parameters.values()
    takes = get_args(first.annotation)[0]  # a path, or a text that may be an address

    def run(**given: Any) -> None:
        how = {name: given.pop(name) for name in ("address", "partial") if name in given}
        storage = given.pop(first.name)
        check_cluster(storage)
        with reaching(**how):
            command(takes(storage), **given)

    keyword = inspect.Parameter.KEYWORD_ONLY
    more = [inspect.Parameter("address", keyword, default="auto", annotation=Address)]
    if partial:
        more.append(inspect.Parameter("partial", keyword, default=False, annotation=Partial))
    kept = [parameter for parameter in others if parameter.name not in without]
    parameters = [first.replace(annotation=Storage), *kept, *more]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__doc__ = _for_cluster(command)
    return run


def _for_cluster(command: Callable[..., None]) -> str:
    """Return what a command says of itself, with an example for a cluster."""
    text = str(command.__doc__).replace(" --create", "")
    name = command.__name__
    return re.sub(rf"everhash {name} [\w.]+", f"everhash cluster {name} /data/shop", text)


def create(
    storage: Storage,
    dim: Dim,
    bits: Bits = 32,
    shards: Shards = 8,
    replicas: Replicas = 1,
    labels_per_cycle: LabelsPerCycle = None,
    random_state: RandomState = 0,
    durability: Durability = "commit",
    address: Address = "auto",
    as_json: AsJson = False,
) -> None:
    """Create an empty collection on a cluster.

    Example: everhash cluster create /data/shop --dim 384 --shards 8 --replicas 2
    """
    from everhash import cluster as clusters

    whole_number("--dim", dim, least=1, most=limits.DIMS)
    whole_number("--bits", bits, least=1)
    whole_number("--random-state", random_state, least=0)
    if labels_per_cycle is not None:
        whole_number("--labels-per-cycle", labels_per_cycle, least=1)
    with connecting(address) as ray:
        made = clusters.create(
            ray,
            storage,
            dim,
            bits,
            shards=shards,
            replicas=replicas,
            labels_per_cycle="auto" if labels_per_cycle is None else labels_per_cycle,
            random_state=random_state,
            durability=durability,
        )
    _tell_made("created", storage, made, replicas, as_json=as_json)


def import_(
    storage: Storage,
    file: Annotated[Path, file_argument("The collection's file.", metavar="FILE")],
    shards: Shards = 8,
    replicas: Replicas = 1,
    durability: Durability = "commit",
    address: Address = "auto",
    as_json: AsJson = False,
) -> None:
    """Make a new cluster from a collection's file, which stays as it is.

    Example: everhash cluster import /data/shop shop.ever --shards 8
    """
    from everhash.cluster.importing import import_file

    with connecting(address) as ray:
        made = import_file(
            ray,
            storage,
            file,
            shards=shards,
            replicas=replicas,
            durability=durability,
        )
    _tell_made("imported", storage, made, replicas, as_json=as_json)


def _tell_made(done: str, storage: Path, made: Any, replicas: int, *, as_json: bool) -> None:
    """Print what a new cluster holds."""
    with made:
        found = made.stats()
    if as_json:
        print_json({**found, "replicas": replicas})
        return
    width = f"{counted(found['dim'], 'feature')} a row, {found['bits']} bits a code"
    parts = f"{counted(found['shards'], 'shard')}, {counted(replicas, 'copy', 'copies')} of each"
    held = counted(found["entries"], "entry", "entries")
    typer.echo(f"{done} {printable(storage)}: {width}; {parts}; {held}")


def rebalance(
    storage: Storage,
    shards: MoreShards = None,
    address: Address = "auto",
    as_json: AsJson = False,
) -> None:
    """Add shards and move entries to them, or go on with a move that was interrupted.

    Searches and writes go on meanwhile.

    Example: everhash cluster rebalance /data/shop --shards 16
    """
    check_cluster(storage)
    with reaching(address), open_cluster(str(storage)) as collection:
        moved = _watched(collection.rebalance())
        if shards is not None and shards != collection.stats()["shards"]:
            moved += _watched(collection.grow(shards))
        found = collection.stats()
    if as_json:
        print_json({"moved": moved, "shards": found["shards"], "entries": found["entries"]})
    else:
        held = counted(found["entries"], "entry", "entries")
        shown = counted(found["shards"], "shard")
        typer.echo(f"{counted(moved, 'entry', 'entries')} moved: {held} on {shown}")


def _watched(steps: Iterator[int]) -> int:
    """Move entries with a progress bar; return how many have moved."""
    moved = 0
    with Bar("moving", None) as bar:
        for now in steps:
            bar.advance_by(now - moved)
            moved = now
    return moved


def stop(storage: Storage, address: Address = "auto", as_json: AsJson = False) -> None:
    """End the processes of a cluster; its files stay, and the next command starts it again.

    Example: everhash cluster stop /data/shop
    """
    from everhash import cluster as clusters

    check_cluster(storage)
    with connecting(address) as ray:
        ended = clusters.stop(ray, storage)
    if as_json:
        print_json({"path": str(storage), "ended": ended})
    else:
        typer.echo(f"stopped {printable(storage)}: {counted(ended, 'process', 'processes')} ended")


cluster.command()(create)
cluster.command("ingest")(_on_cluster(ingest, without=("create", "bits")))
cluster.command("search")(_on_cluster(search, partial=True))
cluster.command("serve")(_on_cluster(serve, partial=True, without=("cluster",)))
cluster.command("stats")(_on_cluster(stats))
cluster.command()(rebalance)
cluster.command("import")(import_)
cluster.command()(stop)
