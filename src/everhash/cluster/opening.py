"""Creating, opening and stopping a cluster on Ray."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

from everhash import limits
from everhash.cluster.asking import Asker
from everhash.cluster.collection import ClusterCollection
from everhash.cluster.connecting import connect
from everhash.cluster.lead_file import LeadFile
from everhash.errors import OptionError, StoreError
from everhash.learn.hasher import OnlineHasher
from everhash.learn.options import whole_number


def create(
    address: str | None,
    storage: str | os.PathLike[str],
    dim: int,
    bits: int = 32,
    *,
    shards: int = 8,
    replicas: int = 1,
    labels_per_cycle: int | str | None = "auto",
    random_state: int | None = 0,
    durability: str = "commit",
    partial: bool = False,
    patience: float = 60.0,
) -> ClusterCollection:
    """Create a collection on a Ray cluster.

    Args:
        address: of the Ray cluster, as `ray.init` takes it: "auto" for the one of this machine;
            None starts Ray here, for this process.
        storage: a folder, or its file:// URL, that all nodes reach by the same path.
        dim: features a row.
        bits: k, hash functions of a cycle.
        shards: parts that entries are spread over; more can be added later, see `grow`.
        replicas: copies of each shard; with two, searches survive the loss of one.
        labels_per_cycle: rho, labels that share k functions; see `OnlineHasher`.
        random_state: seed.
        durability: "commit", "interval:100ms" or "none": when a write reaches the disk.
        partial: let searches answer by the shards that can be reached; `Matches.missing` names the
            others. Otherwise such a search raises `ServiceError`.
        patience: seconds that a call may take.
    """
    folder = _folder(storage)
    whole_number("shards", shards, least=1, most=limits.SHARDS)
    whole_number("replicas", replicas, least=1, most=limits.COPIES)
    hasher = OnlineHasher(bits, labels_per_cycle, random_state=random_state).begin(dim)
    connect(address)
    folder.mkdir(parents=True, exist_ok=True)
    from everhash.cluster.actors import lead_path

    if not lead_path(folder).exists():
        _end_actors(folder)  # of a cluster whose files somebody has deleted
    LeadFile.create(lead_path(folder), hasher, shards, replicas, durability).close()
    return _opened(folder, replicas, durability, partial=partial, patience=patience)


def open(  # noqa: A001 - the name users know from files
    address: str | None,
    storage: str | os.PathLike[str],
    *,
    durability: str = "commit",
    partial: bool = False,
    patience: float = 60.0,
) -> ClusterCollection:
    """Open a collection on a Ray cluster; its actors are started if they are not there.

    Args:
        address: of the Ray cluster; see `create`.
        storage: the folder that it was created with.
        durability: for actors that are started.
        partial: see `create`.
        patience: seconds that a call may take.
    """
    folder = _folder(storage)
    connect(address)
    from everhash.cluster.actors import lead_path

    path = lead_path(folder)
    if not path.exists():
        raise StoreError(f"there is no cluster in {folder}", hint="{say create a cluster}")
    copies = LeadFile.copies_in(path)
    return _opened(folder, copies, durability, partial=partial, patience=patience)


def stop(address: str | None, storage: str | os.PathLike[str]) -> int:
    """End the actors of a cluster; its files stay, and `open` starts it again from them.

    Returns:
        How many actors there were.
    """
    folder = _folder(storage)
    connect(address)
    return _end_actors(folder)


def _end_actors(folder: Path) -> int:
    """End the actors of the cluster in a folder; return how many there were."""
    import ray

    from everhash.cluster.actors import NAMESPACE, cluster_name

    name, ended = cluster_name(folder), 0
    for actor in ray.util.list_named_actors(all_namespaces=True):
        if actor["namespace"] == NAMESPACE and actor["name"].startswith(name):
            ray.kill(ray.get_actor(actor["name"], NAMESPACE), no_restart=True)
            ended += 1
    return ended


def _opened(
    folder: Path, copies: int, durability: str, *, partial: bool, patience: float
) -> ClusterCollection:
    from everhash.cluster.actors import RayMembers

    members = RayMembers(folder, copies, durability)
    asker = Asker(members, partial=partial, patience=patience)
    asker.table()  # the lead has to be there
    return ClusterCollection(asker, f"cluster at {folder}")


def _folder(storage: str | os.PathLike[str]) -> Path:
    """Return the folder that a path or a file:// URL names."""
    text = os.fspath(storage)
    parts = urlsplit(text)
    if parts.scheme in ("", "file") and parts.netloc in ("", "localhost"):
        return Path(unquote(parts.path) if parts.scheme else text).absolute()
    raise OptionError(
        f"storage {text!r:.80} is not a folder",
        hint="give a folder that all nodes reach by the same path, or its file:// URL",
    )
