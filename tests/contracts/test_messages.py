"""The same mistake in Python, over HTTP and on the command line: each is told in its own words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import everhash
from everhash import Collection
from everhash.errors import ClosedError, EverhashError, ReadOnlyError
from tests.unit.cli.conftest import failing
from tests.unit.serve.serving import DIM, Served, error_of, filled, serving

ROW = [0.5] * DIM


class Mistake(NamedTuple):
    """One mistake as three people make it, and what each of them reads."""

    call: Callable[[Collection], Any]
    python: str
    route: str
    body: Any
    http: str
    command: tuple[str, ...] = ()
    said: str = ""


MISTAKES = {
    "wrong width": Mistake(
        lambda col: col.search(np.ones((1, 3))),
        f"X has 3 features, but this index is expecting {DIM} features as input "
        "(embed the data as before, or start a new one)",
        "/search",
        {"rows": [[1, 2, 3]]},
        f"a row has 3 features, but this index is expecting {DIM} features as input "
        "(embed the data as before, or start a new one)",
        ("search", "FILE", "WIDE"),
        "3 features a row",
    ),
    "taken id": Mistake(
        lambda col: col.add([ROW], [0]),
        "id 0 is taken (upsert() replaces an entry, remove() frees its id; nothing was added)",
        "/add",
        {"rows": [ROW], "ids": [0]},
        "id 0 is taken (POST /upsert replaces an entry, POST /remove frees its id; nothing was "
        "added)",
    ),
    "id given twice": Mistake(
        lambda col: col.add([ROW, ROW], ["x", "x"]),
        "id 'x' is given twice (give each entry an id of its own; nothing was added)",
        "/add",
        {"rows": [ROW, ROW], "ids": ["x", "x"]},
        "id 'x' is given twice (give each entry an id of its own; nothing was added)",
    ),
    "unknown id": Mistake(
        lambda col: col.get([999]),
        "no entry has id 999 (entries() lists entries)",
        "/get",
        {"ids": [999]},
        "no entry has id 999 (GET /entries lists entries)",
        ("get", "FILE", "999"),
        "no entry has id '999' (everhash entries lists entries)",
    ),
    "unknown label": Mistake(
        lambda col: col.drop_label("nobody"),
        "label 'nobody' has not been seen (labels_ of a hasher and labels() of a collection list "
        "those that have)",
        "/labels/drop",
        {"label": "nobody"},
        "label 'nobody' has not been seen (GET /labels lists those that have)",
        ("drop-label", "FILE", "nobody"),
        "label 'nobody' has not been seen (everhash labels lists them)",
    ),
    "new label": Mistake(
        lambda col: col.label([0], ["nobody"], new=False),
        "label 'nobody' has not been seen (new=True makes a new label; nothing was changed)",
        "/label",
        {"ids": [0], "labels": ["nobody"]},
        "label 'nobody' has not been seen (\"new\": true makes a new label; nothing was changed)",
        ("label", "FILE", "nobody", "0"),
        "label 'nobody' has not been seen (--new makes a new label; nothing was changed)",
    ),
    "other labels than expected": Mistake(
        lambda col: col.label([0], ["ant"], expect="nobody"),
        "expected 'nobody' (somebody has changed it: look at it again; no entry was changed)",
        "/label",
        {"ids": [0], "labels": ["ant"], "expect": ["nobody"]},
        "expected 'nobody' (somebody has changed it: look at it again; no entry was changed)",
        ("label", "FILE", "ant", "0", "--expect", "nobody"),
        "expected 'nobody' (somebody has changed it: look at it again; no entry was changed)",
    ),
    "taken label": Mistake(
        lambda col: col.rename_label(*[each.label for each in col.labels()][:2]),
        "is there already (merge_labels() joins two)",
        "/labels/rename",
        None,
        "is there already (POST /labels/merge joins two)",
    ),
    "3-d rows": Mistake(
        lambda col: col.search(np.ones((1, 2, DIM))),
        "Reshape your data: X.reshape(len(X), -1) makes a row of each item",
        "/search",
        {"rows": [[ROW, ROW]]},
        "",
    ),
}


__all__ = ["failing"]  # a fixture


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file that a service and commands may read."""
    path = tmp_path_factory.mktemp("shop") / "shop.ever"
    filled(path).close()
    np.save(path.with_name("wide.npy"), np.ones((1, 3), np.float32))
    return path


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with filled() as collection, serving(collection) as there:
        yield there


@pytest.mark.parametrize("name", MISTAKES)
def test_python_is_told_in_python(name: str) -> None:
    with filled() as collection, pytest.raises(EverhashError) as caught:
        MISTAKES[name].call(collection)
    assert str(caught.value).endswith(MISTAKES[name].python)


@pytest.mark.parametrize("name", [name for name, each in MISTAKES.items() if each.http])
def test_a_request_is_told_in_routes_and_fields(name: str, served: Served) -> None:
    mistake, body = MISTAKES[name], MISTAKES[name].body
    if body is None:
        first, second = [each["label"] for each in served.get("/labels").json()["labels"]][:2]
        body = {"label": first, "to": second}
    error = error_of(served.post(mistake.route, body))
    assert f"{error['message']} ({error['hint']})".endswith(mistake.http)


@pytest.mark.parametrize("name", [name for name, each in MISTAKES.items() if each.command])
def test_a_command_is_told_in_commands(name: str, shop: Path, failing: Any) -> None:
    mistake = MISTAKES[name]
    files = {"FILE": shop, "WIDE": shop.with_name("wide.npy")}
    ended = failing(*(files.get(each, each) for each in mistake.command))
    assert ended.code
    assert mistake.said in ended.err
    assert "X has" not in ended.err


def test_a_closed_collection_says_so_and_not_that_it_is_for_reading(shop: Path) -> None:
    collection = everhash.open(shop)
    collection.close()
    with pytest.raises(ClosedError, match=r"shop.ever is closed \(open it again\)") as caught:
        collection.search([ROW])
    assert not isinstance(caught.value, ReadOnlyError)


def test_a_write_to_what_is_read_says_how_to_open_it(shop: Path) -> None:
    with (
        everhash.open(shop, readonly=True) as reader,
        pytest.raises(ReadOnlyError, match="open it without readonly=True"),
    ):
        reader.remove([0])


def test_a_collection_that_has_learned_nothing_says_what_to_give(tmp_path: Path) -> None:
    with everhash.create(tmp_path / "new.ever", DIM) as collection:
        with pytest.raises(EverhashError, match="no label was learned yet") as caught:
            collection.predict([ROW])
        assert caught.value.hint == "give some rows a label"
