"""All deep methods by name."""

from __future__ import annotations

import os
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from everhash import extras
from everhash.errors import OptionError, UnknownNameError
from everhash.peers.description import Description

if TYPE_CHECKING:
    from everhash.peers.deep.deep_method import DeepMethod


class Entry(NamedTuple):
    """Where a method is, and the options that are part of its name."""

    place: str
    fixed: dict[str, Any]


METHODS = {
    "cnnh": Entry("cnnh:CNNH", {"classify": False}),
    "cnnh+": Entry("cnnh:CNNH", {"classify": True}),
    "ninh": Entry("ninh:NINH", {}),
    "latent": Entry("latent:Latent", {}),
}


def names() -> list[str]:
    """Return the name of every deep method, in the order of their years.

    >>> names()
    ['cnnh', 'cnnh+', 'ninh', 'latent']
    """
    return list(METHODS)


def get(name: str, bits: int = 48, **options: Any) -> DeepMethod:
    """Return a method that has learned nothing yet.

    Args:
        name: one of `names()`.
        bits: of a code.
        options: the method's own, with its defaults otherwise.
    """
    known = option_names(name)
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise OptionError(f"{name} has no option {unknown[0]!r}", hint=f"it has {', '.join(known)}")
    extras.require("deep")
    return class_named(name)(bits=bits, **METHODS[name].fixed, **options)


def option_names(name: str) -> list[str]:
    """Return the options of a method; what is part of its name is none.

    >>> "classify" in option_names("cnnh+"), "rounds" in option_names("cnnh+")
    (False, True)
    """
    make = class_named(name)
    return [option for option in make._defaults() if option not in METHODS[name].fixed]


def describe(name: str) -> Description:
    """Return what a method is and needs.

    >>> describe("ninh").year
    2015
    """
    return replace(class_named(name).about, name=name)


def load(path: str | os.PathLike[str]) -> DeepMethod:
    """Read a deep method that its `save` wrote; it gives the same bits."""
    from everhash.peers.deep.model_file import read_deep

    extras.require("deep")
    return read_deep(path)


def class_named(name: Any) -> type[DeepMethod]:
    """Return a method's class."""
    if not isinstance(name, str) or name not in METHODS:
        raise UnknownNameError(
            f"no deep method {name!r:.40}", hint=f"there are {', '.join(names())}"
        )
    module, _, cls = METHODS[name].place.partition(":")
    method: type[DeepMethod] = getattr(import_module(f"everhash.peers.deep.{module}"), cls)
    return method
