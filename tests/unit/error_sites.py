"""Every place in the sources where an error of everhash is made, with its texts."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import everhash
from everhash import errors

SOURCES = Path(everhash.__file__).parent
GAP = "…"
"""Stands in a text where a value is filled in."""
ERRORS = {
    name
    for name, value in vars(errors).items()
    if inspect.isclass(value) and issubclass(value, (errors.EverhashError, UserWarning))
}
MAKERS = ERRORS | {"busy", "unsupported", "require", "BadParameter", "UsageError"}
"""What is called with a message; `hint=` is a text wherever it stands."""


class Text(NamedTuple):
    """One text of an error site."""

    line: int
    text: str


def files() -> list[str]:
    """Return every source file, relative to the package."""
    return sorted(str(path.relative_to(SOURCES)) for path in SOURCES.rglob("*.py"))


def texts(file: str) -> list[Text]:
    """Return the texts of all error sites of a file, and of the constants they name."""
    tree = ast.parse((SOURCES / file).read_text())
    module = "everhash." + file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    return [
        Text(part.lineno, text)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        for part in _parts(call)
        for text in _said(part, module)
    ]


def _parts(call: ast.Call) -> Iterator[ast.expr]:
    """Yield the arguments of a call that people read."""
    name = getattr(call.func, "id", getattr(call.func, "attr", ""))
    inside = name == "__init__" and isinstance(call.func, ast.Attribute)
    if name in MAKERS or inside:
        yield from call.args
    for keyword in call.keywords:
        if keyword.arg == "hint" or name in MAKERS:
            yield keyword.value


def _said(part: ast.expr, module: str) -> Iterator[str]:
    """Yield what an expression says: literals, f-strings with gaps, constants by name."""
    if isinstance(part, ast.Constant) and isinstance(part.value, str):
        yield part.value
    elif isinstance(part, ast.JoinedStr):
        yield "".join(
            str(each.value) if isinstance(each, ast.Constant) else GAP for each in part.values
        )
    elif isinstance(part, ast.BinOp):
        left, right = "".join(_said(part.left, module)), "".join(_said(part.right, module))
        yield left + right
    elif isinstance(part, ast.IfExp):
        yield from _said(part.body, module)
        yield from _said(part.orelse, module)
    elif isinstance(part, ast.Name) and part.id.isupper():
        value = getattr(importlib.import_module(module), part.id, None)
        if isinstance(value, str):
            yield value
