"""An error of each status, as the service answers it: what refuses a request is called for it."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from everhash.errors import DuplicateIdError, EverhashError
from everhash.serve import limits
from everhash.serve.access import check_role, find_key, no_route, wrong_method
from everhash.serve.body_limit import check_announced
from everhash.serve.errors import INTERNAL, RefusedError, busy, describe, too_slow
from everhash.serve.heads import read_head
from everhash.serve.keys import ApiKey, Keys
from everhash.store.sqlite_errors import unwritable
from everhash.stream import as_rows

HOST, KEY = (b"host", b"localhost"), ApiKey("page", "read", 64 * "0")


def _head(*headers: tuple[bytes, bytes]) -> dict[str, Any]:
    return {"headers": headers, "query_string": b"", "http_version": "1.1"}


def _problem(refuse: Callable[[], Any]) -> dict[str, Any]:
    """Return what a request is answered that a call refuses."""
    try:
        error: Exception = refuse()
    except (RefusedError, EverhashError) as raised:
        error = raised
    return {"error": describe(error)}


PROBLEMS: dict[int, dict[str, Any]] = {
    400: _problem(lambda: read_head(_head(HOST, HOST))),
    401: _problem(lambda: find_key({}, Keys([KEY]))),
    403: _problem(lambda: check_role(KEY, "write")),
    404: _problem(lambda: no_route("/serach")),
    405: _problem(lambda: wrong_method("GET", "/search", {"Allow": "POST"})),
    408: _problem(too_slow),
    409: _problem(lambda: DuplicateIdError("sku-1")),
    413: _problem(lambda: check_announced({b"content-length": b"%d" % (limits.BODY + 1)})),
    415: _problem(lambda: check_announced({b"content-encoding": b"gzip"})),
    422: _problem(lambda: as_rows(np.zeros((1, 3)), 4, "this index")),
    431: _problem(lambda: read_head(_head(*[HOST] * (limits.HEADERS + 1)))),
    500: {"error": INTERNAL},
    503: _problem(lambda: busy(f"{limits.REQUESTS} requests are being worked on")),
    507: _problem(lambda: unwritable(Path("shop.ever"), OSError(errno.ENOSPC, ""))),
}
"""By status. What /search answers to a row that is too short is that of 422."""
