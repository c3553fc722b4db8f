"""Doctests of modules that import an optional package are collected where it is installed."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

from everhash.extras import EXTRAS

SOURCE = Path(__file__).parent / "src"
OPTIONAL = {package for _, packages in EXTRAS.values() for package in packages}
MISSING = {package for package in OPTIONAL if find_spec(package) is None}
IMPORTED = re.compile(r"^(?:import|from) (\w+)", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Pass over a module that cannot be imported here; None leaves it to others to say."""
    if collection_path.suffix != ".py" or SOURCE not in collection_path.parents:
        return None
    imported = IMPORTED.findall(collection_path.read_text(encoding="utf-8"))
    return True if MISSING.intersection(imported) else None
