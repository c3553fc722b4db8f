"""Who may ask: roles of routes, keys, and what protects a local service from web pages.

A browser shows any page, and a page may send requests to this machine. Without keys, the Host
header has to name this machine (a name that was made to point here does not), and whatever is asked
has to come from a page of this service, or from no page at all.

A path that is none of those in `ROLES` goes no further than here: what the framework would take for
one of its routes is not to be found out by others.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Any

from everhash.errors import ServiceError, UnknownNameError
from everhash.serve.errors import RefusedError
from everhash.serve.keys import Keys

App = Any
"""An ASGI application: called with scope, receive and send."""
Headers = list[tuple[bytes, bytes]]

ROLES: dict[str, str | None] = {
    "/": None,
    "/live": None,
    "/ready": None,
    "/limits": None,
    "/openapi.json": None,
    "/static": None,
    "/metrics": "read",
    "/stats": "read",
    "/labels": "read",
    "/entries": "read",
    "/get": "read",
    "/has": "read",
    "/thumbnail": "read",
    "/search": "read",
    "/radius": "read",
    "/jobs/{job}": "read",
    "/events": "read",
    "/learn": "write",
    "/forget": "write",
    "/add": "write",
    "/ingest": "write",
    "/attach": "write",
    "/label": "write",
    "/remove": "write",
    "/refresh": "write",
    "/snapshot": "admin",
}
"""What a key has to allow for each route; None where no key is needed."""
LOCAL = {b"localhost", b"127.0.0.1", b"[::1]"}
HOST = re.compile(rb"(?:\[(?P<six>[0-9a-f:.]+)\]|(?P<name>[0-9a-z.]+))(?::[0-9]*)?")
WITH_KEY = "send a key as `Authorization: Bearer KEY`; `everhash key` makes one"


def route_of(path: str) -> str:
    """Return the route a path belongs to; "other" where there is none.

    >>> route_of("/search"), route_of("/jobs/7"), route_of("/nope")
    ('/search', '/jobs/{job}', 'other')
    """
    if path in ROLES:
        return path
    if path.startswith("/jobs/"):
        return "/jobs/{job}"
    return "/static" if path.startswith("/static/") else "other"


class Access:
    """Middleware that lets only those in who may ask.

    Args:
        app: what they ask.
        keys: whoever has none of them may ask for little; None lets everybody on this machine in.
    """

    def __init__(self, app: App, keys: Keys | None) -> None:
        self._app, self._keys = app, keys

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "http":
            headers: Headers = scope["headers"]
            if self._keys is None:
                check_host(headers)
            route = route_of(scope["path"])
            if route != "/":  # which other sites may link to
                check_origin(headers)
            if route not in ROLES:
                raise no_route(scope["path"])
            role = ROLES[route]
            if role is not None and self._keys is not None:
                check_key(headers, role, self._keys)
        await self._app(scope, receive, send)


def no_route(path: str) -> RefusedError:
    """Return the refusal of a path that leads nowhere."""
    error = UnknownNameError(f"no route {path!r:.80}", hint="see /openapi.json")
    return RefusedError(404, error)


def header(headers: Headers, name: bytes) -> bytes:
    """Return the first header of a name, empty if there is none."""
    for key, value in headers:
        if key == name:
            return value
    return b""


def check_host(headers: Headers) -> None:
    """Refuse a request that was meant for another host."""
    host = header(headers, b"host").lower()
    found = HOST.fullmatch(host)
    if host not in LOCAL and not (found and _is_loopback(found)):
        raise RefusedError(
            403,
            ServiceError(
                "the Host header names another machine",
                hint="ask localhost, or serve with --keys behind a proxy",
            ),
        )


def _is_loopback(host: re.Match[bytes]) -> bool:
    name = (host["six"] or host["name"]).decode()
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def check_origin(headers: Headers) -> None:
    """Refuse what a page of another site asks for."""
    origin, site = header(headers, b"origin"), header(headers, b"sec-fetch-site")
    own = origin.partition(b"://")[2].lower() == header(headers, b"host").lower()
    if (origin and not own) or site == b"cross-site":
        raise RefusedError(
            403,
            ServiceError("a page of another site may not do this", hint="open the service's own"),
        )


def check_key(headers: Headers, role: str, keys: Keys) -> None:
    """Refuse whoever has no key, or one for less."""
    secret = _secret(headers)
    key = keys.find(secret) if secret else None
    if key is None:
        problem = "nobody has this key" if secret else "no key"
        raise RefusedError(
            401, ServiceError(problem, hint=WITH_KEY), {"WWW-Authenticate": "Bearer"}
        )
    if not key.allows(role):
        raise RefusedError(
            403,
            ServiceError(
                f"this key may {key.role}, which is not enough", hint=f"a key that may {role} is"
            ),
        )


def _secret(headers: Headers) -> bytes:
    told = header(headers, b"authorization")
    if told[:7].lower() == b"bearer ":
        return told[7:].strip()
    return header(headers, b"x-api-key")
