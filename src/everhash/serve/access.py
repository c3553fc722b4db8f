"""Who may ask: keys and their roles, and what protects a local service from web pages.

A browser shows any page, and a page may send requests to this machine. Without keys, the Host
header has to name this machine (a foreign name that resolves to it does not). With and without
keys, a request comes from a page of this service, from one of an origin that was allowed, or from
no page.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

from everhash.errors import InputError, ServiceError, UnknownNameError
from everhash.serve.access_log import KEY
from everhash.serve.cors import ANY
from everhash.serve.errors import RefusedError
from everhash.serve.heads import Headers
from everhash.serve.keys import ApiKey, Keys
from everhash.wire.routes import DESCRIBED, Role, Route, route_of

LOCAL = {b"localhost", b"127.0.0.1", b"[::1]"}
HOST = re.compile(rb"(?:\[(?P<six>[0-9a-f:.]+)\]|(?P<name>[0-9a-z.]+))(?::[0-9]*)?")
KEY_NEEDED = "{say key}; whoever runs the service makes keys with `everhash key`"


class Access(NamedTuple):
    """Who may ask."""

    keys: Keys | None
    """None lets in whoever asks from this machine."""
    origins: frozenset[str] = frozenset()
    """Other sites whose pages may ask; see `cors`."""

    def check(self, scope: Any, headers: Headers) -> Route:
        """Return the route of a request, or refuse who may not ask for it; note whose key it has.

        A path that is not in the table goes no further: the framework's own patterns would match
        some paths that differ from a route's, and need no key.
        """
        path: str = scope["path"]
        route = route_of(path)
        if self.keys is None:
            check_host(headers)
        if route is None or route.path != "/":  # other sites may link to the page
            check_origin(headers, self.origins)
        if route is None:
            raise no_route(path)
        if route.role is not None and self.keys is not None:
            key = find_key(headers, self.keys)
            scope[KEY] = key.name
            check_role(key, route.role)
        return route


def no_route(path: str) -> RefusedError:
    """Return the refusal of a path that is no route."""
    near = get_close_matches(path[:80], [route.path for route in DESCRIBED], n=1)
    hint = f"did you mean {near[0]}? /docs lists all" if near else "/docs lists all"
    return RefusedError(404, UnknownNameError(f"no route {path!r:.80}", hint=hint))


def wrong_method(method: str, path: str, headers: Mapping[str, str]) -> RefusedError:
    """Return the refusal of a method that a path does not have."""
    hint = f"allowed: {headers.get('Allow', 'another one')}"
    problem = f"{method:.20} is not a method of {path!r:.80}"
    return RefusedError(405, InputError(problem, hint=hint), headers)


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


def check_origin(headers: Headers, allowed: frozenset[str] = frozenset()) -> None:
    """Refuse a request of another site's page, unless its origin is allowed."""
    origin = headers.get(b"origin")
    if origin is None and headers.get(b"sec-fetch-site") != b"cross-site":
        return
    if origin is not None and (ANY in allowed or origin.decode("latin-1") in allowed):
        return
    own = (origin or b"").partition(b"://")[2].lower()
    if not own or own != headers.get(b"host", b"").lower():
        problem = "a page of another site may not do this"
        hint = "serve with --cors ORIGIN to allow pages of that origin"
        raise RefusedError(403, ServiceError(problem, hint=hint))


def find_key(headers: Headers, keys: Keys) -> ApiKey:
    """Return the key that was sent; refuse whoever has none."""
    secret = _secret(headers)
    key = keys.find(secret) if secret else None
    if key is None:
        problem = "the key is unknown" if secret else "a key is needed"
        raise RefusedError(
            401, ServiceError(problem, hint=KEY_NEEDED), {"WWW-Authenticate": "Bearer"}
        )
    return key


def check_role(key: ApiKey, role: Role) -> None:
    """Refuse whoever has a key for less."""
    if not key.allows(role):
        raise RefusedError(
            403, ServiceError(f"this key may only {key.role}", hint=f"use a key that may {role}")
        )


def _secret(headers: Headers) -> bytes:
    authorization = headers.get(b"authorization", b"")
    if authorization[:7].lower() == b"bearer ":
        return authorization[7:].strip()
    return headers.get(b"x-api-key", b"")
