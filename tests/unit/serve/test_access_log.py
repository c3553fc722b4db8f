"""One line for each request, if it was asked for; never a secret in it."""

from __future__ import annotations

import logging
import re
from typing import Any

import pytest

from everhash.serve.keys import Keys, make_key
from tests.unit.serve.serving import DIM, Served, filled, serving, until

SECRET, KEY = make_key("read", "page")
LINE = re.compile(r"127\.0\.0\.1 (\S+) ([A-Z]+) (.+) (\d+|gone) (\d+)B (\d+\.\d)ms")


def lines(caplog: pytest.LogCaptureFixture) -> list[Any]:
    texts = [record.getMessage() for record in caplog.records if record.name == "everhash.access"]
    found = [LINE.fullmatch(text) for text in texts]
    assert all(found), texts
    return [line.groups()[:4] for line in found if line]


def test_each_request_is_a_line(caplog: pytest.LogCaptureFixture) -> None:
    keys = Keys([KEY])
    with filled() as collection, serving(collection, keys=keys, access_log=True) as served:
        sent = {"X-Api-Key": SECRET}
        answer = served.post("/search", {"rows": [[0.5] * DIM]}, headers=sent)
        served.get("/entries", params={"text": SECRET}, headers=sent)
        served.post("/add", {"rows": [[0.5] * DIM]}, headers=sent)  # may only read
        served.get("/stats", headers={"X-Api-Key": "eh_wrong"})
        served.get("/no%0Asuch%1broute")
        until(lambda: len(caplog.records) >= 5)
        assert lines(caplog) == [
            ("page", "POST", "/search", "200"),
            ("page", "GET", "/entries", "200"),
            ("page", "POST", "/add", "403"),
            ("-", "GET", "/stats", "401"),
            ("-", "GET", "/no?such?route", "404"),
        ]
        assert f" {len(answer.content)}B " in caplog.records[0].getMessage()
    assert SECRET not in caplog.text
    assert "eh_wrong" not in caplog.text


def test_no_line_is_written_unasked(reading: Served, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        reading.get("/stats")
    assert lines(caplog) == []


def test_a_client_that_left_is_a_line_too(caplog: pytest.LogCaptureFixture) -> None:
    with filled() as collection, serving(collection, access_log=True) as served:
        with served.connect() as bare:
            head = "POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx"
            bare.sendall(head.encode())
        until(lambda: caplog.records)
        assert lines(caplog) == [("-", "POST", "/search", "gone")]
