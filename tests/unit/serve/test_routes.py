"""Every route answers what the collection says."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import everhash
from everhash.collection.collection import Collection
from everhash.matches import Matches
from everhash.serve import chunked_search
from everhash.wire.options import WAYS
from everhash.wire.routes import BY_PATH, DESCRIBED
from tests.unit.serve.serving import (
    ARROW,
    DIM,
    NPY,
    PNG,
    Served,
    arrow,
    error_of,
    filled,
    npy,
    rows,
    serving,
    until,
    vectors,
)

Q, _ = rows(5, seed=1)


FIELDS = ("ids", "scores", "likeness", "labels", "guesses")


def _number(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return None if np.isnan(value) else pytest.approx(value)


def told(matches: Matches) -> list[dict[str, Any]]:
    """Return matches as JSON should have them."""
    answers = []
    for row, n in enumerate(matches.counts.tolist()):
        names = ("id", "score", "likeness", "label", "guess")
        columns = (getattr(matches, field) for field in FIELDS)
        found = [
            dict(zip(names, map(_number, match), strict=True))
            for match in zip(*(c[row, :n].tolist() for c in columns), strict=True)
        ]
        novelty = pytest.approx(float(matches.novelty[row]))
        answers.append({"by": matches.by[row], "novelty": novelty, "found": found})
    return answers


def test_it_lives_and_is_ready(reading: Served) -> None:
    assert reading.get("/live").json() == {"live": True}
    assert reading.get("/ready").json() == {"ready": True, "readonly": False}


def test_limits_are_those_of_the_table(reading: Served) -> None:
    assert reading.get("/limits").json() == {
        **{"dims": 16384, "labels": 100_000, "new_labels": 1000, "k": 1000, "queries": 1000},
        **{"page": 1000, "row_labels": 100_000},
        **{"rows": 10_000, "body": 67_108_864, "answer": 134_217_728, "label": 256, "id": 64},
        **{"payload": 4096, "thumbnail": 32_768, "requests": 64, "seconds": 60},
    }


def test_stats_are_the_collections_without_its_path(reading: Served, stored: Collection) -> None:
    stats = reading.get("/stats").json()
    own = stored.stats()
    del own["path"]
    assert stats == {**own, "version": everhash.__version__, "readonly": False, "name": None}
    assert (stats["entries"], stats["labels"], stats["dim"], stats["bits"]) == (60, 3, DIM, 16)
    assert stats["learned"]["rows"] == 40


def test_stats_count_labels_before_there_is_an_entry() -> None:
    with everhash.create(None, DIM) as collection, serving(collection) as served:
        X, y = rows(9)
        served.post("/learn", {"rows": X.tolist(), "labels": y})
        stats = served.get("/stats").json()
        assert (stats["entries"], stats["labels"], stats["width"]) == (0, 3, 32)


def test_labels_come_in_pages(reading: Served, stored: Collection) -> None:
    whole = reading.get("/labels").json()
    infos = stored.labels()
    assert whole["total"] == 3
    assert [info["label"] for info in whole["labels"]] == [info.label for info in infos]
    for got, info in zip(whole["labels"], infos, strict=True):
        assert info.codeword is not None
        assert got["codeword"] == info.codeword.tolist()
        assert (got["cycle"], got["entries"], got["lessons"], got["accuracy"]) == info_of(info)
    part = reading.get("/labels", params={"start": 1, "limit": 1}).json()
    assert part == {"total": 3, "labels": whole["labels"][1:2]}


def info_of(info: Any) -> tuple[Any, ...]:
    return info.cycle, info.entries, info.lessons, info.accuracy


def test_entries_come_in_pages(reading: Served, stored: Collection) -> None:
    found: list[Any] = []
    start: Any = 0
    while start is not None:
        page = reading.get("/entries", params={"start": start, "limit": 7, "codes": True}).json()
        assert page["total"] == 60
        assert len(page["entries"]) <= 7
        found, start = found + page["entries"], page["next"]
    assert found == [entry_told(entry) for entry in stored.entries()]


def entry_told(entry: Any) -> dict[str, Any]:
    code = None if entry.code is None else entry.code.astype(int).tolist()
    return {
        **{"id": entry.id, "labels": list(entry.labels), "home": entry.home},
        **{"payload": None, "thumbnail": False, "guess": entry.guess, "code": code},
    }


def test_entries_leave_out_the_removed_and_can_be_the_unlabelled_only(writing: Served) -> None:
    writing.post("/remove", {"ids": [3, 45]})
    page = writing.get("/entries").json()
    assert page["total"] == 58
    assert page["next"] is None
    assert [entry["id"] for entry in page["entries"]] == [i for i in range(60) if i not in (3, 45)]
    assert "code" not in page["entries"][0]
    bare = writing.get("/entries", params={"unlabelled": True, "limit": 5}).json()
    assert bare["total"] == 19
    assert [entry["id"] for entry in bare["entries"]] == [40, 41, 42, 43, 44]
    assert bare["next"] == 46


def test_get_tells_of_entries_in_the_order_asked(reading: Served, stored: Collection) -> None:
    answer = reading.post("/get", {"ids": [50, 2]}).json()
    assert answer == {"entries": [entry_told(entry) for entry in stored.get([50, 2])]}


def test_has_tells_which_ids_are_taken(writing: Served) -> None:
    writing.post("/remove", {"ids": [3]})
    assert writing.post("/has", {"ids": [2, 3, 60, "x"]}).json() == {
        "has": [True, False, False, False]
    }


@pytest.mark.parametrize("by", WAYS)
@pytest.mark.parametrize("n", [1, 5])
def test_search_finds_what_the_collection_finds(
    reading: Served, stored: Collection, by: str, n: int
) -> None:
    answer = reading.post("/search", {"rows": Q[:n].tolist(), "k": 4, "by": by})
    assert answer.json() == {
        "matches": told(stored.search(Q[:n], 4, by)),
        "columns": 4,
    }


def test_search_filters_by_labels_and_ids(reading: Served, stored: Collection) -> None:
    asked: dict[str, Any] = {"rows": Q.tolist(), "labels": ["bee"], "k": 50}
    assert reading.post("/search", asked).json()["matches"] == told(
        stored.search(Q, 50, labels=["bee"])
    )
    asked = {"rows": Q.tolist(), "ids": [1, 2, 55]}
    assert reading.post("/search", asked).json()["matches"] == told(
        stored.search(Q, 10, ids=[1, 2, 55])
    )


def test_search_says_why(reading: Served, stored: Collection) -> None:
    answer = reading.post("/search", {"rows": Q[:2].tolist(), "k": 60, "explain": True}).json()
    matches = stored.search(Q[:2], 60, explain=True)
    for query, whys in zip(answer["matches"], matches.explanations, strict=True):
        assert len(query["found"]) == len(whys) == 60
        for match, why in zip(query["found"], whys, strict=True):
            told_why = {"label": why.label, "cycle": why.cycle, "bits": why.bits.tolist()}
            told_why |= {"meaning": why.meaning, "why": match["explanation"]["why"]}
            has = "taken for" if match["label"] is None else "labelled"
            assert told_why["why"].startswith(f"{match['score']:.2f}: {has} ")
            assert match["explanation"] == told_why


def test_search_by_a_stored_entry(reading: Served, stored: Collection) -> None:
    answer = reading.post("/search", {"like": [45, 40], "k": 3}).json()
    assert answer["matches"] == told(stored.search(stored.features([45, 40]), 3))


def test_radius_finds_what_the_collection_finds(reading: Served, stored: Collection) -> None:
    for r in (0, 3, 16, -1e300, 10**400):
        answer = reading.post("/radius", {"rows": Q.tolist(), "r": r}).json()
        found = stored.search_radius(Q, float(np.clip(r, -99, 99)))
        assert answer == {"matches": told(found), "columns": found.ids.shape[1]}
    answer = reading.post("/radius", {"rows": Q.tolist(), "r": -1.5, "by": "asymmetric"})
    assert answer.json()["matches"] == told(stored.search_radius(Q, -1.5, "asymmetric"))


def test_a_radius_is_searched_in_parts(
    monkeypatch: pytest.MonkeyPatch, reading: Served, stored: Collection
) -> None:
    monkeypatch.setattr(chunked_search, "RADIUS_CELLS", 130)
    X, options = np.concatenate([Q, 100 * Q, -Q]), {"params": {"r": 6}}
    wanted = stored.search_radius(X, 6)
    answer = reading.send("/radius", npy(X), NPY, **options).json()
    assert answer == {"matches": told(wanted), "columns": wanted.ids.shape[1]}
    table = reading.send("/radius", npy(X), NPY, headers={"Accept": ARROW}, **options)
    check_table(table.content, wanted)
    asked = {"rows": X.tolist(), "r": 6, "explain": True}
    explained = reading.post("/radius", asked).json()["matches"]
    whys = stored.search_radius(X, 6, explain=True).explanations
    assert [len(query["found"]) for query in explained] == [len(why) for why in whys]
    assert explained[0]["found"][0]["explanation"]["bits"] == whys[0][0].bits.tolist()


def test_npy_and_arrow_ask_as_json_does(reading: Served) -> None:
    wanted = reading.post("/search", {"rows": Q.tolist(), "k": 4, "by": "hamming"}).json()
    options = {"params": {"k": 4, "by": "hamming"}}
    bodies = [(npy(Q), NPY), (npy(np.asfortranarray(Q.astype(np.float64))), NPY)]
    bodies += [(arrow({"vector": vectors(Q)}), ARROW), (arrow({"vector": Q.tolist()}), ARROW)]
    for content, kind in bodies:
        assert reading.send("/search", content, kind, **options).json() == wanted
    wanted = reading.post("/radius", {"rows": Q.tolist(), "r": 5}).json()
    assert reading.send("/radius", npy(Q), NPY, params={"r": 5}).json() == wanted


def test_arrow_answers_hold_what_json_answers_hold(reading: Served, stored: Collection) -> None:
    X = np.concatenate([Q, 100 * Q])
    answer = reading.send("/search", npy(X), NPY, params={"k": 60}, headers={"Accept": ARROW})
    assert answer.headers["content-type"] == ARROW
    check_table(answer.content, stored.search(X, 60))


def check_table(content: bytes, matches: Matches) -> None:
    """Hold a table against the matches it should tell of."""
    table = pa.ipc.open_stream(content).read_all()
    about = json.loads(table.schema.metadata[b"everhash"])
    assert (about["queries"], about["columns"]) == matches.ids.shape
    novelty = np.frombuffer(base64.b64decode(about["novelty"]), "<f4")
    np.testing.assert_array_equal(novelty, matches.novelty)
    there = np.arange(matches.ids.shape[1]) < matches.counts[:, None]
    columns = table.to_pydict()
    ids = [json.loads(i) for i in columns["id"]] if about["ids"] == "json" else columns["id"]
    assert columns["query"] == np.nonzero(there)[0].tolist()
    assert ids == matches.ids[there].tolist()
    for name, values in (("score", matches.scores), ("likeness", matches.likeness)):
        np.testing.assert_array_equal(np.array(columns[name], np.float32), values[there])
    for name, values in (("label", matches.labels), ("guess", matches.guesses)):
        read = [None if label is None else json.loads(label) for label in columns[name]]
        assert read == values[there].tolist()
    assert about["by"] == matches.by
    np.testing.assert_array_equal(np.array(columns["novelty"]), novelty[columns["query"]])


@pytest.mark.parametrize(
    "ids", [["a", "b"], ["a", 7], [2**62, -5], ["\ud800", "b"], ['<script>"', "\x00"]]
)
def test_ids_of_all_kinds_come_back_as_they_were(ids: list[Any]) -> None:
    with everhash.create(None, DIM) as collection:
        collection.add(Q[:2], ids=ids, y=["x", 3.5])
        with serving(collection) as served:
            answer = served.post("/search", {"rows": Q[:1].tolist(), "k": 3}).json()
            assert {match["id"] for match in answer["matches"][0]["found"]} == set(ids)
            options = {"params": {"k": 3}, "headers": {"Accept": ARROW}}
            table = served.send("/search", npy(Q[:3]), NPY, **options)
            check_table(table.content, collection.search(Q[:3], 3))


def test_nothing_is_found_in_an_empty_collection() -> None:
    with everhash.create(None, DIM) as collection, serving(collection) as served:
        answer = served.post("/search", {"rows": Q[:2].tolist()}).json()
        assert answer == {
            "matches": 2 * [{"by": "relevance", "novelty": 1.0, "found": []}],
            "columns": 10,
        }
        table = served.send("/search", npy(Q), NPY, headers={"Accept": ARROW})
        check_table(table.content, collection.search(Q))
        assert served.get("/entries").json() == {"total": 0, "next": None, "entries": []}
        assert served.get("/labels").json() == {"total": 0, "labels": []}


def test_writes_do_what_the_collection_does(writing: Served, collection: Collection) -> None:
    X, y = rows(6, seed=3)
    with filled() as other:
        learned = writing.post("/learn", {"rows": X.tolist(), "labels": y}).json()
        other.learn(X, y)
        assert learned == {"learned": 6, "labels": 3}
        body = {"rows": X[2:4].tolist(), "labels": y[2:4]}
        assert writing.post("/forget", body).json() == {"forgotten": 2}
        other.forget(X[2:4], y[2:4])
        labels: list[Any] = ["new", None, ["ant", "bee"], 4, 2.5, True]
        sets = [set(label) if isinstance(label, list) else label for label in labels]
        ids = ["a", 100, "c", 101, "e", 102]
        body = {"rows": X.tolist(), "labels": labels, "ids": ids}
        assert writing.post("/ingest", body).json() == {"ids": ids}
        other.ingest(X, sets, ids)
        assert writing.post("/add", {"rows": X[:2].tolist()}).json() == {"ids": [103, 104]}
        other.add(X[:2])
        body = {"ids": [103, "a"], "labels": ["later", ["ant", "more"]], "new": True}
        new = [{"label": "later", "near": []}, {"label": "more", "near": []}]
        assert writing.post("/label", body).json() == {"labelled": 2, "new": new}
        other.label([103, "a"], ["later", {"ant", "more"}])
        body = {"ids": [1], "labels": ["latter"], "teach": False, "new": True}
        new = [{"label": "latter", "near": ["later"]}]
        assert writing.post("/label", body).json() == {"labelled": 1, "new": new}
        other.label([1], ["latter"], teach=False)
        assert writing.post("/unlabel", {"ids": [103, 2, 45]}).json() == {"unlabelled": 2}
        other.unlabel([103, 2, 45])
        body = {"ids": [4, "x"], "rows": X[:2].tolist(), "labels": ["bee", None], "teach": False}
        assert writing.post("/upsert", body).json() == {"ids": [4, "x"]}
        other.upsert(X[:2], [4, "x"], ["bee", None], teach=False)
        assert writing.post("/update", {"ids": [5], "rows": X[:1].tolist()}).json() == {
            "updated": 1
        }
        other.update([5], X[:1])
        for path, body, answer in (
            ("/labels/rename", {"label": "cow", "to": "ox"}, {"label": "ox"}),
            ("/labels/merge", {"label": "latter", "into": "later"}, {"entries": 1}),
            ("/labels/drop", {"label": "new"}, {"entries": 0}),
        ):
            assert writing.post(path, body).json() == answer
        other.rename_label("cow", "ox")
        other.merge_labels("latter", "later")
        other.drop_label("new")
        gone = {"new", "latter", "cow"}
        told = writing.get("/labels").json()
        names = [one["label"] for one in told["labels"]]
        assert not gone & set(map(str, names))
        assert told["total"] == len(names) == writing.get("/stats").json()["labels"]
        predicted = writing.post("/predict", {"rows": Q.tolist()}).json()["labels"]
        assert predicted == other.predict(Q).tolist()
        assert writing.post("/remove", {"ids": [0, 59]}).json() == {"removed": 2}
        other.remove([0, 59])
        same(collection, other)


def same(a: Collection, b: Collection) -> None:
    """Hold two collections to be alike."""
    assert [entry_told(entry) for entry in a.entries()] == [entry_told(e) for e in b.entries()]
    np.testing.assert_array_equal(a.hasher.margins(Q), b.hasher.margins(Q))


def test_what_was_learned_can_be_forgotten_in_any_form(
    writing: Served, collection: Collection
) -> None:
    X, y = rows(4, seed=5)
    before = [info.lessons for info in collection.labels()]
    table, told = arrow({"vector": vectors(X), "label": y}), {"rows": X.tolist(), "labels": y}
    for body, kind in ((json.dumps(told).encode(), "application/json"), (table, ARROW)):
        assert writing.send("/learn", body, kind).json() == {"learned": 4, "labels": 3}
        assert writing.get("/stats").json()["learned"]["rows"] == 44
        assert writing.send("/forget", body, kind).json() == {"forgotten": 4}
        assert writing.get("/stats").json()["learned"]["rows"] == 40
        assert [info.lessons for info in collection.labels()] == before
        assert error_of(writing.send("/forget", body, kind))["code"] == "InputError"
    assert writing.send("/forget", npy(X), NPY).json() == {"forgotten": 4}  # none has a label
    assert writing.get("/stats").json()["learned"]["rows"] == 40


def test_a_method_that_cannot_forget_says_so() -> None:
    X, y = rows(9)
    body = {"rows": X.tolist(), "labels": y}
    hasher = everhash.OnlineHasher(16, learner="sgd")
    for options in ({"method": "mihash"}, {"hasher": hasher}):
        with everhash.create(None, DIM, **options) as collection, serving(collection) as served:
            assert served.post("/learn", body).status_code == 200
            assert served.get("/stats").json()["learned"] is None
            assert {told["accuracy"] for told in served.get("/labels").json()["labels"]} == {None}
            error = error_of(served.post("/forget", body))
            assert (error["status"], error["code"]) == (422, "OptionError")
            assert "cannot forget" in error["message"]


def test_tables_and_arrays_can_be_written(writing: Served, collection: Collection) -> None:
    X, y = rows(4, seed=5)
    columns = {
        **{"vector": vectors(X), "id": ["p", "q", "r", "s"], "label": [*y[:3], None]},
        "payload": ['{"a":1}', None, '"text"', "3"],
        "thumbnail": pa.array([PNG, None, None, PNG], pa.binary()),
    }
    assert writing.send("/add", arrow(columns), ARROW).json() == {"ids": ["p", "q", "r", "s"]}
    carried = collection.attachments(["p", "q", "r", "s"])
    assert [item.payload for item in carried] == [{"a": 1}, None, "text", 3]
    assert [item.thumbnail for item in carried] == [PNG, None, None, PNG]
    assert [e.labels for e in collection.get(["p", "s"])] == [(y[0],), ()]
    assert writing.send("/add", npy(X), NPY).json() == {"ids": [60, 61, 62, 63]}
    table = pa.table({"vector": vectors(X), "label": ['"x"', "7", '["x", 7]', "null"]})
    field = table.schema.field("label").with_metadata({"everhash": "json"})
    answer = writing.send("/ingest", arrow(table.cast(table.schema.set(1, field))), ARROW)
    got = [entry.labels for entry in collection.get(answer.json()["ids"])]
    assert got == [("x",), (7,), (7, "x"), ()]
    encoded = pa.array(["x", "x", "y", None]).dictionary_encode()
    columns = {"vector": vectors(X), "label": encoded}
    answer = writing.send("/add", arrow(columns), ARROW)
    got = [entry.labels for entry in collection.get(answer.json()["ids"])]
    assert got == [("x",), ("x",), ("y",), ()]


def test_entries_carry_payloads_and_thumbnails(writing: Served) -> None:
    payload = {"title": "<script>alert(1)</script>", "price": [1, 2.5, None]}
    picture = base64.b64encode(PNG).decode()
    body = {"ids": [1, 2], "payloads": [payload, "x"], "thumbnails": [picture, None]}
    assert writing.post("/attach", body).json() == {"attached": 2}
    first, second = writing.post("/get", {"ids": [1, 2]}).json()["entries"]
    assert (first["payload"], first["thumbnail"]) == (payload, True)
    assert (second["payload"], second["thumbnail"]) == ("x", False)
    assert writing.get("/entries", params={"start": 1, "limit": 1}).json()["entries"][0] == {
        name: value for name, value in first.items() if name != "code"
    }
    writing.post("/attach", {"ids": [1], "payloads": [None]})
    (first,) = writing.post("/get", {"ids": [1]}).json()["entries"]
    assert (first["payload"], first["thumbnail"]) == (None, True)


def test_a_thumbnail_is_an_image_that_is_sent_once(writing: Served) -> None:
    body = {"rows": Q[:1].tolist(), "ids": ["7"]}
    writing.post("/add", {**body, "thumbnails": [base64.b64encode(PNG).decode()]})
    answer = writing.get("/thumbnail", params={"id": "7"})
    assert answer.content == PNG
    assert answer.headers["content-type"] == "image/png"
    assert answer.headers["x-content-type-options"] == "nosniff"
    again = {"If-None-Match": answer.headers["etag"]}
    assert writing.get("/thumbnail", params={"id": "7"}, headers=again).status_code == 304
    other = {"ids": ["7"], "thumbnails": [base64.b64encode(PNG + b"!").decode()]}
    writing.post("/attach", other)
    assert writing.get("/thumbnail", params={"id": "7"}, headers=again).content == PNG + b"!"
    for params in ({"id": "7", "json": "true"}, {"id": "8"}):
        assert writing.get("/thumbnail", params=params).status_code == 404


def test_a_thumbnail_is_found_by_a_number_as_by_a_text(writing: Served) -> None:
    def picture(**params: str) -> bytes:
        return writing.get("/thumbnail", params=params).content

    attached = {"ids": [4], "thumbnails": [base64.b64encode(PNG).decode()]}
    writing.post("/attach", attached)
    assert picture(id="4") == picture(id="4", json="true") == PNG
    body = {"rows": Q[:1].tolist(), "ids": ["4"]}
    writing.post("/add", {**body, "thumbnails": [base64.b64encode(PNG + b"!").decode()]})
    assert picture(id="4") == picture(id='"4"', json="true") == PNG + b"!"
    assert picture(id="4", json="true") == PNG


@pytest.mark.parametrize("label", ["<script>alert('x')</script>", '"; DROP', "\x00\x07é", "😀"])
def test_labels_come_back_as_they_were(writing: Served, label: str) -> None:
    writing.post("/label", {"ids": [40], "labels": [label], "new": True})
    (entry,) = writing.post("/get", {"ids": [40]}).json()["entries"]
    assert entry["labels"] == [label]
    asked = {"rows": Q[:1].tolist(), "labels": [label]}
    found = writing.post("/search", asked).json()["matches"][0]["found"]
    assert [(match["id"], match["label"]) for match in found] == [(40, label)]
    answer = writing.get("/labels")
    assert answer.json()["labels"][-1]["label"] == label
    assert answer.headers["content-type"] == "application/json"


def test_labels_of_other_types_go_both_ways(writing: Served) -> None:
    labels = [{"bytes": "00ff"}, {"tuple": ["a", 1]}, -3, 0.5]
    writing.post("/label", {"ids": [0, 1, 2, 3], "labels": labels, "new": True})
    entries = writing.post("/get", {"ids": [0, 1, 2, 3]}).json()["entries"]
    assert [entry["labels"] for entry in entries] == [[label] for label in labels]


def test_a_refresh_is_a_job(writing: Served, collection: Collection) -> None:
    X, y = rows(300, seed=8)
    writing.post("/learn", {"rows": X.tolist(), "labels": y})
    would = writing.post("/refresh", params={"dry_run": True})
    assert would.status_code == 200
    begun = writing.post("/refresh")
    assert begun.status_code == 202
    path = f"/jobs/{begun.json()['job']}"
    until(lambda: writing.get(path).json()["state"] != "running")
    job = writing.get(path).json()
    assert job["progress"] == 1
    assert (job["state"], job["error"]) == ("done", None)
    assert job["report"]["entries"] == would.json()["entries"] == 20
    assert job["report"]["bits_flipped"] == would.json()["bits_flipped"]
    assert would.json()["dry_run"]
    assert not job["report"]["dry_run"]
    assert job["report"] == {**asdict(collection.refresh(dry_run=True)), **job["report"]}
    assert collection.stats()["stale_bits"] == 0


def test_a_snapshot_is_the_collection(tmp_path: Path) -> None:
    for source in (None, tmp_path / "served.ever"):
        with filled(source) as collection, serving(collection) as served:
            copy = tmp_path / f"copy of {source is None}.ever"
            answer = served.get("/snapshot")
            assert answer.headers["content-type"] == "application/vnd.sqlite3"
            assert int(answer.headers["content-length"]) == len(answer.content)
            copy.write_bytes(answer.content)
            with everhash.open(copy) as other:
                same(collection, other)
            assert not everhash.verify(copy).problems


def test_the_document_describes_every_route(reading: Served) -> None:
    document = reading.get("/openapi.json").json()
    assert set(document["paths"]) == set(BY_PATH) - {"/", "/static", "/openapi.json", "/docs"}
    text = json.dumps(document)
    for name in {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}:
        assert name in document["components"]["schemas"]
    for path, operations in document["paths"].items():
        for operation in operations.values():
            assert operation["description"], path
            assert ("security" in operation) == (BY_PATH[path].role is not None)
            error = operation["responses"]["422"]["content"]["application/json"]["schema"]
            assert error == {"$ref": "#/components/schemas/Problem"}


def test_the_page_of_documentation_shows_every_route_and_needs_no_network(reading: Served) -> None:
    page = reading.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    for route in DESCRIBED:
        assert f"{route.method} {route.path}</code>" in page.text
    loaded = re.findall(r'(?:src|href)="([^"#]*)', page.text)
    assert set(loaded) == {"", "static/docs.css", "openapi.json", "."}  # nothing from elsewhere
    assert "<script" not in page.text
    assert f"curl {reading.address}/search -H" in page.text
    document = reading.get("/openapi.json").json()
    for route in DESCRIBED:
        if route.request is not None:
            for name in document["components"]["schemas"][route.request]["properties"]:
                assert f"<tr><td><code>{name}</code></td><td>" in page.text
    odd = reading.get("/docs", headers={"Host": "localhost:1"})
    assert "curl http://localhost:1/search" in odd.text
    assert reading.get("/static/docs.css").status_code == 200


def test_payloads_come_with_matches_where_asked_for(writing: Served) -> None:
    writing.post("/attach", {"ids": [3, 41], "payloads": [{"title": "three"}, [1]]})
    asked = {"rows": Q[:2].tolist(), "k": 60}
    plain = writing.post("/search", asked).json()["matches"]
    assert "payload" not in plain[0]["found"][0]
    for path, more in (("/search", {}), ("/radius", {"r": 99})):
        body = {"rows": asked["rows"], "payloads": True, **(more or {"k": 60})}
        for query in writing.post(path, body).json()["matches"]:
            found = {match["id"]: match["payload"] for match in query["found"]}
            assert (found[3], found[41], found[5]) == ({"title": "three"}, [1], None)
    params = {"k": 60, "payloads": "true"}
    answer = writing.send("/search", npy(Q[:2]), NPY, params=params, headers={"Accept": ARROW})
    columns = pa.ipc.open_stream(answer.content).read_all().to_pydict()
    texts = dict(zip(columns["id"], columns["payload"], strict=True))
    assert (texts[3], texts[5]) == ('{"title": "three"}', "null")


def test_every_answer_has_the_headers_that_protect_it(reading: Served) -> None:
    for answer in (reading.get("/live"), reading.get("/nope"), reading.post("/get", {})):
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'self'; img-src 'self' blob: data:")
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["cache-control"] == "no-store"
        assert "server" not in answer.headers
