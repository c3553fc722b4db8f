"""All methods by name."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from everhash.errors import OptionError, UnknownNameError
from everhash.peers.description import Description

if TYPE_CHECKING:
    from everhash.learn.stream_hasher import StreamHasher
    from everhash.peers.method import Method

CITATION = (
    "F. Cakir, S. A. Bargal, S. Sclaroff: Online Supervised Hashing for Ever-Growing Datasets, "
    "arXiv preprint, 2015"
)
OURS = {
    "everhash": Description("everhash", "everhash, as it comes", 2026, f"after {CITATION}"),
    "everhash-sgd": Description(
        "everhash-sgd",
        "everhash by gradient steps: averaged, with replay",
        2026,
        f"after {CITATION}",
    ),
    "paper": Description("paper", "the method everhash starts from", 2015, CITATION),
}
PEERS = {
    "okh": "online.okh:OKH",
    "osh": "online.osh:OSH",
    "adapthash": "online.adapthash:AdaptHash",
    "sketchhash": "online.sketchhash:SketchHash",
    "mihash": "online.mihash:MIHash",
    "hcoh": "online.hcoh:HCOH",
    "hmoh": "online.hmoh:HMOH",
    "bsodh": "online.bsodh:BSODH",
    "lemon": "online.lemon:LEMON",
    "oasis": "online.oasis:OASIS",
    "smarthash": "online.smarthash:SmartHash",
    "onehot": "online.onehot:OneHot",
    "lsh": "batch.lsh:LSH",
    "sh": "batch.sh:SH",
    "itq": "batch.itq:ITQ",
    "cca-itq": "batch.itq:CCAITQ",
    "ssh": "batch.ssh:SSH",
    "sth": "batch.sth:STH",
    "ldahash": "batch.ldahash:LDAHash",
    "bre": "batch.bre:BRE",
    "mlh": "batch.mlh:MLH",
    "shk": "batch.shk:SHK",
    "fasthash": "batch.fasthash:FastHash",
    "shecc": "batch.shecc:ShECC",
    "shecc-tree": "batch.shecc:TreeShECC",
}


def names() -> list[str]:
    """Return the name of every method, ours first."""
    return [*OURS, *PEERS]


def get(name: str, bits: int = 32, **options: Any) -> StreamHasher:
    """Return a hasher that has learned nothing yet, a scikit-learn estimator.

    Args:
        name: one of `names()`.
        bits: of a code. The one-hot classifier has no such choice.
        options: the method's own, with its defaults otherwise.

    >>> get("everhash", bits=16)
    OnlineHasher(bits=16)
    """
    from everhash.estimator import join_sklearn

    join_sklearn()
    return new_hasher(name, bits, **options)


def new_hasher(name: str, bits: int = 32, **options: Any) -> StreamHasher:
    """Return what `get` does, without loading scikit-learn; see `everhash.estimator`."""
    known = option_names(name)
    options = {**options, "bits": bits} if "bits" in known else options
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise OptionError(f"{name} has no option {unknown[0]!r}", hint=f"it has {', '.join(known)}")
    make = _maker(name)
    hasher: StreamHasher = make(**options)
    return hasher


def option_names(name: str) -> list[str]:
    """Return the options of a method; `bits` is one unless labels decide the width."""
    make = _maker(name)
    return _parameters(make, name) if name in OURS else list(make._defaults())


def _maker(name: str) -> Any:
    from everhash.learn.hasher import OnlineHasher

    own = {
        "everhash": OnlineHasher,
        "everhash-sgd": partial(OnlineHasher, learner="sgd"),
        "paper": OnlineHasher.paper,
    }
    return own[name] if name in own else method_named(name)


def describe(name: str) -> Description:
    """Return what a method is and needs.

    >>> describe("paper").year
    2015
    """
    return OURS[name] if name in OURS else method_named(name).about


def method_named(name: Any) -> type[Method]:
    """Return a method's class."""
    if not isinstance(name, str) or name not in PEERS:
        raise UnknownNameError(f"no method {name!r:.40}", hint=f"there are {', '.join(names())}")
    module, _, cls = PEERS[name].partition(":")
    method: type[Method] = getattr(import_module(f"everhash.peers.{module}"), cls)
    return method


def _parameters(make: Any, name: str) -> list[str]:
    """Return the options of one of our own methods; the learner is part of its name."""
    import inspect

    fixed = {"learner"} if name == "everhash-sgd" else set()
    return [option for option in inspect.signature(make).parameters if option not in fixed]
