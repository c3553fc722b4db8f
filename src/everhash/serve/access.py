"""Who may ask: keys and their roles, and what protects a local service from web pages.

A browser shows any page, and a page may send requests to this machine. Without keys, the Host
header has to name this machine (a foreign name that resolves to it does not), and a request has to
come from a page of this service, or from no page at all.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping

from everhash.errors import ServiceError, UnknownNameError
from everhash.serve.errors import RefusedError
from everhash.serve.keys import Keys
from everhash.wire.routes import Role, Route

Headers = Mapping[bytes, bytes]
LOCAL = {b"localhost", b"127.0.0.1", b"[::1]"}
HOST = re.compile(rb"(?:\[(?P<six>[0-9a-f:.]+)\]|(?P<name>[0-9a-z.]+))(?::[0-9]*)?")
SEND_KEY = "send a key as `Authorization: Bearer KEY`; `everhash key` makes one"


def check_access(headers: Headers, path: str, route: Route | None, keys: Keys | None) -> Route:
    """Return the route, or refuse whoever may not ask for it.

    A path that is not in the table goes no further: the framework's own patterns would match some
    paths that differ from a route's, and need no key.
    """
    if keys is None:
        check_host(headers)
    if route is None or route.path != "/":  # other sites may link to the page
        check_origin(headers)
    if route is None:
        raise no_route(path)
    if route.role is not None and keys is not None:
        check_key(headers, route.role, keys)
    return route


def no_route(path: str) -> RefusedError:
    """Return the refusal of a path that is no route."""
    return RefusedError(404, UnknownNameError(f"no route {path!r:.80}", hint="see /docs"))


def check_host(headers: Headers) -> None:
    """Refuse a request that was meant for another host."""
    host = headers.get(b"host", b"").lower()
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
    """Refuse a request of another site's page."""
    origin = headers.get(b"origin")
    if origin is None and headers.get(b"sec-fetch-site") != b"cross-site":
        return
    own = (origin or b"").partition(b"://")[2].lower()
    if not own or own != headers.get(b"host", b"").lower():
        raise RefusedError(
            403,
            ServiceError("a page of another site may not do this", hint="open the service's own"),
        )


def check_key(headers: Headers, role: Role, keys: Keys) -> None:
    """Refuse whoever has no key, or one for less."""
    secret = _secret(headers)
    key = keys.find(secret) if secret else None
    if key is None:
        problem = "the key is unknown" if secret else "a key is needed"
        raise RefusedError(
            401, ServiceError(problem, hint=SEND_KEY), {"WWW-Authenticate": "Bearer"}
        )
    if not key.allows(role):
        raise RefusedError(
            403, ServiceError(f"this key may only {key.role}", hint=f"use a key that may {role}")
        )


def _secret(headers: Headers) -> bytes:
    authorization = headers.get(b"authorization", b"")
    if authorization[:7].lower() == b"bearer ":
        return authorization[7:].strip()
    return headers.get(b"x-api-key", b"")
