"""What the head of a request may have: few headers, one Host, one length.

Two programs that read one head in two ways disagree about who is asked, or where a request ends.
So whatever could be read in two ways is refused. The parser refuses two lengths, and a length
beside chunks, before this is reached.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from everhash.errors import InputError, TooLargeError
from everhash.serve import limits
from everhash.serve.errors import CLOSE, RefusedError

Headers = Mapping[bytes, bytes]
SINGLE = {
    *(b"host", b"content-length", b"content-type", b"content-encoding", b"transfer-encoding"),
    *(b"authorization", b"x-api-key", b"origin", b"sec-fetch-site", b"everhash-place"),
}
"""Headers that stand once: the service decides by their value."""


def read_head(scope: Any) -> Headers:
    """Return the headers of a request by name, or refuse it."""
    pairs: list[tuple[bytes, bytes]] = scope["headers"]
    if len(pairs) > limits.HEADERS:
        raise _too_large(f"{len(pairs)} headers, at most {limits.HEADERS}")
    size = len(scope.get("raw_path") or b"") + len(scope["query_string"])
    size += sum(len(name) + len(value) for name, value in pairs)
    if size > limits.HEAD:
        raise _too_large(f"a head of more than {limits.HEAD} bytes")
    headers = dict(pairs)
    if len(headers) < len(pairs):
        _check_repeated([name for name, _ in pairs])
    if b"host" not in headers and scope["http_version"] == "1.1":
        raise _ambiguous("the request has no Host header")
    if b"transfer-encoding" in headers and b"content-length" in headers:
        raise _ambiguous("the request has Transfer-Encoding and Content-Length")
    return headers


def _check_repeated(names: list[bytes]) -> None:
    for name in names:
        if name in SINGLE and names.count(name) > 1:
            raise _ambiguous(f"the request has the header {name.decode('latin-1')} more than once")


def _ambiguous(problem: str) -> RefusedError:
    return RefusedError(400, InputError(problem, hint="send it once, as HTTP/1.1 wants it"), CLOSE)


def _too_large(problem: str) -> RefusedError:
    error = TooLargeError(problem, hint="send fewer or shorter headers; rows go into the body")
    return RefusedError(431, error, CLOSE)
