"""Packages that everhash does not install by itself: figures and the peers of speed need them."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from everhash.errors import InputError

EXTRAS = {"matplotlib": "plot", "faiss": "bench", "usearch": "bench"}
"""The extra of everhash that installs each package."""


def install_hint(package: str) -> str:
    """Return the command that installs a package.

    >>> install_hint("matplotlib")
    "pip install 'everhash[plot]'"
    """
    return f"pip install 'everhash[{EXTRAS[package]}]'"


def find(module: str) -> ModuleType | None:
    """Return a module, or None where its package is not installed."""
    try:
        return import_module(module)
    except ModuleNotFoundError:
        return None


def require(module: str, purpose: str) -> ModuleType:
    """Return a module; raise an error that names the extra where its package is not installed."""
    found = find(module)
    if found is None:
        package = module.partition(".")[0]
        raise InputError(f"{purpose} needs {package}", hint=install_hint(package))
    return found
