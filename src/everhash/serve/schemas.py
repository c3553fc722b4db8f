"""The forms of requests and answers, for the OpenAPI document.

Requests are not read through these: a search would take longer to check than to make. The fields'
own functions, and the library, refuse what does not fit.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from everhash import limits as library
from everhash.index.refresh import RefreshReport
from everhash.serve import limits
from everhash.wire.ids import ID_CHARACTERS

EXAMPLE_ROW: list[Any] = [0.12, -1.5, 0.33, 2.0]
Id = Annotated[
    Annotated[int, Field(ge=-(2**63), lt=2**63)]
    | Annotated[str, Field(min_length=1, max_length=ID_CHARACTERS)],
    Field(description="An int64, or a string of 1 to 64 characters.", examples=["sku-17", 42]),
]
Label = Annotated[
    str | int | float | bool | dict[str, Any],
    Field(
        description='A text or a number; bytes as {"bytes": hex}, tuples as {"tuple": [...]}.',
        examples=["shoes"],
    ),
]
RowLabels = Annotated[
    Label | list[Label] | None,
    Field(description="A label, a list of several, or null for an unlabelled row."),
]
Rows = Annotated[
    list[list[float]],
    Field(min_length=1, description="(n, d) features.", examples=[[EXAMPLE_ROW]]),
]
Ids = Annotated[list[Id], Field(max_length=limits.ROWS, examples=[["sku-17"]])]
Payload = Annotated[Any, Field(description="A JSON value of at most 4,096 bytes.")]
Thumbnail = Annotated[
    str | None, Field(description="A PNG, JPEG, GIF or WebP of at most 32,768 bytes, as base64.")
]
Distance = Literal["asymmetric", "hamming"]


class Request(BaseModel):
    """A body; fields that are not named here are refused."""

    model_config = ConfigDict(extra="forbid")


class SearchRequest(Request):
    """Queries: rows, or entries by their ids."""

    rows: Rows | None = None
    ids: Ids | None = Field(None, description="Search by entries instead of rows.")
    k: int = Field(10, ge=1, le=library.RESULTS, description="Entries a query.")
    distance: Distance = "asymmetric"
    labels: list[Label] | None = Field(None, description="Only entries with one of these labels.")
    within: Ids | None = Field(None, description="Only these entries.")
    explain: bool = Field(False, description="Say for each match why.")


class RadiusRequest(Request):
    """Queries, and how far entries may be."""

    rows: Rows
    r: float = Field(description="Entries no farther than this are found.")
    distance: Distance = "hamming"
    explain: bool = False


class LearnRequest(Request):
    """Rows to learn from."""

    rows: Rows
    labels: list[RowLabels] | None = Field(None, examples=[["shoes"]])


class ForgetRequest(LearnRequest):
    """Rows that were learned, with the labels they had."""


class AddRequest(Request):
    """Rows to add, with what they are called and carry."""

    rows: Rows
    labels: list[RowLabels] | None = Field(None, examples=[["shoes"]])
    ids: Ids | None = None
    payloads: list[Payload] | None = Field(None, examples=[[{"title": "red boots"}]])
    thumbnails: list[Thumbnail] | None = Field(None, examples=[[None]])


class IdsRequest(Request):
    """Entries, by their ids."""

    ids: Ids


class AttachRequest(Request):
    """Payloads and thumbnails for entries; a field that is missing leaves them as they are."""

    ids: Ids
    payloads: list[Payload] | None = None
    thumbnails: list[Thumbnail] | None = None


class LabelRequest(Request):
    """Labels for entries, instead of what they had."""

    ids: Ids
    labels: list[RowLabels] = Field(examples=[["shoes"]])


class Explanation(BaseModel):
    """Why an entry matched."""

    label: Label | None
    cycle: int = Field(description="The cycle whose bits were compared; -1 where all were.")
    bits: list[int] = Field(description="+1 agrees, -1 differs, 0 inactive.")


class Match(BaseModel):
    """An entry that was found."""

    id: Id
    distance: float | None
    label: Label | None
    explanation: Explanation | None = None


class QueryMatches(BaseModel):
    """What was found for one query, nearest first."""

    novelty: float | None = Field(description="Distance to the nearest codeword.")
    found: list[Match]


class SearchAnswer(BaseModel):
    """What was found for each query."""

    matches: list[QueryMatches]
    columns: int = Field(description="Columns of a table of matches, those left empty included.")


class Entry(BaseModel):
    """What is known of an entry."""

    id: Id
    labels: list[Label]
    home: int | None = Field(description="The cycle of its own bits; null where it has none.")
    payload: Payload = None
    thumbnail: bool = Field(description="Whether /thumbnail has a picture of it.")
    code: list[int] | None = Field(None, description="Its own bits, where asked for.")


class Has(BaseModel):
    """Whether ids are taken."""

    has: list[bool] = Field(
        description="For each id, whether an entry has it, or had it before it was removed."
    )


class Entries(BaseModel):
    """Entries that were asked for."""

    entries: list[Entry]


class EntriesPage(Entries):
    """Entries in order of arrival."""

    total: int
    next: int | None = Field(description="Where the next page starts; null behind the last.")


class LabelInfo(BaseModel):
    """What is known of a label."""

    label: Label
    cycle: int
    entries: int
    lessons: int | None = Field(description="Rows of it that were learned; null if not counted.")
    accuracy: float | None = Field(
        description="Share of its rows that were taken for it before they were learned; null if "
        "none was scored."
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
        description="Share of those whose likeliest label was theirs; null if there are none."
    )
    log_loss: float | None = Field(
        description="Mean of -log of the probability that their labels were given."
    )
    temperature: float = Field(description="What scores are divided by to be probabilities.")


class Stats(BaseModel):
    """How the collection stands."""

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


class Learned(BaseModel):
    """How many rows were learned, and how many labels there are now."""

    learned: int
    labels: int


class Forgotten(BaseModel):
    """How many rows were taken back."""

    forgotten: int


class Added(BaseModel):
    """The ids that entries were given."""

    ids: list[Id]


class Attached(BaseModel):
    """How many entries were given something."""

    attached: int


class Labelled(BaseModel):
    """How many entries were labelled."""

    labelled: int


class Removed(BaseModel):
    """How many entries there were."""

    removed: int


class Live(BaseModel):
    """That the process answers."""

    live: bool


class Ready(BaseModel):
    """Whether the collection is open."""

    ready: bool


class JobStarted(BaseModel):
    """A refresh that has been begun."""

    job: str


class ErrorInfo(BaseModel):
    """What went wrong, and what to do."""

    code: str = Field(examples=["DimensionError"], description="The class in everhash.errors.")
    message: str
    hint: str
    status: int
    exit: int = Field(description="What the command line would end with.")
    values: dict[str, Any] | None = None


class Job(BaseModel):
    """A refresh that runs, or ran."""

    job: str
    state: Literal["running", "done", "failed"]
    progress: float
    report: RefreshReport | None
    error: ErrorInfo | None


class Problem(BaseModel):
    """Every error has this form."""

    error: ErrorInfo


REQUESTS: tuple[type[Request], ...] = (
    *(SearchRequest, RadiusRequest, LearnRequest, ForgetRequest, AddRequest),
    *(IdsRequest, AttachRequest, LabelRequest),
)
"""What no route's signature names, and the document has to define."""
