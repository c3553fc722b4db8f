"""Matches over HTTP: without padding, and as JSON; the service writes them, the client reads them.

An answer is not to be trusted: whatever has another form raises, most often a ValueError, and the
client says so in one place.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from everhash.matches import Explanation, Matches
from everhash.wire.ids import as_id
from everhash.wire.labels import label_from_json, label_to_json
from everhash.wire.options import check_by
from everhash.wire.values import read_count, read_list, read_number, read_signs

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class FlatMatches:
    """Matches without padding, one query after another."""

    counts: NDArray[np.int64]
    """Of each query."""
    ids: NDArray[Any]
    scores: NDArray[np.float32]
    likeness: NDArray[np.float32]
    labels: NDArray[Any]
    guesses: NDArray[Any]
    novelty: NDArray[np.float32]
    """Of each query."""
    by: list[str]
    """Of each query."""
    explanations: list[list[Explanation]]
    payloads: list[list[Any]]
    columns: int
    """Of the table they come from, which may be wider than any query has matches."""
    missing: list[int] = field(default_factory=list)
    """Shards of a cluster that did not answer; see `Matches`."""

    @classmethod
    def of(cls, matches: Matches) -> FlatMatches:
        """Leave the padding out."""
        there = np.arange(matches.ids.shape[1]) < matches.counts[:, None]
        return cls(
            counts=matches.counts,
            ids=matches.ids[there],
            scores=matches.scores[there],
            likeness=matches.likeness[there],
            labels=matches.labels[there],
            guesses=matches.guesses[there],
            novelty=matches.novelty,
            by=matches.by,
            explanations=matches.explanations,
            payloads=matches.payloads,
            columns=matches.ids.shape[1],
            missing=matches.missing,
        )

    @classmethod
    def joined(cls, parts: list[FlatMatches]) -> FlatMatches:
        """Put the queries of several searches one after another."""
        columns: dict[str, Any] = {}
        for column in fields(cls):
            name, values = column.name, [getattr(part, column.name) for part in parts]
            if name == "columns":
                columns[name] = max(values)
            elif name == "missing":
                columns[name] = sorted(set().union(*values))
            elif isinstance(values[0], list):
                columns[name] = [row for part in values for row in part]
            else:
                columns[name] = np.concatenate(values)
        return cls(**columns)

    def padded(self, n: int, k: int | None) -> Matches:
        """Return the table of n queries, padded as a search pads it.

        It has at most k columns; without k, as many as were found for some query.
        """
        longest = self.counts.max(initial=0)
        if len(self.counts) != n or not longest <= self.columns <= (longest if k is None else k):
            raise ValueError("another number of queries or columns")
        there = np.arange(self.columns) < self.counts[:, None]
        ids = _filled(there, None, self.ids)
        return Matches(
            ids=ids.astype(np.int64) if self.ids.dtype == np.int64 and there.all() else ids,
            scores=_filled(there, np.float32(np.nan), self.scores),
            likeness=_filled(there, np.float32(np.nan), self.likeness),
            labels=_filled(there, None, self.labels),
            guesses=_filled(there, None, self.guesses),
            counts=self.counts,
            novelty=self.novelty,
            by=self.by,
            explanations=self.explanations,
            payloads=self.payloads,
            missing=self.missing,
        )


def _filled(there: NDArray[np.bool_], padding: Any, values: NDArray[Any]) -> NDArray[Any]:
    table = np.full(there.shape, padding)
    table[there] = values
    return table


# As JSON


def to_json(matches: Matches) -> list[dict[str, Any]]:
    """Return what JSON says of each query."""
    columns = zip(
        matches.ids.tolist(),
        matches.scores.tolist(),
        matches.likeness.tolist(),
        matches.labels.tolist(),
        matches.guesses.tolist(),
        strict=True,
    )
    counts, novelty = matches.counts.tolist(), matches.novelty.tolist()
    queries = []
    for row, (ids, scores, likeness, labels, guesses) in enumerate(columns):
        found = [
            {
                "id": ids[i],
                "score": _number(scores[i]),
                "likeness": _number(likeness[i]),
                "label": labels[i] if type(labels[i]) is str else _label_to_json(labels[i]),
                "guess": guesses[i] if type(guesses[i]) is str else _label_to_json(guesses[i]),
            }
            for i in range(counts[row])
        ]
        if matches.payloads:
            for match, payload in zip(found, matches.payloads[row], strict=True):
                match["payload"] = payload
        if matches.explanations:
            for rank, explanation in enumerate(matches.explanations[row]):
                said = {**_explanation_to_json(explanation), "why": matches.why(row, rank)}
                found[rank]["explanation"] = said
        queries.append({"by": matches.by[row], "novelty": _number(novelty[row]), "found": found})
    return queries


def _number(value: float) -> float | None:
    """Return a number, or None for what JSON cannot write."""
    return value if math.isfinite(value) else None


def _label_to_json(label: Any) -> Any:
    return None if label is None else label_to_json(label)


def _explanation_to_json(explanation: Explanation) -> dict[str, Any]:
    label, bits = _label_to_json(explanation.label), explanation.bits.tolist()
    meaning = explanation.meaning
    return {"label": label, "cycle": explanation.cycle, "bits": bits, "meaning": meaning}


def from_json(answer: dict[str, Any], *, explain: bool, payloads: bool) -> FlatMatches:
    """Read matches; NaN stands for what JSON cannot write."""
    matches = answer["matches"]
    found = [item for match in matches for item in match["found"]]
    return FlatMatches(
        counts=np.array([len(match["found"]) for match in matches], np.int64),
        ids=id_array([item["id"] for item in found]),
        scores=_floats([item["score"] for item in found]),
        likeness=_floats([item["likeness"] for item in found]),
        labels=objects([read_label(item["label"]) for item in found]),
        guesses=objects([read_label(item["guess"]) for item in found]),
        novelty=_floats([match["novelty"] for match in matches]),
        by=[check_by(match["by"]) for match in matches],
        explanations=_of_each(matches, "explanation", _explanation) if explain else [],
        payloads=_of_each(matches, "payload", lambda payload: payload) if payloads else [],
        columns=read_count(answer["columns"]),
        missing=read_missing(answer),
    )


def missing_to_json(missing: list[int]) -> dict[str, list[int]]:
    """Return what an answer says of shards that did not answer: nothing if all did."""
    return {"missing": missing} if missing else {}


def read_missing(answer: dict[str, Any]) -> list[int]:
    """Read which shards did not answer."""
    return [read_count(shard) for shard in read_list(answer.get("missing", []))]


def _of_each(matches: list[Any], field: str, read: Callable[[Any], T]) -> list[list[T]]:
    return [[read(item[field]) for item in match["found"]] for match in matches]


def _explanation(value: dict[str, Any]) -> Explanation:
    return Explanation(
        read_label(value["label"]),
        read_count(value["cycle"], least=-1),
        read_signs(value["bits"]),
        None if (meaning := value.get("meaning")) is None else read_number(meaning, 1),
    )


def read_label(value: Any) -> Any:
    """Return the label that an answer names, None for none."""
    return None if value is None else label_from_json(value)


def _floats(values: list[Any]) -> NDArray[np.float32]:
    return np.array([np.nan if value is None else value for value in values], np.float32)


def objects(values: list[Any]) -> NDArray[Any]:
    """Return a column of objects, of tuples too: np.array would make a table of them."""
    return np.fromiter(values, object, len(values))


def id_array(values: list[Any]) -> NDArray[Any]:
    """Return ids as a column: of numbers if all are."""
    ids = [as_id(value) for value in values]
    return np.array(ids, np.int64) if all(isinstance(i, int) for i in ids) else objects(ids)
