"""Hostile files: heads that are none, or that count what is not there.

A case is an edit of a good file (see `forging.write_victim`), after which every checksum is right
again, and what must be said of it: by the error, or by a problem that `verify` names.
"""

from __future__ import annotations

from typing import Any

from tests.fuzz.forging import Edit, Forgery, run, set_head

Case = tuple[Edit, str]
BOMB = "[" * 100_000 + "]" * 100_000
FIELDS = (
    "format",
    "version",
    "commit",
    "options",
    "places",
    "lessons",
    "lesson_bytes",
    "model_bytes",
    "changes",
    "changed",
    "epoch",
    "folds",
)


def say(text: str | bytes) -> Edit:
    """Put something else in place of the head."""

    def edit(forgery: Forgery) -> None:
        forgery.text = text

    return edit


def claim_head(**fields: Any) -> Edit:
    """Let the head say this, whatever is true."""
    return lambda forgery: forgery.claimed.update(fields)


def forget(name: str) -> Edit:
    return lambda forgery: forgery.head.pop(name)


NO_HEADS: dict[str, Case] = {
    "lessons that say they weigh nothing": (set_head("lesson_bytes", 0), "outgrows"),
    "head empty": (say(""), "head is damaged"),
    "head no JSON": (say("everhash"), "head is damaged"),
    "head a list": (say("[]"), "head is damaged"),
    "head of pairs": (say('[["format", "everhash-collection"]]'), "head is damaged"),
    "head a number": (say("7"), "head is damaged"),
    "head a number of a million digits": (say("9" * 10**6), "head is damaged"),
    "head deeply nested": (say(BOMB), "head is damaged"),
    "head deeply nested inside": (say('{"format": ' + BOMB + "}"), "head is damaged"),
    "head of bytes": (say(b'{"format": "everhash-collection", "version": 1}'), "head is damaged"),
    "head that is no UTF-8": (run("UPDATE head SET about = CAST(x'ff' AS TEXT)"), "UTF-8"),
    "head whose checksum is a text": (run("UPDATE head SET checksum = 'x'"), "head is damaged"),
    "two heads": (run("INSERT INTO head SELECT 2, about, checksum FROM head"), "head is damaged"),
    "no head": (run("DELETE FROM head"), "head is damaged"),
    "head of another format": (set_head("format", "everhash-index"), "head is damaged"),
    "head of another version": (set_head("version", 2), "head is damaged"),
    **{f"head without {name}": (forget(name), "damaged") for name in FIELDS},
}
LYING_HEADS: dict[str, Case] = {
    "fewer parts than there are": (claim_head(parts=1), "parts are missing"),
    "more parts than there are": (claim_head(parts=10**9), "parts are missing"),
    "another tally": (claim_head(tally=0), "parts are missing"),
    "tally a text": (claim_head(tally="0"), "head is damaged"),
    "tally beyond any number": (claim_head(tally=10**1000), "parts are missing"),
    "commit negative": (set_head("commit", -1), "commit is before"),
    "commit beyond any number": (set_head("commit", 2**63), "commit"),
    "commit before its parts": (set_head("commit", 1), "commit is before"),
    "places a text": (set_head("places", "12"), "head: it is damaged"),
    "places a float": (set_head("places", 12.0), "head: it is damaged"),
    "lessons true": (set_head("lessons", True), "head: it is damaged"),
    "places negative": (set_head("places", -1), "head: it is damaged"),
    "places beyond the largest": (
        set_head("places", 2**31),
        "more entries than a collection can have",
    ),
    "places huge": (set_head("places", 10**30), "head"),
    "places one more": (set_head("places", 13), "some are missing"),
    "places one less": (set_head("places", 11), "some are missing"),
    "lessons fewer": (set_head("lessons", 0), "lesson parts"),
    "lessons more": (set_head("lessons", 4), "lesson parts"),
    "lessons a billion": (set_head("lessons", 10**9), "lesson parts"),
    "lessons huge": (set_head("lessons", 10**30), "head"),
    "changes fewer": (set_head("changes", 0), "change parts"),
    "changes a billion": (set_head("changes", 10**9), "change parts"),
    "changed another": (set_head("changed", 3), "changed entries"),
    "changed negative": (set_head("changed", -2), "head: it is damaged"),
    "model_bytes more": (set_head("model_bytes", 10**15), "model"),
    "model_bytes none": (set_head("model_bytes", 0), "model"),
    "lesson_bytes more": (set_head("lesson_bytes", 10**15), "outgrew the model"),
    "epoch huge": (set_head("epoch", 10**30), "head"),
    "folds huge": (set_head("folds", 2**63), "head"),
    "options a list": (set_head("options", []), "head: it is damaged"),
    "options unknown": (set_head("options.command", "rm"), "head: it is damaged"),
    "coding unknown": (set_head("options.coding", "half"), "head: it is damaged"),
    "coding a list": (set_head("options.coding", ["home"]), "head: it is damaged"),
    "coding another": (set_head("options.coding", "full"), "codes"),
    "keep_features a number": (set_head("options.keep_features", 1), "head: it is damaged"),
    "keep_features true": (set_head("options.keep_features", True), "head: it is damaged"),
    "keep_features some": (set_head("options.keep_features", "some"), "head: it is damaged"),
    "keep_features a list": (set_head("options.keep_features", ["all"]), "head: it is damaged"),
    "likeness a number": (set_head("options.likeness", 1), "head: it is damaged"),
    "likeness null": (set_head("options.likeness", None), "head: it is damaged"),
    "next_id negative": (set_head("next_id", -1), "head: it is damaged"),
    "next_id a text": (set_head("next_id", "7"), "head: it is damaged"),
    "next_id beyond any id": (set_head("next_id", 2**64), "head: it is damaged"),
    "certify a text": (set_head("options.certify", "yes"), "head: it is damaged"),
    "refreshed a number": (set_head("refreshed", 7), "head: it is damaged"),
    "refreshed a list": (set_head("refreshed", [[[[1]]]]), "head: it is damaged"),
}
