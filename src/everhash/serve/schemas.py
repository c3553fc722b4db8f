"""The forms of requests and answers: what bodies are checked by, and what /docs shows."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from everhash.index.refresh import RefreshReport
from everhash.serve import fields, limits


class Request(BaseModel):
    """A body; fields that are not named here are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)
    max_rows: ClassVar[int] = 0
    """Rows it may have; where it has none it has to be JSON."""


ROWS = "Features, a list of numbers for each row."
LABELS = "For each row a label, a list of several, or null for none."
IDS = "Integers, or texts of 1 to 64 characters."
PAYLOADS = "For each entry a JSON value, or null to take it away."
THUMBNAILS = "For each entry a PNG, JPEG, GIF or WebP as base64, or null to take it away."


class SearchRequest(Request):
    """Queries: rows, or entries by their ids."""

    max_rows: ClassVar[int] = limits.QUERIES
    rows: fields.Queries | None = Field(None, description=ROWS)
    ids: fields.QueryIds | None = Field(None, description="Search by entries instead of rows.")
    k: fields.K = Field(10, description="Entries a query.")
    distance: fields.Distance = Field("asymmetric", description="Or hamming.")
    labels: fields.Labels | None = Field(None, description="Only entries with one of these labels.")
    within: fields.Ids | None = Field(None, description="Only these entries.")
    explain: bool = Field(False, description="Say for each match why.")
    payloads: bool = Field(False, description="Return the payload of each match.")


class RadiusRequest(Request):
    """Queries, and how far entries may be."""

    max_rows: ClassVar[int] = limits.QUERIES
    rows: fields.Queries = Field(description=ROWS)
    r: fields.Radius = Field(description="Entries no farther than this are found.")
    distance: fields.Distance = Field("hamming", description="Or asymmetric.")
    explain: bool = Field(False, description="Say for each match why.")
    payloads: bool = Field(False, description="Return the payload of each match.")


class LearnRequest(Request):
    """Rows to learn from, or to forget, with their labels."""

    max_rows: ClassVar[int] = limits.ROWS
    rows: fields.Rows = Field(description=ROWS)
    labels: fields.RowLabels | None = Field(None, description=LABELS)


class AddRequest(LearnRequest):
    """Rows to add, with ids, payloads and thumbnails."""

    ids: fields.Ids | None = Field(None, description=IDS)
    payloads: fields.Payloads | None = Field(None, description=PAYLOADS)
    thumbnails: fields.Thumbnails | None = Field(None, description=THUMBNAILS)


class IdsRequest(Request):
    """Entries, by their ids."""

    ids: fields.Ids = Field(description=IDS)


class GetRequest(Request):
    """Entries to return, by their ids."""

    ids: fields.PageIds = Field(description=IDS)


class AttachRequest(Request):
    """Payloads and thumbnails for entries; a field that is missing leaves them as they are."""

    ids: fields.Ids = Field(description=IDS)
    payloads: fields.Payloads | None = Field(None, description=PAYLOADS)
    thumbnails: fields.Thumbnails | None = Field(None, description=THUMBNAILS)


class LabelRequest(Request):
    """Labels for entries, instead of what they had."""

    ids: fields.Ids = Field(description=IDS)
    labels: fields.RowLabels = Field(description=LABELS)


class Explanation(BaseModel):
    """Why an entry matched."""

    label: fields.Label | None
    cycle: int = Field(description="The cycle whose bits were compared; -1 where all were.")
    bits: list[int] = Field(description="+1 agrees, -1 differs, 0 inactive.")


class Match(BaseModel):
    """An entry that was found."""

    id: fields.Id
    distance: float | None
    label: fields.Label | None
    payload: fields.Payload = Field(None, description="Where asked for.")
    explanation: Explanation | None = Field(None, description="Where asked for.")


class QueryMatches(BaseModel):
    """What was found for one query, nearest first."""

    novelty: float | None = Field(description="Distance to the nearest codeword.")
    found: list[Match]


class SearchAnswer(BaseModel):
    """What was found for each query."""

    matches: list[QueryMatches]
    columns: int = Field(description="Columns of a table of matches, empty ones included.")


class Entry(BaseModel):
    """What is known of an entry."""

    id: fields.Id
    labels: list[fields.Label]
    home: int | None = Field(description="The cycle of its own bits; null where it has none.")
    payload: fields.Payload = None
    thumbnail: bool = Field(description="Whether /thumbnail has a picture of it.")
    code: list[int] | None = Field(None, description="Its own bits, where asked for.")


class Has(BaseModel):
    """Whether ids are taken."""

    has: list[bool]


class Entries(BaseModel):
    """Entries that were asked for."""

    entries: list[Entry]


class EntriesPage(Entries):
    """Entries in order of arrival."""

    total: int
    next: int | None = Field(description="Where the next page starts; null after the last.")


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
    learned: Record | None = Field(description="null where the method keeps no record.")
    dim: int
    bits: int
    version: str = Field(description="Of everhash.")
    readonly: bool


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


class Labelled(BaseModel):
    """How many entries were labelled."""

    labelled: int


class Removed(BaseModel):
    """How many entries were removed."""

    removed: int


class Live(BaseModel):
    """That the process answers."""

    live: bool


class Ready(BaseModel):
    """Whether the collection is open."""

    ready: bool


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
