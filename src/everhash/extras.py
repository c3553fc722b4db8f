"""Optional parts of everhash: the extras of its package, and the packages that each brings."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from everhash.errors import OptionError

EXTRAS: dict[str, tuple[str, tuple[str, ...]]] = {
    "cli": ("the command line", ("typer", "rich")),
    "plot": ("a picture", ("matplotlib",)),
    "bench": ("this peer", ("faiss", "usearch")),
    "serve": ("the service", ("fastapi", "uvicorn", "httptools", "prometheus_client")),
    "cluster": ("a cluster", ("ray",)),
    "deep": ("a deep method", ("torch",)),
}
"""For each extra: what it is for, and the packages that must be installed."""


def install_hint(extra: str) -> str:
    """Return the command that installs an extra.

    >>> install_hint("plot")
    "pip install 'everhash[plot]'"
    """
    return f"pip install 'everhash[{extra}]'"


def missing(extra: str) -> str | None:
    """Return how to install an extra if one of its packages is missing, else None."""
    purpose, packages = EXTRAS[extra]
    if all(find_spec(package) for package in packages):
        return None
    return f"{purpose} needs: {install_hint(extra)}"


def find(module: str) -> ModuleType | None:
    """Return a module, or None where its package is not installed."""
    try:
        return import_module(module)
    except ModuleNotFoundError:
        return None


def require(extra: str) -> None:
    """Raise an error that says how to install an extra, if one of its packages is missing."""
    problem = missing(extra)
    if problem is not None:
        raise OptionError(problem)
