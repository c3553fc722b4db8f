"""everhash: compact binary codes learned online from a labelled stream that never stops growing.

Start with `OnlineHasher`; `everhash.learn.hasher` is the paper, readable beside its PDF.
Names are imported on first use, so that `import everhash` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from everhash import checks, errors, metrics, peers
    from everhash.client.remote import RemoteCollection, connect
    from everhash.codes import Codes
    from everhash.collection.api import CollectionApi
    from everhash.collection.attachments import Attachment
    from everhash.collection.collection import Collection
    from everhash.collection.labels import LabelInfo
    from everhash.collection.learning import LabelReport, NewLabel
    from everhash.collection.opening import create, open, restore, upgrade  # noqa: A004
    from everhash.collection.verification import verify
    from everhash.errors import EverhashError
    from everhash.index.hasher import Hasher
    from everhash.index.index import Index
    from everhash.index.refresh import RefreshReport
    from everhash.learn.advice import Advice, advise
    from everhash.learn.hasher import OnlineHasher
    from everhash.matches import Matches
    from everhash.peers.model_file import load_hasher
    from everhash.sources import read

__version__ = "0.1.0"

__all__ = [
    "Advice",
    "Attachment",
    "Codes",
    "Collection",
    "CollectionApi",
    "EverhashError",
    "Hasher",
    "Index",
    "LabelInfo",
    "LabelReport",
    "Matches",
    "NewLabel",
    "OnlineHasher",
    "RefreshReport",
    "RemoteCollection",
    "__version__",
    "advise",
    "checks",
    "cluster",
    "connect",
    "create",
    "errors",
    "load_hasher",
    "metrics",
    "open",
    "peers",
    "read",
    "restore",
    "upgrade",
    "verify",
]

_HOMES = {
    "Advice": "everhash.learn.advice",
    "Attachment": "everhash.collection.attachments",
    "Codes": "everhash.codes",
    "Collection": "everhash.collection.collection",
    "CollectionApi": "everhash.collection.api",
    "EverhashError": "everhash.errors",
    "Hasher": "everhash.index.hasher",
    "Index": "everhash.index.index",
    "LabelInfo": "everhash.collection.labels",
    "LabelReport": "everhash.collection.learning",
    "Matches": "everhash.matches",
    "NewLabel": "everhash.collection.learning",
    "OnlineHasher": "everhash.learn.hasher",
    "RefreshReport": "everhash.index.refresh",
    "RemoteCollection": "everhash.client.remote",
    "advise": "everhash.learn.advice",
    "connect": "everhash.client.remote",
    "create": "everhash.collection.opening",
    "load_hasher": "everhash.peers.model_file",
    "open": "everhash.collection.opening",
    "read": "everhash.sources",
    "restore": "everhash.collection.opening",
    "upgrade": "everhash.collection.opening",
    "verify": "everhash.collection.verification",
}
_MODULES = {"checks", "cluster", "errors", "metrics", "peers"}
_ESTIMATORS = {"OnlineHasher", "load_hasher"}
"""What brings scikit-learn with it; see `everhash.estimator`."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"everhash.{name}")
    if name in _ESTIMATORS:
        import_module("everhash.estimator").join_sklearn()
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'everhash' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
