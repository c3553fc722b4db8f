"""everhash: compact binary codes learned online from a labelled stream that never stops growing.

Start with `OnlineHasher`; `everhash.learn.hasher` is the paper, readable beside its PDF.
Names are imported on first use, so that `import everhash` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from everhash import errors, metrics
    from everhash.codes import Codes, Hasher
    from everhash.errors import EverhashError
    from everhash.index.index import Index
    from everhash.index.matches import Matches
    from everhash.index.refresh import RefreshReport
    from everhash.learn.advice import Advice, advise
    from everhash.learn.hasher import OnlineHasher
    from everhash.learn.model_file import load_hasher

__version__ = "0.1.0"

__all__ = [
    "Advice",
    "Codes",
    "EverhashError",
    "Hasher",
    "Index",
    "Matches",
    "OnlineHasher",
    "RefreshReport",
    "__version__",
    "advise",
    "errors",
    "load_hasher",
    "metrics",
]

_HOMES = {
    "Advice": "everhash.learn.advice",
    "Codes": "everhash.codes",
    "EverhashError": "everhash.errors",
    "Hasher": "everhash.codes",
    "Index": "everhash.index.index",
    "Matches": "everhash.index.matches",
    "OnlineHasher": "everhash.learn.hasher",
    "RefreshReport": "everhash.index.refresh",
    "advise": "everhash.learn.advice",
    "load_hasher": "everhash.learn.model_file",
}
_MODULES = {"errors", "metrics"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"everhash.{name}")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'everhash' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
