"""All methods by name."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from everhash.errors import UnknownNameError
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
    """Return a hasher that has learned nothing yet.

    Args:
        name: one of `names()`.
        bits: of a code. The one-hot classifier has no such choice.
        options: the method's own, with its defaults otherwise.

    >>> get("everhash", bits=16)
    OnlineHasher(bits=16)
    """
    from everhash.errors import OptionError
    from everhash.learn.hasher import OnlineHasher

    make: Any = {
        "everhash": OnlineHasher,
        "everhash-sgd": partial(OnlineHasher, learner="sgd"),
        "paper": OnlineHasher.paper,
    }.get(name)
    if make is None:
        make = method_named(name)
        known = make._parameter_names()
        options = {**options, "bits": bits} if "bits" in known else options
    else:
        known, options = _parameters(make, name), {**options, "bits": bits}
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise OptionError(f"{name} has no option {unknown[0]!r}", hint=f"it has {', '.join(known)}")
    hasher: StreamHasher = make(**options)
    return hasher


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
