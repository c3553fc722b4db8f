"""Creating and opening collections, and restoring them from snapshots."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from everhash.collection.collection import Collection
from everhash.collection.formats import current_options
from everhash.collection.loading import fresh_about
from everhash.collection.pieces import pieces_of
from everhash.errors import OptionError
from everhash.index.index import CODINGS
from everhash.index.state import KEEPING
from everhash.learn.stream_hasher import StreamHasher
from everhash.peers.registry import new_hasher
from everhash.store.schema import VERSION
from everhash.store.store import Store


def create(
    path: str | os.PathLike[str] | None,
    dim: int | None = None,
    bits: int = 32,
    *,
    labels_per_cycle: int | str | None = "auto",
    random_state: int | None = 0,
    method: str = "everhash",
    hasher: StreamHasher | None = None,
    coding: str = "home",
    keep_features: str = "all",
    likeness: bool = True,
    auto_refresh: bool = True,
    durability: str = "commit",
) -> Collection:
    """Create a collection.

    Args:
        path: of the new file; None keeps the collection in memory.
        dim: features a row.
        bits: k, hash functions of a cycle; a code takes this many bits.
        labels_per_cycle: rho, labels that share k functions; see `OnlineHasher`.
        random_state: seed.
        method: how codes are learned; `everhash.peers.names()` lists what there is.
        hasher: one with other options, or one that has learned already, instead of the above.
        coding: "home" or "full"; see `Index`.
        keep_features: whose features to keep, in half precision, on disk: of "all" entries, so
            that labels can be corrected and likeness is exact; of "unlabelled" ones, so that they
            can be refreshed; of "none".
        likeness: keep likeness codes, a bit a dimension and 8 bytes, which order the entries of a
            label and find what has none.
        auto_refresh: bring unlabelled entries up to date by itself when the mapping was published;
            without it call `refresh`.
        durability: "commit", "interval:100ms" or "none": when a call reaches the disk.
    """
    if hasher is None:
        hasher = _new_hasher(method, bits, labels_per_cycle, random_state)
    if not hasher.__sklearn_is_fitted__():
        if dim is None:
            raise OptionError("how many features does a row have?", hint="pass {option dim}")
        hasher.begin(dim)
    elif dim not in (None, hasher.n_features_in_):
        raise OptionError(f"dim is {dim}, but the hasher has {hasher.n_features_in_} features")
    _check_choice("coding", coding, CODINGS)
    _check_choice("keep_features", keep_features, KEEPING)
    options = {"coding": coding, "keep_features": keep_features, "certify": True}
    options["likeness"] = bool(likeness)
    model = hasher.to_bytes()
    about = {**fresh_about(options), "model_bytes": len(model)}
    target = None if path is None else Path(path)
    store = Store.create(target, about, pieces_of("model", model), durability=durability)
    try:
        return Collection(store, auto_refresh=auto_refresh)
    except BaseException:
        store.discard()
        raise


def _check_choice(option: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise OptionError(
            f"{option} {value!r:.40} is unknown", hint=f"choose from {', '.join(choices)}"
        )


def _new_hasher(
    method: str, bits: int, labels_per_cycle: int | str | None, random_state: int | None
) -> StreamHasher:
    """Return a hasher; `labels_per_cycle` is passed on only if the caller chose it."""
    options: dict[str, Any] = {"random_state": random_state}
    if labels_per_cycle != "auto":
        options["labels_per_cycle"] = labels_per_cycle
    return new_hasher(method, bits, **options)


def open(  # noqa: A001 - the name users know from files
    path: str | os.PathLike[str],
    *,
    readonly: bool = False,
    auto_refresh: bool = True,
    durability: str = "commit",
) -> Collection:
    """Open a collection.

    Args:
        path: of its file.
        readonly: only read, beside another process that may write; see `Collection.catch_up`.
        auto_refresh: bring unlabelled entries up to date by itself; see `create`.
        durability: "commit", "interval:100ms" or "none": when a call reaches the disk.
    """
    store = Store.open(Path(path), readonly=readonly, durability=durability)
    try:
        collection = Collection(store, auto_refresh=auto_refresh)
        if not readonly:
            collection.compact_if_worth_it()
        return collection
    except BaseException:
        store.close()
        raise


def restore(snapshot: str | os.PathLike[str], path: str | os.PathLike[str]) -> None:
    """Create a collection at `path` from a snapshot, which is read first."""
    with open(snapshot, readonly=True) as source:
        source.snapshot(path)


def upgrade(path: str | os.PathLike[str]) -> tuple[int, int]:
    """Bring a file to the newest version of the format; return its version before and now.

    The first call that writes does the same. The file is read first, so that a damaged one is left
    as it is. Everhash of before cannot read it afterwards; `snapshot` keeps a copy that it can.
    """
    store = Store.open(Path(path))
    with Collection(store, auto_refresh=False):
        before = store.version
        if before < VERSION:
            with store.transaction() as transaction:
                transaction.about["options"] = current_options(transaction.about["options"])
        return before, VERSION
