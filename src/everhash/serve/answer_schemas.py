"""The forms of answers, as /docs shows them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from everhash.index.refresh import RefreshReport
from everhash.serve import fields


class Explanation(BaseModel):
    """Why an entry matched."""

    label: fields.Label | None
    cycle: int = Field(description="The cycle whose bits were compared; -1 where all were.")
    bits: list[int] = Field(description="+1 agrees, -1 differs, 0 inactive.")
    meaning: float | None = Field(
        description="By relevance and by meaning: how likely the entry is to have the query's "
        "label, by what was learned alone."
    )
    why: str = Field(description="The same in a sentence.")


class Match(BaseModel):
    """An entry that was found."""

    id: fields.Id
    score: float | None = Field(
        description="By relevance and meaning the probability of having the query's label, "
        "by likeness the cosine, by asymmetric and hamming the distance."
    )
    likeness: float | None = Field(description="Cosine of query and entry, where it was needed.")
    label: fields.Label | None
    guess: fields.Label | None = Field(description="The label an unlabelled entry is taken for.")
    payload: fields.Payload = Field(None, description="Where asked for.")
    explanation: Explanation | None = Field(None, description="Where asked for.")


class QueryMatches(BaseModel):
    """What was found for one query, best first."""

    by: str = Field(description="The way it was searched by.")
    novelty: float | None = Field(
        description="Share of the rows that came which resembled something learned more than this "
        "query does, from 0 to 1."
    )
    found: list[Match]


class SearchAnswer(BaseModel):
    """What was found for each query."""

    matches: list[QueryMatches]
    columns: int = Field(description="Columns of a table of matches, empty ones included.")
    missing: list[int] = Field(
        [],
        description="Shards of a cluster that did not answer in time: this is then a part of what "
        "there is. Left out where all did.",
    )


class Entry(BaseModel):
    """What is known of an entry."""

    id: fields.Id
    labels: list[fields.Label]
    home: int | None = Field(description="The cycle of its own bits; null where it has none.")
    payload: fields.Payload = None
    thumbnail: bool = Field(description="Whether /thumbnail has a picture of it.")
    guess: fields.Label | None = Field(description="The label it is taken for, if it has none.")
    code: list[int] | None = Field(None, description="Its own bits, where asked for.")


class Has(BaseModel):
    """Whether there are entries with these ids."""

    has: list[bool]


class Entries(BaseModel):
    """Entries that were asked for."""

    entries: list[Entry]


class EntriesPage(Entries):
    """Entries in order of arrival."""

    total: int | None = Field(
        description="All entries of this kind; null where those with a text are too many to "
        "count, and on later pages of them."
    )
    next: int | None = Field(description="Where to go on; null after the last page.")


class LabelInfo(BaseModel):
    """What is known of a label."""

    label: fields.Label
    cycle: int
    entries: int
    lessons: int | None = Field(description="Rows of it that were learned; null if not counted.")
    accuracy: float | None = Field(
        description="Share of its rows that were classified right before they were learned; null "
        "if none was."
    )
    codeword: list[int] | None


class LabelsPage(BaseModel):
    """Labels in order of arrival."""

    total: int
    labels: list[LabelInfo]


class Record(BaseModel):
    """What was learned, and how good the learner was on rows it had not learned yet."""

    rows: int = Field(description="Rows learned and not forgotten.")
    published_rows: int = Field(description="Rows there were when all labels were last solved.")
    scored_rows: int = Field(description="Rows that were scored before they were learned.")
    accuracy: float | None = Field(
        description="Share of those whose likeliest label was right; null if there are none."
    )
    accuracy_now: float | None = Field(
        description="The same of now: of the latest rows, or of learned ones, each left out."
    )
    log_loss: float | None = Field(description="Mean of -log of the right labels' probability.")
    temperature: float = Field(description="What scores are divided by to become probabilities.")


class Stats(BaseModel):
    """The state of the collection."""

    model_config = ConfigDict(extra="allow")
    entries: int
    labels: int
    cycles: int
    width: int
    stale_bits: int
    refreshing: bool = Field(description="Whether a refresh runs in the background.")
    sqlite: str = Field(description="Version of SQLite.")
    wal_reset_bug: bool = Field(description="Whether that version has the WAL-reset bug.")
    learned: Record | None = Field(description="null where the method keeps no record.")
    dim: int
    bits: int
    version: str = Field(description="Of everhash.")
    readonly: bool
    name: str | None = Field(description="Of the file; null for a collection in memory.")
    shards: int | None = Field(None, description="Of a cluster; left out for a file.")
    moving: bool | None = Field(None, description="Whether entries move to new shards; likewise.")
    missing: list[int] | None = Field(None, description="Shards that do not answer; likewise.")


class Limits(BaseModel):
    """How large requests may get."""

    model_config = ConfigDict(extra="allow")


class Learned(BaseModel):
    """How many rows were learned, and how many labels there are now."""

    learned: int
    labels: int


class Forgotten(BaseModel):
    """How many rows were taken back."""

    forgotten: int


class Added(BaseModel):
    """The ids of the new entries."""

    ids: list[fields.Id]


class Attached(BaseModel):
    """How many entries were changed."""

    attached: int


class Updated(BaseModel):
    """How many entries have other features."""

    updated: int


class NewLabel(BaseModel):
    """A label that was not known before."""

    label: fields.Label
    near: list[fields.Label] = Field(description="Known labels with nearly the same name.")


class Labelled(BaseModel):
    """How many entries were labelled, and which labels are new."""

    labelled: int
    new: list[NewLabel]


class Unlabelled(BaseModel):
    """How many entries had a label."""

    unlabelled: int


class Renamed(BaseModel):
    """The label as it is called now."""

    label: fields.Label


class Changed(BaseModel):
    """How many entries had the label."""

    entries: int


class Predicted(BaseModel):
    """The likeliest label of each row."""

    labels: list[fields.Label]
    dtype: str = Field(description="Of a NumPy array of labels of this collection.")


class Removed(BaseModel):
    """How many entries were removed."""

    removed: int


class Live(BaseModel):
    """That the process answers."""

    live: bool


class Ready(BaseModel):
    """Whether the collection is open, and whether it is served for reading only."""

    ready: bool
    readonly: bool


class JobStarted(BaseModel):
    """A refresh that has begun."""

    job: str


class ErrorInfo(BaseModel):
    """What went wrong, and what to do."""

    code: str = Field(examples=["DimensionError"], description="The class in everhash.errors.")
    message: str
    hint: str
    status: int
    exit: int = Field(description="The exit code of the command line.")
    values: dict[str, Any] | None = None


class Problem(BaseModel):
    """Every error has this form."""

    error: ErrorInfo


class Job(BaseModel):
    """A refresh that runs, or ran."""

    job: str
    state: Literal["running", "done", "failed"]
    progress: float
    report: RefreshReport | None
    error: ErrorInfo | None
