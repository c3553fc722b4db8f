"""The forms of requests: what bodies are checked by, and what /docs shows."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from everhash.serve import fields, limits
from everhash.wire.options import RECALL


class Request(BaseModel):
    """A body; fields that are not named here are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)
    max_rows: ClassVar[int] = 0
    """Rows it may have; where it has none it has to be JSON."""


ROWS = "Features, a list of numbers for each row."
LABELS = "For each row a label, a list of several, or null for none."
IDS = "Integers, or texts of 1 to 64 characters."
PAYLOADS = "For each entry a JSON value, or null to take it away."
BY = (
    "What ranks entries: the probability of having the query's label, judged by labels and "
    "neighbours (relevance) or by labels alone (meaning), the cosine (likeness), or the distance "
    "of codes."
)
RECALLED = (
    "By relevance and likeness: the share of the true nearest entries that is found on average. 1 "
    "finds all of them. Collections of fewer than 10,000 entries are searched in full whatever it "
    "says."
)
TEACH = "Learn from it, and forget what no longer holds; false changes the entries only."
EXPECT = (
    "For each entry the labels that it is believed to have, as in `labels`, null for none. If one "
    "has others nothing changes: 409. Left out, nothing is expected."
)
NEW = "Make labels that were never seen before; otherwise they are refused: 404."
THUMBNAILS = "For each entry a PNG, JPEG, GIF or WebP as base64, or null to take it away."


class FilteredRequest(Request):
    """Which entries are searched, and what is said of those found."""

    max_rows: ClassVar[int] = limits.QUERIES
    labels: fields.Labels | None = Field(None, description="Only entries with one of these labels.")
    ids: fields.Ids | None = Field(None, description="Only these entries.")
    unlabelled: bool = Field(False, description="Only entries without a label.")
    exact: bool = Field(False, description="Compute likeness from features instead of codes.")
    explain: bool = Field(False, description="Say for each match why; not in an Arrow table.")
    payloads: bool = Field(False, description="Say the payload of each match.")
    by: fields.By = Field("relevance", description=BY)


class SearchRequest(FilteredRequest):
    """Queries: rows, or entries by their ids."""

    rows: fields.Queries | None = Field(None, description=ROWS)
    like: fields.QueryIds | None = Field(
        None, description="Ids of entries to search by, instead of rows."
    )
    k: fields.K = Field(10, description="Entries a query.")
    recall: fields.Recall = Field(RECALL, description=RECALLED, examples=[0.95])


class RadiusRequest(FilteredRequest):
    """Queries, and how far entries may be."""

    rows: fields.Queries = Field(description=ROWS)
    r: fields.Radius = Field(
        description="Entries no farther than this are found; by relevance, meaning and likeness, "
        "those with a score of at least this."
    )
    by: fields.By = Field("hamming", description=BY)


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


class UpsertRequest(AddRequest):
    """Rows to add, in place of entries that have the same ids."""

    teach: bool = Field(True, description=TEACH)


class UpdateRequest(Request):
    """Other features for entries."""

    max_rows: ClassVar[int] = limits.ROWS
    rows: fields.Rows = Field(description=ROWS)
    ids: fields.Ids = Field(description=IDS)
    teach: bool = Field(True, description=TEACH)


class PredictRequest(Request):
    """Rows whose labels are wanted."""

    max_rows: ClassVar[int] = limits.QUERIES
    rows: fields.Queries = Field(description=ROWS)


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
    teach: bool = Field(True, description=TEACH)
    expect: fields.RowLabels | None = Field(None, description=EXPECT)
    new: bool = Field(False, description=NEW)


class UnlabelRequest(IdsRequest):
    """Entries that lose their labels."""

    teach: bool = Field(True, description=TEACH)
    expect: fields.RowLabels | None = Field(None, description=EXPECT)


class RenameRequest(Request):
    """A label, and its new name."""

    label: fields.OneLabel = Field(description="A label.")
    to: fields.OneLabel = Field(description="A name that no label has.")


class MergeRequest(Request):
    """A label, and the one it becomes a part of."""

    label: fields.OneLabel = Field(description="A label.")
    into: fields.OneLabel = Field(description="Another one, which stays.")


class DropRequest(Request):
    """A label to forget."""

    label: fields.OneLabel = Field(description="A label.")
    unused: bool = Field(
        False, description="Refuse if an entry has it, or a row that was learned: 422."
    )
