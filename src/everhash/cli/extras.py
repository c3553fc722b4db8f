"""Optional parts of everhash: the extras of its package, and the packages that each brings."""

from __future__ import annotations

from importlib.util import find_spec

from everhash.errors import OptionError

EXTRAS: dict[str, tuple[str, tuple[str, ...]]] = {
    "cli": ("the command line", ("typer", "rich")),
    "plot": ("a picture", ("matplotlib",)),
    "serve": ("the service", ("fastapi", "uvicorn")),
}
"""For each extra: what it is for, and the packages that must be installed."""


def missing(extra: str) -> str | None:
    """Return how to install an extra if one of its packages is missing, else None."""
    purpose, packages = EXTRAS[extra]
    if all(find_spec(package) for package in packages):
        return None
    return f"{purpose} needs: pip install 'everhash[{extra}]'"


def require(extra: str) -> None:
    """Raise an error that says how to install an extra, if one of its packages is missing."""
    problem = missing(extra)
    if problem is not None:
        raise OptionError(problem)
