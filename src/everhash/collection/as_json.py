"""Entries, labels and reports as JSON: the service answers with it, the command line prints it."""

from __future__ import annotations

from typing import Any

import numpy as np

from everhash.collection.attachments import Attachment
from everhash.collection.labels import LabelInfo
from everhash.collection.learning import LabelReport
from everhash.index.entries import Entry
from everhash.wire.labels import label_to_json


def entry_to_json(entry: Entry, attachment: Attachment, *, code: bool) -> dict[str, Any]:
    """Return what JSON says of an entry; of its bits only if `code`."""
    described = {
        "id": entry.id,
        "labels": [label_to_json(label) for label in entry.labels],
        "home": entry.home,
        "payload": attachment.payload,
        "thumbnail": attachment.thumbnail is not None,
        "guess": None if entry.guess is None else label_to_json(entry.guess),
    }
    bits = None if entry.code is None else entry.code.astype(np.int8).tolist()
    return {**described, "code": bits} if code else described


def label_info_to_json(info: LabelInfo) -> dict[str, Any]:
    """Return what JSON says of a label."""
    return {
        "label": label_to_json(info.label),
        "cycle": info.cycle,
        "entries": info.entries,
        "lessons": info.lessons,
        "accuracy": info.accuracy,
        "codeword": None if info.codeword is None else info.codeword.tolist(),
    }


def label_report_to_json(report: LabelReport) -> dict[str, Any]:
    """Return what JSON says of labels that were given."""
    new = [
        {"label": label_to_json(one.label), "near": [label_to_json(near) for near in one.near]}
        for one in report.new
    ]
    return {"labelled": report.labelled, "new": new}
