"""Pages of other sites that may ask: origins by option, as browsers check them (CORS)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from starlette.middleware.cors import CORSMiddleware

from everhash.errors import OptionError
from everhash.wire.media import PLACE

ANY = "*"
ORIGIN = re.compile(r"https?://([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")
ASKED = ("Accept", "Authorization", "Content-Type", "If-None-Match", "X-Api-Key", PLACE)
"""Headers that a page may send."""
TOLD = ("Content-Disposition", "ETag", "Retry-After")
"""Headers that a page may read, beside those that it always may."""


def check_origins(origins: Iterable[str], *, has_keys: bool) -> frozenset[str]:
    """Return origins as browsers write them; raise if one cannot be an origin.

    >>> sorted(check_origins(["https://Shop.example"], has_keys=False))
    ['https://shop.example']
    """
    if isinstance(origins, str):
        raise OptionError(f"cors must be a list of origins, got {origins!r:.80}", hint=_hint())
    found = frozenset(str(origin).lower() for origin in origins)
    for origin in sorted(found - {ANY}):
        if not ORIGIN.fullmatch(origin):
            raise OptionError(f"{origin!r:.80} is no origin", hint=_hint())
    if ANY in found and not has_keys:
        raise OptionError(
            "every page that a browser shows could use this collection",
            hint="name the origins, or serve with keys",
        )
    return found


def _hint() -> str:
    return "an origin is scheme, host and port of a page, such as https://shop.example"


def with_cors(app: Any, origins: frozenset[str]) -> Any:
    """Return an application that answers what browsers ask for pages of these origins.

    Keys travel in a header, so no page needs cookies, and none are allowed.
    """
    if not origins:
        return app
    return CORSMiddleware(
        app,
        allow_origins=sorted(origins),
        allow_methods=("GET", "POST"),
        allow_headers=ASKED,
        expose_headers=TOLD,
    )
