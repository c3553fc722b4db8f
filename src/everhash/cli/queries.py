"""A file of queries, read batch by batch."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from everhash import sources
from everhash.cli.arguments import file_argument
from everhash.cli.formatting import printable
from everhash.cli.inputs import files_of, wrong_width
from everhash.cli.terminal import Bar
from everhash.errors import DimensionError, NotFiniteError
from everhash.learn.options import whole_number
from everhash.sources import Batch
from everhash.stream import as_rows
from everhash.wire.ids import Id

A_BATCH = 1000
"""Queries asked at a time."""
QUERIES = "File of queries, in any format that ingest reads; - is stdin."
QueryFile = Annotated[Path, file_argument(QUERIES, metavar="QUERIES")]
IdColumn = Annotated[
    str | None,
    typer.Option("--id", help="Column with an id of each query, to be shown.", metavar="COLUMN"),
]
Limit = Annotated[int | None, typer.Option(help="Use only the first queries of the file.")]


@dataclass(frozen=True)
class Queries:
    """Some queries of a file."""

    X: NDArray[np.float32]
    ids: list[Id] | None
    first: int
    """Number of the first of them."""

    def names(self) -> list[dict[str, Any]]:
        """Return what JSON says to tell queries apart: a number, and the id if there is one."""
        numbers = [{"query": self.first + row} for row in range(len(self.X))]
        if self.ids is None:
            return numbers
        pairs = zip(numbers, self.ids, strict=True)
        return [{**number, "query_id": name} for number, name in pairs]


@dataclass(frozen=True)
class QuerySource:
    """A file of queries, and what of it to read."""

    path: Path
    features: str | None
    id: str | None
    limit: int | None
    form: str | None = None
    """Format of standard input."""

    def batches(self, what: str, dim: int) -> Iterator[Queries]:
        """Yield queries with `dim` features; show the progress where results do not show it."""
        limit, first = sys.maxsize if self.limit is None else self.limit, 0
        with files_of([self.path], self.form) as files:
            counts = [sources.count_rows(file) for file in files]
            total = None if None in counts else min(sum(filter(None, counts)), limit)
            bar = Bar(what, total)
            with nullcontext() if sys.stdout.isatty() else bar:
                for part in self._parts(files, dim):
                    some = part.part(slice(limit - first))
                    yield Queries(some.X, some.ids, first)
                    first += len(some.X)
                    bar.advance_by(len(some.X))
                    if first >= limit:
                        return

    def _parts(self, files: list[Path], dim: int) -> Iterator[Batch]:
        """Read all files, a few rows at a time; raise if rows have another width."""
        unused = dict.fromkeys(("label", "payload", "thumbnail"), "")
        columns: dict[str, Any] = {"features": self.features, "id": self.id, **unused}
        for file in files:
            start = 0
            for batch in sources.read(file, **columns, batch_rows=A_BATCH):
                try:
                    as_rows(batch.X, dim)
                except NotFiniteError as error:
                    error.message_template = (
                        f"{file}: row {start + error.row} holds NaN, infinity or too much"
                    )
                    error.hint_template = "drop or repair the row"
                    raise
                except DimensionError as error:
                    taken = sources.infer(file, **columns)
                    raise wrong_width(error, file, taken, "the collection") from None
                start += len(batch.X)
                yield batch

    def check(self) -> None:
        """Raise if the limit is none."""
        if self.limit is not None:
            whole_number("--limit", self.limit, least=1)


def shown_name(answer: dict[str, Any]) -> str:
    """Return the id of a query, or its number."""
    return printable(answer.get("query_id", answer["query"]))
