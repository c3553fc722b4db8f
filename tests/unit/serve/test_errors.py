"""Everything that cannot be answered: one shape, the right status, and nothing changed."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import everhash
from everhash import errors
from everhash.collection.collection import Collection
from everhash.errors import EverhashError
from everhash.serve import limits
from everhash.serve.errors import describe, response_to, status_of
from tests.unit.serve.serving import DIM, NPY, Served, error_of, filled, npy, rows, serving, until

ROW = [0.5] * DIM
ROWS = [ROW]
NAN = float("nan")


@pytest.mark.parametrize(
    ("path", "told", "status", "code", "says"),
    [
        ("/search", {}, 422, "InputError", "field 'rows' is missing"),
        ("/search", {"rows": None}, 422, "InputError", "field 'rows' is missing"),
        ("/search", {"rows": "x"}, 422, "InputError", "rows must be a list of rows"),
        ("/search", {"rows": []}, 422, "InputError", "2-d"),
        ("/search", {"rows": [[]]}, 422, "InputError", "0 feature"),
        ("/search", {"rows": ROW}, 422, "InputError", "rows must be a list of rows"),
        ("/search", {"rows": [ROW, [1.0]]}, 422, "InputError", "several lengths"),
        (
            "/search",
            {"rows": [["1"] * DIM]},
            422,
            "FeatureTypeError",
            "row 0: features must be numbers",
        ),
        ("/search", {"rows": [[{}] * DIM]}, 422, "FeatureTypeError", "numbers"),
        ("/search", {"rows": [[None] * DIM]}, 422, "FeatureTypeError", "row 0"),
        ("/search", {"rows": [[10**400] * DIM]}, 422, "NotFiniteError", "row 0"),
        ("/search", {"rows": [[1e38] * DIM]}, 422, "NotFiniteError", "row 0"),
        ("/search", {"rows": [[1.0, 2.0]]}, 422, "DimensionError", "2 features"),
        ("/search", {"rows": ROWS, "k": 0}, 422, "OptionError", "k must be"),
        ("/search", {"rows": ROWS, "k": True}, 422, "OptionError", "k must be"),
        ("/search", {"rows": ROWS, "k": 1001}, 422, "LimitError", "at most 1000"),
        ("/search", {"rows": ROWS, "by": "far"}, 422, "OptionError", "far"),
        ("/search", {"rows": ROWS, "by": []}, 422, "OptionError", "by "),
        ("/search", {"rows": ROWS, "explain": 1}, 422, "OptionError", "explain"),
        ("/search", {"rows": ROWS, "labels": ["yak"]}, 404, "UnknownNameError", "yak"),
        ("/search", {"rows": ROWS, "labels": "yak"}, 422, "InputError", "labels must be a list"),
        ("/search", {"rows": ROWS, "ids": [777]}, 404, "UnknownIdError", "777"),
        ("/search", {"rows": ROWS, "ids": [1.5]}, 422, "IdError", "1.5"),
        ("/search", {"rows": ROWS, "like": [1]}, 422, "InputError", "rows and like"),
        ("/search", {"like": [777]}, 404, "UnknownIdError", "777"),
        ("/search", {"rows": ROWS, "distance": "hamming"}, 422, "InputError", "unknown here"),
        ("/search", {"rows": ROWS, "exact": 1}, 422, "OptionError", "exact"),
        ("/search", {"rows": ROWS, "recall": 0}, 422, "OptionError", "recall must be"),
        ("/search", {"rows": ROWS, "recall": 1.5}, 422, "OptionError", "got 1.5"),
        ("/search", {"rows": ROWS, "recall": "1"}, 422, "OptionError", "got '1'"),
        ("/search", {"rows": ROWS, "recall": True}, 422, "OptionError", "got True"),
        ("/search", {"rows": ROWS, "recall": float("nan")}, 422, "OptionError", "got nan"),
        ("/search?recall=2", {"rows": ROWS}, 422, "OptionError", "recall must be"),
        ("/search?recall=all", {"rows": ROWS}, 422, "OptionError", "recall cannot be 'all'"),
        ("/radius?recall=1", {"rows": ROWS, "r": 1}, 422, "OptionError", "'recall' is not read"),
        ("/search", {"rows": ROWS, "recall": None}, 422, "OptionError", "got None"),
        ("/search", {"like": [1], "recall": -1}, 422, "OptionError", "recall must be"),
        ("/radius", {"rows": ROWS, "r": 1, "recall": 1}, 422, "InputError", "unknown here"),
        ("/search", {"like": []}, 422, "InputError", "0 sample"),
        ("/search", {"rows": ROWS, "unlabelled": "no"}, 422, "OptionError", "unlabelled"),
        ("/label", {"ids": [1], "labels": ["ant"], "teach": 1}, 422, "OptionError", "teach"),
        ("/upsert", {"rows": ROWS}, 422, "InputError", "ids"),
        ("/update", {"rows": ROWS, "ids": [777]}, 404, "UnknownIdError", "777"),
        ("/unlabel", {"ids": [777]}, 404, "UnknownIdError", "777"),
        ("/labels/rename", {"label": "yak", "to": "ox"}, 404, "UnknownNameError", "yak"),
        ("/labels/rename", {"label": "ant", "to": "bee"}, 422, "LabelError", "there already"),
        ("/labels/rename", {"label": "ant", "to": []}, 422, "LabelError", "cannot be a label"),
        ("/labels/merge", {"label": "ant", "into": "ant"}, 422, "LabelError", "itself"),
        ("/labels/drop", {"label": None}, 422, "LabelError", "cannot be a label"),
        ("/predict", {"rows": [[1.0, 2.0]]}, 422, "DimensionError", "2 features"),
        ("/search", {"rows": [["a" * 99, *"b" * 7]]}, 422, "FeatureTypeError", "row 0: features"),
        ("/search", {"rows": ["a" * 99, ROW]}, 422, "InputError", "rows must be a list of rows"),
        ("/search", {"rows": [ROW, [[1]] * 8]}, 422, "FeatureTypeError", "row 1: features"),
        (
            "/learn",
            {"rows": ROWS, "labels": [{"tuple": ["\ud800"]}]},
            422,
            "InputError",
            "is no JSON: ",
        ),
        (
            "/add",
            {"rows": ROWS, "labels": [["ant"] * 100_001]},
            413,
            "TooLargeError",
            "100001 labels",
        ),
        ("/label", {"ids": [1], "labels": [{"tuple": [[]]}]}, 422, "LabelError", "row 0"),
        ("/search", {"rows": ROWS, "sort": "up"}, 422, "InputError", "'sort' is unknown"),
        ("/radius", {"rows": ROWS}, 422, "InputError", "'r' is missing"),
        ("/radius", {"rows": ROWS, "r": "2"}, 422, "OptionError", "r must be"),
        ("/get", {"ids": "x"}, 422, "InputError", "ids must be a list"),
        ("/get", {"ids": [True]}, 422, "IdError", "True"),
        ("/get", {"ids": ["x" * 65]}, 422, "IdError", "cannot be an id"),
        ("/get", {"ids": [2**63]}, 422, "IdError", "cannot be an id"),
        ("/learn", {"rows": ROWS, "labels": []}, 422, "LabelError", "1 rows but 0 labels"),
        ("/learn", {"rows": ROWS, "labels": [{"x": 1}]}, 422, "LabelError", "cannot be a label"),
        ("/learn", {"rows": ROWS, "labels": [{"bytes": "zz"}]}, 422, "LabelError", "row 0"),
        ("/learn", {"rows": ROWS, "labels": [{"tuple": 3}]}, 422, "LabelError", "row 0"),
        ("/learn", {"rows": ROWS, "labels": [[["a"]]]}, 422, "LabelError", "row 0"),
        ("/learn", {"rows": ROWS, "labels": ["x" * 257]}, 422, "LimitError", "256"),
        ("/learn", {"rows": ROWS, "labels": [10**300]}, 422, "LimitError", "256"),
        ("/learn", {"rows": [[1.0]], "labels": ["x"]}, 422, "DimensionError", "1 features"),
        ("/forget", {"labels": ["ant"]}, 422, "InputError", "field 'rows' is missing"),
        ("/forget", {"rows": ROWS, "labels": []}, 422, "LabelError", "1 rows but 0 labels"),
        ("/forget", {"rows": ROWS, "labels": ["yak"]}, 404, "UnknownNameError", "yak"),
        ("/forget", {"rows": ROWS, "labels": ["ant"]}, 422, "InputError", "was not learned"),
        ("/forget", {"rows": 61 * ROWS, "labels": 61 * ["ant"]}, 422, "InputError", "more rows"),
        ("/forget", {"rows": [[1.0]], "labels": ["ant"]}, 422, "DimensionError", "1 features"),
        ("/forget", {"rows": ROWS, "ids": [1]}, 422, "InputError", "'ids' is unknown"),
        ("/add", {"rows": ROWS, "ids": [0]}, 409, "DuplicateIdError", "id 0 is taken"),
        ("/add", {"rows": [ROW, ROW], "ids": ["a", "a"]}, 409, "DuplicateIdError", "twice"),
        ("/add", {"rows": ROWS, "ids": [1, 2]}, 422, "IdError", "1 rows but 2 ids"),
        ("/add", {"rows": ROWS, "payloads": []}, 422, "InputError", "1 entries but 0 payloads"),
        ("/add", {"rows": ROWS, "payloads": ["x" * 4095]}, 422, "LimitError", "4096"),
        ("/add", {"rows": ROWS, "thumbnails": ["?"]}, 422, "InputError", "no base64"),
        ("/add", {"rows": ROWS, "thumbnails": [3]}, 422, "InputError", "no base64"),
        ("/add", {"rows": ROWS, "thumbnails": ["AAAA"]}, 422, "InputError", "no picture"),
        ("/attach", {"ids": [777]}, 404, "UnknownIdError", "777"),
        ("/attach", {"ids": [1, 1], "payloads": [1, 2]}, 422, "InputError", "twice"),
        ("/label", {"ids": [1]}, 422, "InputError", "'labels' is missing"),
        ("/label", {"ids": [1], "labels": [None]}, 422, "LabelError", "no label"),
        ("/label", {"ids": [777], "labels": ["x"]}, 404, "UnknownIdError", "777"),
        (
            "/label",
            {"ids": [41], "labels": ["ants"]},
            404,
            "UnknownNameError",
            "'ants' has not been seen",
        ),
        (
            "/label",
            {"ids": [41], "labels": ["ant"], "expect": ["bee"]},
            409,
            "LabelConflictError",
            "entry 41 has no label, expected 'bee'",
        ),
        (
            "/unlabel",
            {"ids": [41], "expect": [["ant", "bee"]]},
            409,
            "LabelConflictError",
            "entry 41 has no label, expected 'ant' and 'bee'",
        ),
        ("/label", {"ids": [41], "labels": ["ant"], "expect": "ant"}, 422, "InputError", "expect"),
        ("/label", {"ids": [41], "labels": ["ant"], "expect": []}, 422, "LabelError", "1 rows"),
        ("/label", {"ids": [41], "labels": ["ant"], "new": 1}, 422, "OptionError", "new"),
        ("/labels/drop", {"label": "ant", "unused": True}, 422, "LabelError", "is in use"),
        ("/remove", {"ids": [777]}, 404, "UnknownIdError", "777"),
    ],
)
def test_what_cannot_be_used_is_explained(
    reading: Served, path: str, told: Any, status: int, code: str, says: str
) -> None:
    error = error_of(reading.send(path, json.dumps(told).encode(), "application/json"))
    assert (error["status"], error["code"]) == (status, code)
    assert says in error["message"]
    assert error["exit"] == errors.exit_code(made(getattr(errors, code)))


def made(kind: type[EverhashError]) -> EverhashError:
    error = kind.__new__(kind)
    EverhashError.__init__(error, "x")
    return error


def test_nothing_was_changed_by_any_of_that(reading: Served) -> None:
    stats = reading.get("/stats").json()
    assert (stats["entries"], stats["labels"], stats["commit"]) == (60, 3, 2)


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"[]", b"3", b"null", b"{", b'{"rows": [[', b"\xff\xfe", b'{"rows": "\\ud800"}'),
        *(b"[" * 100_000, b'{"a":' * 10_000, b'{"k": 1' + b"0" * 5000 + b"}", b"{}{}"),
    ],
)
def test_what_is_no_json_object_is_refused(reading: Served, text: bytes) -> None:
    for path in ("/search", "/get", "/add"):
        error = error_of(reading.send(path, text, "application/json"))
        assert (error["status"], error["code"]) == (422, "InputError")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_are_none_name_their_row(reading: Served, number: str) -> None:
    row = ", ".join(["1"] * DIM)
    text = f'{{"rows": [[{row}], [{row[:-1]}{number}]]}}'
    error = error_of(reading.send("/search", text.encode(), "application/json"))
    assert error["code"] == "NotFiniteError"
    assert error["values"] == {"row": 1}
    X = np.array([ROW, ROW])
    X[1, 3] = NAN
    error = error_of(reading.send("/add", npy(X), NPY))
    assert (error["code"], error["values"]) == ("NotFiniteError", {"row": 1})


def test_errors_carry_their_values(reading: Served) -> None:
    error = error_of(reading.post("/search", {"rows": [[1.0]]}))
    assert error["values"] == {"expected": DIM, "got": 1}
    assert error_of(reading.post("/get", {"ids": ["no"]}))["values"] == {"id": "no"}


@pytest.mark.parametrize(
    ("path", "told", "what"),
    [
        ("/search", {"rows": 1001 * ROWS}, "1001 rows"),
        ("/search", {"like": list(range(1001))}, "1001 ids in like"),
        ("/radius", {"rows": 1001 * ROWS, "r": 1}, "1001 rows"),
        ("/add", {"rows": 10_001 * [[1.0]]}, "10001 rows"),
        ("/forget", {"rows": 10_001 * [[1.0]]}, "10001 rows"),
        ("/get", {"ids": list(range(1001))}, "1001 ids"),
        ("/remove", {"ids": list(range(10_001))}, "10001 ids"),
    ],
)
def test_more_than_a_request_may_have_is_too_large(
    reading: Served, path: str, told: Any, what: str
) -> None:
    error = error_of(reading.post(path, told))
    assert (error["status"], error["code"]) == (413, "TooLargeError")
    assert what in error["message"]


def test_too_many_rows_of_an_array_are_too_large(reading: Served) -> None:
    error = error_of(reading.send("/search", npy(np.zeros((1001, 2))), NPY))
    assert (error["status"], error["code"]) == (413, "TooLargeError")


def test_json_that_unfolds_is_refused_before_it_is_read(reading: Served) -> None:
    text = b'{"rows": [' + b"[]," * 1_000_001 + b"[]]}"
    error = error_of(reading.send("/search", text, "application/json"))
    assert (error["status"], error["code"]) == (413, "TooLargeError")


def test_an_answer_may_not_grow_without_end(
    monkeypatch: pytest.MonkeyPatch, reading: Served
) -> None:
    monkeypatch.setattr(limits, "MATCHES", 100)
    monkeypatch.setattr(limits, "EXPLAINED", 16 * 40)
    everything = {"rows": 2 * ROWS, "r": 99}
    error = error_of(reading.post("/radius", everything))
    assert (error["status"], error["message"]) == (413, "more than 100 matches")
    assert reading.post("/radius", {**everything, "rows": ROWS}).status_code == 200
    for path, told in (("/radius", {"r": 99}), ("/search", {"k": 60})):
        error = error_of(reading.post(path, {"rows": ROWS, "explain": True, **told}))
        assert error["status"] == 413
        assert error["message"] == "60 matches to explain, at most 40 at a width of 16"
    asked = {"rows": ROWS, "k": 40, "explain": True}
    assert reading.post("/search", asked).status_code == 200


def test_new_labels_are_limited(monkeypatch: pytest.MonkeyPatch, writing: Served) -> None:
    monkeypatch.setattr(limits, "NEW_LABELS", 3)
    monkeypatch.setattr(limits, "LABELS", 5)
    X, _ = rows(4)
    body = {"rows": X.tolist(), "labels": ["p", "q", "r", "s"]}
    for path in ("/learn", "/add", "/ingest"):
        error = error_of(writing.post(path, body))
        assert (error["status"], error["code"]) == (422, "LimitError")
        assert "4 labels never seen before" in error["message"]
    error = error_of(writing.post("/label", {"ids": [1, 2, 3], "labels": ["p", "q", "r"]}))
    assert "3 labels and 3 more, at most 5" in error["message"]
    two = {"rows": X[:2].tolist(), "labels": ["p", "q"]}
    assert writing.post("/learn", two).status_code == 200
    assert writing.post("/learn", two).status_code == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_other_media_types_are_named(reading: Served, kind: str) -> None:
    error = error_of(reading.send("/search", b"{}", kind))
    assert error["status"] == 415
    assert "application/x-npy" in error["hint"]
    error = error_of(reading.send("/get", npy(np.zeros((1, 2))), NPY))
    assert error["status"] == 415
    assert error["hint"] == "send it with Content-Type application/json"


def test_compressed_bodies_are_refused(reading: Served) -> None:
    headers = {"Content-Encoding": "gzip"}
    error = error_of(reading.send("/search", b"x", "application/json", headers=headers))
    assert error["status"] == 415


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        *(("GET", "/nope", 404), ("POST", "/nope", 404), ("GET", "/live/", 404)),
        *(("GET", "/search", 405), ("DELETE", "/stats", 405), ("POST", "/live", 405)),
        *(("OPTIONS", "/search", 405), ("PUT", "/add", 405), ("GET", "/jobs/x/y", 404)),
    ],
)
def test_unknown_routes_and_methods(reading: Served, method: str, path: str, status: int) -> None:
    answer = reading.http.request(method, path)
    error = error_of(answer)
    assert error["status"] == status
    if status == 405:
        assert answer.headers["allow"] in ("GET", "POST")


@pytest.mark.parametrize(
    ("path", "params", "says"),
    [
        ("/entries", {"limit": 1001}, "limit: "),
        ("/entries", {"start": -1}, "start: "),
        ("/entries", {"start": "x"}, "start: "),
        ("/labels", {"limit": 0}, "limit: "),
        ("/thumbnail", {}, "field 'id' is missing"),
        ("/thumbnail", {"id": "x", "json": "both"}, "json: "),
        ("/thumbnail", {"id": "x", "json": "true"}, "'x' is no JSON"),
        ("/entries", {"label": "x", "json": "true"}, "'x' is no JSON"),
        ("/entries", {"labels": "ant"}, "'labels' is unknown in the query string"),
        ("/thumbnail", {"id": "1", "kind": "int"}, "'kind' is unknown in the query string"),
        ("/entries", {"text": "x" * 257}, "a text of 257 characters, at most 256"),
        ("/thumbnail", {"id": ""}, "cannot be an id"),
        ("/thumbnail", {"id": str(2**63), "json": "true"}, "cannot be an id"),
    ],
)
def test_wrong_parameters_are_named(
    reading: Served, path: str, params: dict[str, Any], says: str
) -> None:
    error = error_of(reading.get(path, params=params))
    assert error["status"] == 422
    assert says in error["message"]


def test_options_in_the_query_string_are_checked(reading: Served) -> None:
    for params in ({"k": "x"}, {"k": "0"}, {"k": "1.5"}, {"by": "far"}):
        error = error_of(reading.send("/search", npy(np.zeros((1, DIM))), NPY, params=params))
        assert (error["status"], error["code"]) == (422, "OptionError")
    error = error_of(reading.send("/radius", npy(np.zeros((1, DIM))), NPY, params={"r": "x"}))
    assert error["code"] == "OptionError"
    error = error_of(reading.send("/radius", npy(np.zeros((1, DIM))), NPY, params={"r": "nan"}))
    assert error["code"] == "OptionError"


def test_a_table_has_no_explanations(reading: Served) -> None:
    headers = {"Accept": "application/vnd.apache.arrow.stream"}
    answer = reading.post("/search", {"rows": ROWS, "explain": True}, headers=headers)
    assert error_of(answer)["code"] == "OptionError"


def test_an_unknown_job_is_not_found(reading: Served) -> None:
    assert error_of(reading.get("/jobs/77"))["code"] == "UnknownNameError"


def test_a_collection_served_for_reading_takes_no_writes(tmp_path: Path) -> None:
    path = tmp_path / "shop.ever"
    with filled(path) as writer:
        opener = everhash.open
        with serving(lambda: opener(path, readonly=True), readonly=True) as served:
            for route in ("/learn", "/forget", "/add", "/ingest"):
                error = error_of(served.post(route, {"rows": ROWS}))
                assert (error["status"], error["code"], error["exit"]) == (409, "ReadOnlyError", 7)
            bodies = {"/label": {"ids": [1], "labels": ["x"]}, "/remove": {"ids": [1]}}
            for route, body in {**bodies, "/attach": {"ids": [1]}}.items():
                assert error_of(served.post(route, body))["code"] == "ReadOnlyError"
            assert error_of(served.post("/refresh"))["code"] == "ReadOnlyError"
            assert served.post("/refresh", params={"dry_run": True}).status_code == 200
            assert served.get("/stats").json()["readonly"]
            writer.add([ROW], ids=["new"])
            until(lambda: served.post("/get", {"ids": ["new"]}).status_code == 200)


def test_an_unexpected_error_is_logged_and_not_shown(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, writing: Served
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise RuntimeError("the secret is 42")

    monkeypatch.setattr(Collection, "learn", fail)
    monkeypatch.setattr(Collection, "search", fail)
    for path in ("/learn", "/search"):
        answer = writing.post(path, {"rows": ROWS})
        error = error_of(answer)
        assert (error["status"], error["code"], error["exit"]) == (500, "InternalError", 1)
        assert "42" not in answer.text
        assert "the secret is 42" in caplog.text
    monkeypatch.undo()
    assert writing.post("/search", {"rows": ROWS}).status_code == 200


def test_no_error_tells_where_the_file_is(tmp_path: Path) -> None:
    path = tmp_path / "shop.ever"
    with filled(path) as collection, serving(collection) as served:
        path.rename(tmp_path / "moved.ever")
        error = error_of(served.post("/add", {"rows": ROWS}))
        assert (error["status"], error["code"], error["exit"]) == (503, "StoreError", 7)
        assert str(tmp_path) not in json.dumps(error)
        assert "shop.ever is gone" in error["message"]
        (tmp_path / "moved.ever").rename(path)


def test_every_error_of_the_library_has_a_status() -> None:
    expected = {
        **{"InputError": 422, "DimensionError": 422, "LimitError": 422, "LabelError": 422},
        **{"UnknownNameError": 404, "UnknownIdError": 404, "NotFittedError": 409},
        **{"ReadOnlyError": 409, "StaleCodesError": 409, "DuplicateIdError": 409},
        "LabelConflictError": 409,
        **{"ClosedError": 503},
        **{"TooLargeError": 413, "DiskFullError": 507},
        **{"LockedError": 503, "StoreError": 503, "ServiceError": 503},
    }
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, EverhashError):
            assert status_of(made(kind)) == expected.get(kind.__name__, status_of(made(kind)))
            assert 400 <= status_of(made(kind)) < 600


def test_what_may_succeed_later_says_when() -> None:
    status, headers, _ = response_to(errors.LockedError("held"), None, "http")
    assert (status, headers) == (503, {"Retry-After": "1"})
    assert response_to(ValueError("x"), None, "http")[0] == 500
    assert describe(errors.LockedError("held"))["exit"] == 8


def test_a_full_disk_is_told_from_others(tmp_path: Path) -> None:
    path = tmp_path / "full.ever"
    with filled(path) as collection, serving(collection) as served:
        pages = collection._store.run("PRAGMA page_count").fetchone()[0]
        collection._store.run(f"PRAGMA max_page_count = {pages}")
        X, _ = rows(5000, seed=4)
        error = error_of(served.send("/add", npy(X), NPY))
        assert (error["status"], error["code"]) == (507, "DiskFullError")
        assert served.get("/stats").json()["entries"] == 60
    assert sqlite3.connect(path).execute("PRAGMA integrity_check").fetchone() == ("ok",)
