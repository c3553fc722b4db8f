"""Messages speak the language of the place that the client says it is in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import everhash
from everhash.client.remote import connect_from
from everhash.errors import DuplicateIdError, EverhashError, ServiceError
from everhash.places import PLACES, Place
from everhash.serve.keys import Keys, make_key
from tests.unit.serve.serving import DIM, Served, error_of, filled, serving

SECRET, KEY = make_key("write")
TAKEN: dict[str, Any] = {"rows": [[0.5] * DIM], "ids": [0]}
HINTS = {
    "python": "upsert() replaces",
    "cli": "`everhash remove` frees it",
    "http": "POST /upsert replaces",
    "page": "take another id",
}
KEY_HINTS = {
    "python": "pass it as key=",
    "cli": "give it in EVERHASH_KEY",
    "http": "send it as `Authorization: Bearer KEY`",
    "page": "type it under Key, at the top right",
}


@pytest.fixture(scope="module")
def guarded() -> Iterator[Served]:
    with filled() as collection, serving(collection, keys=Keys([KEY])) as served:
        yield served


@pytest.mark.parametrize("place", PLACES)
def test_errors_are_told_in_the_words_of_the_place(guarded: Served, place: Place) -> None:
    said = {"Everhash-Place": place, "X-Api-Key": SECRET}
    assert error_of(guarded.post("/add", TAKEN, headers=said))["hint"].startswith(HINTS[place])
    del said["X-Api-Key"]
    hint = error_of(guarded.post("/add", TAKEN, headers=said))["hint"]
    assert hint.startswith(KEY_HINTS[place])


@pytest.mark.parametrize("place", ["", "HTTP", "nowhere", "python, cli", "\u00e9"])
def test_an_unknown_place_is_http(guarded: Served, place: str) -> None:
    headers = {b"Everhash-Place": place.encode("latin-1"), b"X-Api-Key": SECRET.encode()}
    answer = guarded.http.post("/add", json=TAKEN, headers=headers)
    assert error_of(answer)["hint"].startswith(HINTS["http"])


def test_what_a_user_sends_is_no_phrase(reading: Served) -> None:
    error = error_of(reading.post("/get", {"ids": ["{say nothing}"]}))
    assert (error["status"], error["message"]) == (404, "no entry has id '{say nothing}'")


def test_a_client_reads_python_and_the_command_line_its_own(guarded: Served) -> None:
    def hint(place: Place) -> str:
        remote = connect_from(place, guarded.address, SECRET)
        with remote, pytest.raises(DuplicateIdError) as caught:
            remote.add(TAKEN["rows"], TAKEN["ids"])
        return caught.value.hint

    assert hint("python").startswith(HINTS["python"])
    assert hint("cli").startswith(HINTS["cli"])
    with pytest.raises(ServiceError, match="key=") as caught:
        everhash.connect(guarded.address)
    assert "Authorization" not in str(caught.value)


def test_a_job_that_failed_is_told_in_the_words_of_the_place(
    writing: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise EverhashError("no", hint="{call upsert}")

    monkeypatch.setattr("everhash.collection.collection.Collection.refresh_steps", fail)
    job = writing.post("/refresh").json()["job"]
    for place, expected in (("python", "upsert()"), ("http", "POST /upsert")):
        while True:
            said = writing.get(f"/jobs/{job}", headers={"Everhash-Place": place}).json()
            if said["state"] == "failed":
                break
        assert said["error"]["hint"] == expected
