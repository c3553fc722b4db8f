"""What a client does when all is well, when nothing is, and when a service is none."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import everhash
from everhash import errors
from everhash.client.address import Address
from everhash.client.remote_errors import CLASSES, error_from
from everhash.errors import ClosedError, EverhashError, OptionError, ServiceError
from tests.unit.client.scripted_service import LIMITS, Last, Scripted, answer, scripted, secured


def remote(service: Scripted, **options: Any) -> everhash.RemoteCollection:
    return everhash.connect(service.url, **{"timeout": 60, **options})


FOUND: dict[str, Any] = {"matches": [{"by": "meaning", "novelty": 0.5, "found": []}], "columns": 0}
ROW = np.zeros((1, 3), np.float32)


# Where to, and with which key


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:8765",
        "ftp://localhost",
        "http://",
        "http:///stats",
        "http://host:99999",
        "http://[::1",
        "http://host/a b",
        "http://host/\nx",
        "http://host?key=1",
        "http://host#there",
        None,
        7,
    ],
)
def test_what_is_no_address_is_refused(url: Any) -> None:
    with pytest.raises(OptionError):
        everhash.connect(url)


def test_a_password_in_a_url_is_refused_and_not_shown() -> None:
    for url in ("http://me:secret@host", "gopher://me:secret@host"):
        with pytest.raises(OptionError) as caught:
            everhash.connect(url)
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), "60", None, True])
def test_a_timeout_is_a_number_of_seconds(timeout: Any) -> None:
    with pytest.raises(OptionError):
        everhash.connect("http://localhost:1", timeout=timeout)


@pytest.mark.parametrize("key", ["", "two words", "line\nbreak", "schlüssel", 7])
def test_what_cannot_be_a_key_is_refused_and_not_shown(key: Any) -> None:
    with pytest.raises(OptionError) as caught:
        everhash.connect("http://localhost:1", key)
    assert len(str(key)) < 2 or str(key) not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "safe"),
    [
        ("https://example.org", True),
        ("http://localhost:8765", True),
        ("http://127.0.0.1", True),
        ("http://127.8.9.1:80", True),
        ("http://[::1]:8765", True),
        ("http://example.org", False),
        ("http://10.0.0.1", False),
        ("http://localhost.example.org", False),
        ("http://127.0.0.1.example.org", False),
    ],
)
def test_a_key_goes_over_plain_http_to_this_machine_only(url: str, safe: bool) -> None:
    assert Address.of(url).keeps_secrets is safe
    if not safe:
        with pytest.raises(OptionError, match="can be read on the way"):
            everhash.connect(url, "eh_secret")


def test_a_key_goes_with_every_request_and_is_never_shown() -> None:
    with scripted() as service, remote(service, key="eh_secret") as col:
        assert all("Authorization: Bearer eh_secret" in head for head in service.heads)
        assert "eh_secret" not in repr(col)
        assert service.url in repr(col)


@pytest.mark.parametrize("recall", [0, 1.5, float("nan"), "all", True])
def test_a_recall_that_cannot_be_is_refused_before_anything_is_sent(recall: Any) -> None:
    with scripted() as service, remote(service) as col:
        sent = len(service.heads)
        for call, queries in ((col.search, np.zeros((1, 4))), (col.search_like, [1])):
            with pytest.raises(OptionError, match="recall must be"):
                call(queries, recall=recall)
        assert len(service.heads) == sent


def test_insecure_lets_a_key_go_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    with scripted() as service:
        monkeypatch.setattr(Address, "keeps_secrets", False)
        with pytest.raises(OptionError):
            remote(service, key="eh_secret")
        assert service.connections == 0
        remote(service, key="eh_secret", insecure=True).close()


def test_a_path_stands_before_every_route() -> None:
    routes: dict[str, Any] = {"a_b/limits": answer(LIMITS), "a_b/stats": answer({"entries": 3})}
    with scripted(**routes) as service, everhash.connect(f"{service.url}/a_b/") as col:
        assert len(col) == 3


def test_https_trusts_who_the_system_trusts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, file = secured(tmp_path)
    with scripted(context) as service:
        port = service.url.rpartition(":")[2]
        with pytest.raises(ServiceError, match="self-signed certificate"):
            everhash.connect(f"https://localhost:{port}", "eh_secret")
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        with pytest.raises(ServiceError, match="not valid for"):
            everhash.connect(f"https://127.0.0.1:{port}", "eh_secret")
        assert service.asked == []
        with everhash.connect(f"https://localhost:{port}", "eh_secret") as col:
            assert len(col) == 0
        assert "Bearer eh_secret" in service.heads[0]


# Connections


def test_one_connection_serves_calls_one_after_another() -> None:
    with scripted() as service, remote(service) as col:
        for _ in range(5):
            assert len(col) == 0
        assert service.connections == 1


def test_threads_do_not_wait_for_each_other() -> None:
    both = threading.Barrier(2, timeout=60)

    def meet() -> bytes:
        both.wait()
        return answer({"entries": 7})

    with scripted() as service, remote(service) as col:
        service.answers["/stats"] = meet
        found: list[int] = []
        threads = [threading.Thread(target=lambda: found.append(len(col))) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [7, 7]
        assert service.connections == 2


def test_a_connection_closed_while_idle_is_replaced() -> None:
    with scripted(remove=answer({"removed": 1})) as service, remote(service) as col:
        calls: list[Callable[[], int]] = [lambda: len(col), lambda: col.remove([1])]
        for call in calls:
            service.drop_connections()
            call()
        assert service.asked.count("/remove") == 1


def test_a_read_is_sent_again_if_the_connection_ends_in_its_face() -> None:
    with scripted() as service, remote(service) as col:
        said = iter([b"", answer({"entries": 2})])
        service.answers["/stats"] = lambda: next(said)
        assert len(col) == 2


def test_a_read_is_sent_again_only_once() -> None:
    with scripted() as service, remote(service) as col:
        before = len(service.asked)
        service.answers["/stats"] = b""
        with pytest.raises(ServiceError, match="closed before"):
            len(col)
        assert len(service.asked) == before + 2


def test_a_write_is_never_sent_twice() -> None:
    calls: dict[str, Callable[[everhash.RemoteCollection], Any]] = {
        "/learn": lambda col: col.learn(ROW, ["a"]),
        "/forget": lambda col: col.forget(ROW, ["a"]),
        "/add": lambda col: col.add(ROW),
        "/ingest": lambda col: col.ingest(ROW),
        "/label": lambda col: col.label([1], ["a"]),
        "/attach": lambda col: col.attach([1], payloads=[2]),
        "/remove": lambda col: col.remove([1]),
        "/refresh": lambda col: col.refresh(),
    }
    busy = answer({"error": {"code": "ServiceError", "message": "busy"}}, "503 Busy")
    for said in (b"", busy):
        with scripted() as service, remote(service) as col:
            for route, call in calls.items():
                service.answers[route] = said
                len(col)  # so that there is a connection to use again
                with pytest.raises(ServiceError) as caught:
                    call(col)
                assert said or "not known" in caught.value.hint
                assert [target.partition("?")[0] for target in service.asked].count(route) == 1


def test_a_write_does_not_trust_a_connection_that_was_idle_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("everhash.client.deadline.IDLE_SECONDS", 0.1)
    with scripted(remove=answer({"removed": 1})) as service, remote(service) as col:
        col.remove([1])
        assert service.connections == 1
        time.sleep(0.2)
        col.remove([1])
        assert service.connections == 2


def test_a_busy_service_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everhash.client.session.PAUSE", 0.01)
    busy = answer({"error": {"code": "ServiceError", "message": "starting"}}, "503 Busy")
    said = iter([busy, busy, answer({"entries": 4})])
    with scripted(stats=lambda: next(said)) as service, remote(service) as col:
        assert service.asked.count("/stats") == 3
        service.answers["/stats"] = answer({"entries": 5})
        assert len(col) == 5


def test_a_service_that_stays_busy_is_an_error_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everhash.client.session.PAUSE", 0.02)
    busy = answer({"error": {"code": "ServiceError", "message": "starting"}}, "503 Busy")
    with scripted(stats=busy) as service:
        with pytest.raises(ServiceError, match="starting"):
            remote(service, timeout=0.2)
        assert service.asked.count("/stats") > 2


def test_calls_after_close_are_refused() -> None:
    with scripted() as service:
        with remote(service) as col:
            pass
        asked = len(service.asked)
        calls: list[Callable[[], int]] = [lambda: len(col), lambda: col.remove([1])]
        for call in calls:
            with pytest.raises(ClosedError, match="is closed"):
                call()
        assert len(service.asked) == asked
        col.close()


# Services that are none


def test_nobody_there_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(ServiceError, match="cannot be reached") as caught:
        everhash.connect(f"http://127.0.0.1:{port}")
    assert isinstance(caught.value, ConnectionError)
    with pytest.raises(ServiceError, match="cannot be reached"):
        everhash.connect("http://no-such-host.invalid")


def test_no_answer_in_time_is_an_error() -> None:
    ended = threading.Event()

    def wait() -> bytes:
        ended.wait(5)
        return b""

    with scripted() as service:
        service.answers["/stats"] = wait
        with pytest.raises(ServiceError, match=r"no answer within 0\.2 s"):
            remote(service, timeout=0.2)
        ended.set()


def test_a_plain_http_service_asked_for_https_is_an_error() -> None:
    with scripted() as service, pytest.raises(ServiceError):
        everhash.connect(service.url.replace("http", "https"), timeout=0.3)


FOREIGN = {
    "a page": answer(b"<html>", kind="text/html"),
    "a page not found": answer(b"<html>", "404 Not Found", "text/html"),
    "no type": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
    "no JSON": answer(b"{entries: 1}"),
    "no object": answer([1, 2]),
    "NaN": answer(b'{"entries": NaN}'),
    "nested": answer(b"[" * 100_000),
    "digits": answer(b'{"entries": ' + b"9" * 5000 + b"}"),
    "nothing": answer(b""),
    "another object": answer({"hello": "world"}),
    "another number": answer({"entries": "many"}),
    "no HTTP": b"220 mail.example.org ESMTP\r\n",
    "half an answer": answer({"entries": 1})[:-3],
    "half a head": b"HTTP/1.1 200 OK\r\nContent-Ty",
    "a redirect": b"HTTP/1.1 302 Found\r\nLocation: http://elsewhere/\r\nContent-Length: 0\r\n\r\n",
    "no reason": answer({}, "500 Oops"),
    "no words": answer({"error": {"code": "InputError", "message": 7}}, "422 No"),
    "an error of its own": answer({"error": {"code": "InternalError", "message": "?"}}, "500 No"),
    "too many headers": b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 200 + b"\r\n",
    "a long header": b"HTTP/1.1 200 OK\r\na: " + b"b" * 70_000 + b"\r\n\r\n",
    "a bad chunk": b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
}


@pytest.mark.parametrize("said", FOREIGN.values(), ids=FOREIGN)
def test_a_service_that_is_no_everhash_is_an_error(said: bytes) -> None:
    with scripted() as service, remote(service) as col:
        service.answers["/stats"] = Last(said)
        with pytest.raises(ServiceError) as caught:
            len(col)
        assert caught.value.hint or "500" in said.decode()
        service.answers["/stats"] = answer({"entries": 1})
        assert len(col) == 1


@pytest.mark.parametrize("said", [{}, {"rows": 0, "queries": 1, "body": 1}, {"rows": "x"}, []])
def test_limits_that_are_none_are_an_error(said: Any) -> None:
    with scripted(limits=answer(said)) as service, pytest.raises(ServiceError):
        remote(service)


def test_redirects_are_not_followed() -> None:
    with scripted() as there, scripted() as service:
        location = (
            f"HTTP/1.1 307 There\r\nLocation: {there.url}/limits\r\nContent-Length: 0\r\n\r\n"
        )
        service.answers["/limits"] = location.encode()
        with pytest.raises(ServiceError, match="sends elsewhere"):
            remote(service, key="eh_secret")
        assert there.connections == 0


def test_an_answer_that_is_too_large_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everhash.client.session.MAX_ANSWER", 1000)
    endless = (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    for said in (answer(b" " * 1001), endless + (b"3e9\r\n" + b" " * 1001 + b"\r\n") * 9):
        with scripted() as service, remote(service) as col:
            service.answers["/stats"] = said
            with pytest.raises(ServiceError, match="more than"):
                len(col)
            service.answers["/stats"] = answer({"entries": 1})
            assert len(col) == 1


QUERY: dict[str, Any] = {"by": "meaning", "novelty": 1.0, "found": []}
MATCH: dict[str, Any] = {"id": 1, "score": 1, "likeness": None, "label": 1, "guess": None}
CHANGED: list[tuple[str, Any]] = [
    ("matches", []),
    ("matches", None),
    ("matches", [QUERY] * 2),
    ("matches", [{**QUERY, "novelty": "x"}]),
    ("matches", [{**QUERY, "by": "magic"}]),
    ("matches", [{**QUERY, "by": ["meaning"]}]),
    ("matches", [{"novelty": 1.0, "found": []}]),
    ("matches", [{**QUERY, "found": [{**MATCH, "id": 1.5}]}]),
    ("matches", [{**QUERY, "found": [{**MATCH, "label": {"a": 1}}]}]),
    ("matches", [{**QUERY, "found": [{**MATCH, "guess": [1]}]}]),
    ("matches", [{**QUERY, "found": [{**MATCH, "score": "high"}]}]),
    ("matches", [{**QUERY, "found": [{**MATCH, "likeness": {}}]}]),
    *[
        ("matches", [{**QUERY, "found": [{k: v for k, v in MATCH.items() if k != name}]}])
        for name in ("id", "score", "likeness", "label", "guess")
    ],
    ("matches", [{**QUERY, "found": [MATCH] * 2}]),
    ("columns", None),
    ("columns", -1),
    ("columns", 11),
    ("columns", 1.0),
    ("columns", True),
    ("columns", 2**31 - 1),
    ("columns", 2**40),
]


@pytest.mark.parametrize(("name", "value"), CHANGED)
def test_matches_of_another_form_are_an_error(name: str, value: Any) -> None:
    said = answer({**FOUND, "columns": 1, name: value})
    with scripted(search=said) as service, remote(service) as col:
        with pytest.raises(ServiceError, match="unknown form"):
            col.search(ROW)
        assert len(col) == 0


def test_pages_that_go_round_are_an_error() -> None:
    said = answer({"total": 5, "next": 0, "entries": []})
    with scripted(entries=said) as service, remote(service) as col:
        entries = col.entries()
        with pytest.raises(ServiceError, match="unknown form"):
            list(entries)


# Limits


def test_more_rows_than_a_request_may_have_are_sent_in_several() -> None:
    """Ten rows a request, and about 2,048 bytes."""
    parts: list[list[int]] = []

    def said() -> bytes:
        return answer({"ids": parts.pop(0)})

    routes: dict[str, Any] = {"add": said, "learn": answer({}), "remove": answer({"removed": 1})}
    with scripted(**routes) as service, remote(service) as col:
        parts += [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10]]  # a row and its id take 412 bytes
        assert col.add(np.zeros((11, 3), np.float32)) == list(range(11))
        parts += [[0], [1], [2]]  # 1,600 bytes each
        assert col.add(np.ones((3, 300), np.float32)) == [0, 1, 2]
        col.learn(np.zeros((9, 3), np.float32))
        assert service.asked.count("/learn") == 3
        assert col.remove(list(range(11))) == 3
        assert service.asked.count("/remove") == 3


@pytest.mark.parametrize("hint", ["make room", "make room; nothing was added"])
def test_a_write_that_fails_in_the_middle_says_what_was_applied(hint: str) -> None:
    full = {"code": "DiskFullError", "message": "the disk is full", "hint": hint}
    said = iter([answer({"ids": [0, 1, 2, 3]}), answer({"error": full}, "507 Full")])
    with (
        scripted(add=lambda: next(said)) as service,
        remote(service) as col,
        pytest.raises(errors.DiskFullError) as caught,
    ):
        col.add(np.zeros((11, 3), np.float32))
    assert caught.value.hint == "make room; the first 4 were applied before"


def test_what_is_expected_of_entries_is_never_checked_in_parts() -> None:
    with scripted() as service, remote(service) as col:
        for change in (
            lambda: col.label(range(11), "a", expect="b"),
            lambda: col.unlabel(range(11), expect=set()),
        ):
            with pytest.raises(errors.TooLargeError, match=r"11 entries with expect=, which"):
                change()
        assert not {"/label", "/unlabel"} & set(service.asked)


def test_many_queries_are_split() -> None:
    def said() -> bytes:
        return answer({"matches": FOUND["matches"] * sizes.pop(0), "columns": 0})

    sizes = [4, 4, 2]
    with scripted(search=said) as service, remote(service) as col:
        found = col.search(np.zeros((10, 3), np.float32), labels=["a"])
        assert len(found) == 10
        assert service.asked.count("/search") == 3


# Errors


@pytest.mark.parametrize("code", CLASSES)
def test_errors_come_back_as_what_they_were(code: str) -> None:
    values = {"expected": 3, "got": 4, "row": 5, "id": "x"}
    told = {"code": code, "message": "what happened", "hint": "what to do", "values": values}
    with scripted(get=answer({"error": told}, "418 No")) as service, remote(service) as col:
        with pytest.raises(EverhashError) as caught:
            col.get([1])
        assert len(col) == 0
    assert type(caught.value) is getattr(errors, code)
    assert (caught.value.message, caught.value.hint) == ("what happened", "what to do")
    assert str(caught.value) == "what happened (what to do)"


def test_the_table_of_errors_has_all_of_them() -> None:
    classes = [value for value in vars(errors).values() if isinstance(value, type)]
    known = {c.__name__ for c in classes if issubclass(c, EverhashError)} - {"EverhashError"}
    assert set(CLASSES) == known


@pytest.mark.parametrize(
    "error",
    [
        errors.DimensionError(expected=3, got=4),
        errors.NotFiniteError(row=5),
        errors.DuplicateIdError("x"),
        errors.UnknownIdError(7),
        errors.StaleCodesError(expected=1, got=2),
        errors.NotFittedError(),
        errors.StoreError("m", hint="h"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_carry_what_they_carried(error: EverhashError) -> None:
    error = error.told("python")  # as a service tells it to its client
    values = {name: getattr(error, name) for name in error.carries}
    told = {"code": type(error).__name__, "message": error.message, "hint": error.hint}
    again = error_from({"error": {**told, "values": values}}, "http://there", 400)
    assert type(again) is type(error)
    assert vars(again) == vars(error)
    assert (str(again), again.args) == (str(error), error.args)


@pytest.mark.parametrize(
    "code", ["SystemExit", "__import__", "EverhashError", "os.system", 7, None]
)
def test_no_name_in_an_answer_is_looked_up(code: Any) -> None:
    error = error_from({"error": {"code": code, "message": "m"}}, "http://there", 400)
    assert type(error) is ServiceError


# Jobs and files


def test_refresh_waits_for_its_job_and_raises_what_it_raised() -> None:
    failed = {"state": "failed", "error": {"code": "StoreError", "message": "full", "hint": "h"}}
    states = iter([*({"state": "running", "progress": share} for share in (0, 0.4)), failed])
    with scripted(refresh=answer({"job": "7"}, "202 Begun")) as service, remote(service) as col:
        service.answers["/jobs/7"] = lambda: answer(next(states))
        steps = col.refresh_steps()
        assert [next(steps), next(steps)] == [0, 0.4]
        with pytest.raises(errors.StoreError, match="full"):
            next(steps)


@pytest.mark.parametrize("job", ["../stats", "a b", "", "7?x=1", None])
def test_a_job_cannot_lead_elsewhere(job: Any) -> None:
    with scripted(refresh=answer({"job": job}, "202 Begun")) as service, remote(service) as col:
        asked = len(service.asked)
        with pytest.raises(ServiceError):
            col.refresh()
        assert len(service.asked) <= asked + 2


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.sqlite3\r\nContent-Length: 100\r\n\r\n"


@pytest.mark.parametrize(
    "body", [b"SQLite format 3\0" + b"x" * 40, b"<html>" + b"x" * 94, b"x" * 3]
)
def test_a_snapshot_that_is_cut_or_none_leaves_nothing(body: bytes, tmp_path: Path) -> None:
    with scripted(snapshot=Last(HEAD + body)) as service, remote(service) as col:
        with pytest.raises(ServiceError):
            col.snapshot(tmp_path / "copy.ever")
        assert len(col) == 0
    assert list(tmp_path.iterdir()) == []


def test_a_snapshot_replaces_nothing_and_needs_a_folder(tmp_path: Path) -> None:
    (tmp_path / "there.ever").write_text("mine")
    with scripted() as service, remote(service) as col:
        asked = len(service.asked)
        for path in (tmp_path / "there.ever", tmp_path / "no folder" / "copy.ever"):
            with pytest.raises(errors.EverhashError):
                col.snapshot(path)
        assert len(service.asked) == asked
    assert (tmp_path / "there.ever").read_text() == "mine"
