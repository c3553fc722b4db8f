"""The files that a command reads rows from: names, patterns, and - for standard input."""

from __future__ import annotations

import glob
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer

from everhash import sources
from everhash.cli.formatting import printable
from everhash.errors import DimensionError, EverhashError, InputError, OptionError
from everhash.sources import Taken
from everhash.sources.columns import listed

STDIN = Path("-")
Format = Annotated[
    Literal["jsonl", "csv", "npy", "npz", "parquet", "arrow"] | None,
    typer.Option("--format", help="Format of standard input. Default: jsonl.", show_default=False),
]


@contextmanager
def files_of(names: Sequence[Path], form: str | None = None) -> Iterator[list[Path]]:
    """Yield the files that arguments name, those of a pattern or of a folder sorted.

    Rows are read twice, to check and to use them, so standard input is copied to a file.
    """
    if form is not None and STDIN not in names:
        raise OptionError("--format is for standard input", hint="name - as the file, too")
    if list(names).count(STDIN) > 1:
        raise OptionError("- is named twice", hint="standard input can be read once")
    with tempfile.TemporaryDirectory(prefix="everhash-") as folder:
        copy = Path(folder) / f"stdin.{form or 'jsonl'}"
        files: list[Path] = []
        for name in names:
            if name == STDIN:
                with copy.open("wb") as file:
                    shutil.copyfileobj(sys.stdin.buffer, file)
            files += [copy] if name == STDIN else sources.expand(_in_folder(name))
        try:
            yield files
        except EverhashError as error:
            error.message_template = error.message_template.replace(str(copy), "stdin")
            raise


def _in_folder(name: Path) -> Path:
    """Return the pattern of a folder's files, or the name itself if it is no folder."""
    return Path(glob.escape(str(name)), "*.parquet") if name.is_dir() else name


def shown(file: Path) -> str:
    """Return a file's name; a copy of standard input is called stdin."""
    is_copy = file.stem == "stdin" and file.parent.name.startswith("everhash-")
    return "stdin" if is_copy else printable(file)


def wrong_width(error: DimensionError, file: Path, taken: Taken | None, owner: str) -> InputError:
    """Return the error for rows that are too wide or too narrow; it names what was taken."""
    if taken is None:
        what = f"{error.got} features a row"
    elif len(taken.features) == 1:
        what = f"{error.got} numbers a row taken as features, from {taken.features[0]}"
    else:
        what = f"{error.got} columns taken as features ({listed(taken.features)})"
    return InputError(
        f"{file}: {what}, but {printable(owner)} has {error.expected} a row",
        hint="name others with {option features}, or embed the data as before",
    )
