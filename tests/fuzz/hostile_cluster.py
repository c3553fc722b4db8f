"""Hostile files of a cluster: leads and shards with every checksum right, and what is said of them.

A case is the file, an edit of it, and what the error must say.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from everhash.cluster.lead_formats import COUNTS
from everhash.store.parts import PartKey
from tests.fuzz.forging import (
    Edit,
    Forgery,
    claim,
    data,
    drop,
    pack,
    put,
    restart,
    set_about,
    set_head,
    swap,
    swap_about,
)
from tests.fuzz.hostile_heads import BOMB, forget

LEAD, SHARD = "lead.ever", "shard-0-0.ever"
Case = tuple[str, Edit, str]


def table(**fields: Any) -> Edit:
    """Change the table of shards."""

    def edit(forgery: Forgery) -> None:
        key = forgery.find("lead")
        about = forgery.about(key)
        about["table"].update(fields)
        swap_about("lead", json.dumps(about))(forgery)

    return edit


def told(kind: str, **fields: Any) -> Edit:
    """Change what the last write was answered."""

    def edit(forgery: Forgery) -> None:
        number = len([key for key in forgery.parts if key.kind == kind]) - 1
        about = {**forgery.about(forgery.find(kind, number)), **fields}
        swap_about(kind, json.dumps(about), number)(forgery)

    return edit


def refused(name: str) -> dict[str, Any]:
    return {"refused": name, "args": [], "values": {"message_template": "x", "hint_template": "y"}}


def lose_effects(forgery: Forgery) -> None:
    """Let the effects of the last write on shard 0 be none, for a shard that has not applied it."""
    key = max(key for key in forgery.parts if key.kind == "record")
    arrays = forgery.arrays(key)
    forgery.put(key, pack({**arrays, "0": np.zeros(9, np.uint8)}))


HEADS: dict[str, Case] = {
    "copies without end": (LEAD, set_head("copies", 100_000), "100000 copies of each shard"),
    "copies beyond any number": (LEAD, set_head("copies", 10**30), "copies of each shard"),
    "copies none": (LEAD, set_head("copies", 0), "0 copies"),
    "copies negative": (LEAD, set_head("copies", -1), "-1 copies"),
    "copies true": (LEAD, set_head("copies", True), "not that of a cluster"),
    "copies a text": (LEAD, set_head("copies", "2"), "not that of a cluster"),
    "copies missing": (LEAD, forget("copies"), "not that of a cluster"),
    **{
        f"{name} {what}": (LEAD, set_head(name, value), "head|model|lesson")
        for name in ("model_bytes", "lesson_bytes", "lessons")
        for what, value in (("a text", "1"), ("huge", 10**30), ("more", 10**9), ("negative", -1))
    },
    "a stranger": (
        LEAD,
        lambda forgery: forgery.put(PartKey("code", 0), pack({"x": np.zeros(3)})),
        "unknown kind",
    ),
}
STATES: dict[str, Case] = {
    **{
        f"{name} {what}": (LEAD, set_about("lead", **{name: value}), "lead 0|likeness 0|record")
        for name in COUNTS
        for what, value in (("a text", "1"), ("huge", 2**70), ("negative", -7), ("null", None))
    },
    "no state": (LEAD, drop("lead"), "missing"),
    "a state of nothing": (LEAD, swap_about("lead", "{}"), "counts are damaged"),
    "a state with more": (LEAD, set_about("lead", command="rm"), "counts are damaged"),
    "a state deeply nested": (LEAD, swap_about("lead", BOMB), "not JSON"),
    "a mark a number": (LEAD, set_about("lead", mark=7), "damaged"),
    "a mark of a megabyte": (LEAD, set_about("lead", mark="x" * 2**20), "damaged"),
    "another mark": (LEAD, set_about("lead", mark="other"), "not of one history"),
    "no table": (LEAD, set_about("lead", table=None), "no table"),
    "a table of nothing": (LEAD, set_about("lead", table={}), "no table"),
    "shards without end": (
        LEAD,
        table(born={str(shard): 1 for shard in range(100_000)}),
        "from 1 to 1024 shards",
    ),
    "no shards": (LEAD, table(born={}), "from 1 to 1024"),
    "shards a list": (LEAD, table(born=[1, 1]), "from 1 to 1024"),
    "a shard with a name": (LEAD, table(born={"0": 1, "../1": 1}), "not begun"),
    "a shard yet to come": (LEAD, table(born={"0": 1, "1": 10**9}), "not begun"),
    "slots of nobody": (LEAD, table(slots=[7] * 1024), "slots of shards"),
    "slots few": (LEAD, table(slots=[0]), "slots of shards"),
    "slots null": (LEAD, table(slots=None), "slots"),
    "slots of text": (LEAD, table(slots=["0"] * 1024), "slots of shards"),
    "a target of nobody": (LEAD, table(target=[-1] * 1024), "slots of shards"),
    "a frontier a text": (LEAD, table(frontier="0"), "no table"),
}
WRITES: dict[str, Case] = {
    "a record of nothing": (LEAD, data("record", b""), "not arrays"),
    "a record from nowhere": (LEAD, restart("record", 10**9), "some are missing"),
    "a record negative": (LEAD, restart("record", -1), "some are missing"),
    "effects on a stranger": (LEAD, told("record", shards=["../0"]), "not there"),
    "effects on a number": (LEAD, told("record", shards=[0]), "not there"),
    "effects that are missing": (LEAD, told("record", shards=["0", "1", "0"]), "not there"),
    "a record by nobody": (LEAD, told("record", request=None), "nobody has asked"),
    "a record with another mark": (LEAD, told("record", mark="x"), "not of one history"),
    "an answer by nobody": (LEAD, told("answer", request=7), "nobody has asked"),
    "an answer to come": (LEAD, restart("answer", 10**6), "no write of this cluster"),
    "an answer a list": (LEAD, told("answer", answer=[]), "no answer"),
    "an answer without end": (LEAD, told("answer", answer={"answer": {"n": 2**99}}), "no answer"),
    **{
        f"refused with {name}": (LEAD, told(kind, answer=refused(name)), "no error of a write")
        for kind, name in (
            ("answer", "Any"),
            ("answer", "__loader__"),
            ("answer", "CodebookWarning"),
            ("record", "told"),
            ("record", "SystemExit"),
        )
    },
    "refused with too little": (
        LEAD,
        told("answer", answer=refused("DimensionError")),
        "not what a DimensionError carries",
    ),
}
LEARNED: dict[str, Case] = {
    "no model": (LEAD, data("model", b""), "model"),
    "a model of noise": (
        LEAD,
        data("model", lambda old: old[:-9] + bytes(byte ^ 255 for byte in old[-9:])),
        "model",
    ),
    "no likeness": (LEAD, drop("likeness"), "missing"),
    "likeness of signs that are none": (LEAD, put("likeness", "signs", (0, 0), 3), "likeness 0"),
    "a lesson claims rows": (LEAD, claim("lesson", 10**9), "rows"),
    "a lesson missing": (LEAD, drop("lesson"), "lesson parts"),
    "a lesson of infinity": (LEAD, put("lesson", "rows", (0, 0), np.inf), "cannot be learned"),
    "a lesson of other rows": (
        LEAD,
        swap("lesson", "rows", np.ones((4, 9), np.float32)),
        "rows is",
    ),
    "a lesson of labels that are none": (LEAD, swap_about("lesson", '[["rm", "-rf"]]'), "lesson"),
}
SHARDS: dict[str, Case] = {
    "a shard without state": (SHARD, drop("shard"), "no file of a shard"),
    "a shard of nothing": (SHARD, swap_about("shard", "[]"), "counts are damaged"),
    "a shard with more": (SHARD, set_about("shard", path="/etc"), "counts are damaged"),
    **{
        f"a shard's {name} {what}": (SHARD, set_about("shard", **{name: value}), "shard|arrivals")
        for name in ("seq", "table", "arrived", "refreshed", "mark")
        for what, value in (("a list", [1]), ("huge", 2**70), ("negative", -7))
    },
    "a shard ahead": (SHARD, set_about("shard", seq=10**6), "the lead only up to"),
    "a shard with another mark": (SHARD, set_about("shard", mark="x"), "other writes than"),
    "arrivals missing": (SHARD, drop("arrivals"), "arrivals"),
    "arrivals that fall": (SHARD, swap("arrivals", "arrivals", lambda a: a[::-1].copy()), "ascend"),
    "arrivals of floats": (SHARD, swap("arrivals", "arrivals", lambda a: a * 1.0), "arrivals is"),
    "arrivals few": (SHARD, swap("arrivals", "arrivals", lambda a: a[:1].copy()), "arrivals"),
    "arrivals elsewhere": (SHARD, restart("arrivals", 3), "start where it should"),
    "arrivals to come": (SHARD, put("arrivals", "arrivals", -1, 2**61, number=1), "have arrived"),
    "arrivals negative": (SHARD, put("arrivals", "arrivals", 0, -5), "ascend"),
    "refreshed a stranger": (SHARD, set_head("refreshed", {"at": "x"}), "head: it is damaged"),
}
CASES = {
    **HEADS,
    **STATES,
    **WRITES,
    **LEARNED,
    **SHARDS,
}
