"""Where a service is, and whether a key may be sent there."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from everhash.errors import OptionError

PORTS = {"http": 80, "https": 443}
MAX_TIMEOUT = 86_400.0
"""Seconds."""
EXAMPLE = "a service's address looks like http://localhost:8765"


@dataclass(frozen=True)
class Address:
    """Scheme, host, port, and the path that stands before every route.

    >>> str(Address.of("http://localhost:8765/"))
    'http://localhost:8765'
    """

    scheme: str
    host: str
    port: int
    prefix: str

    @classmethod
    def of(cls, url: Any) -> Address:
        """Return the address that a URL names; raise if it cannot be a service's."""
        if not isinstance(url, str) or not re.fullmatch(r"[!-~]+", url):
            raise OptionError(f"{_shown(url)} is no URL", hint=EXAMPLE)
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:
            raise OptionError(f"{_shown(url)} is no URL", hint=EXAMPLE) from None
        if parts.scheme not in PORTS or not host:
            raise OptionError(f"{_shown(url)} is no http or https URL", hint=EXAMPLE)
        if "@" in parts.netloc or parts.query or parts.fragment:
            raise OptionError(
                "a URL with a user, a query or a fragment",
                hint="a key has another place: {say key}",
            )
        port = PORTS[parts.scheme] if port is None else port
        return cls(parts.scheme, host, port, parts.path.rstrip("/"))

    @property
    def keeps_secrets(self) -> bool:
        """Whether what is sent is encrypted, or stays on this machine."""
        if self.scheme == "https" or self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.prefix}"


def check_key(key: Any, address: Address, *, insecure: bool) -> str | None:
    """Return a key that may be sent to a service; no error message contains it."""
    if key is None:
        return None
    if not isinstance(key, str) or not re.fullmatch(r"[!-~]+", key):
        raise OptionError(
            "a key is a string of letters, digits and signs",
            hint="pass it as `everhash key` printed it",
        )
    if not (address.keeps_secrets or insecure):
        raise OptionError(
            f"a key sent to {address} can be read on the way",
            hint="{say insecure}",
        )
    return key


def check_timeout(timeout: Any) -> float:
    """Return how many seconds to wait."""
    number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
    if not number or not 0 < timeout <= MAX_TIMEOUT:
        raise OptionError(
            f"timeout must be a number of seconds above 0, got {timeout!r:.40}",
            hint="60 is what a service allows itself",
        )
    return float(timeout)


def _shown(url: Any) -> str:
    """Return a URL for a message, without a password that may be in it."""
    return f"{re.sub(r'//[^/]*@', '//', url)!r:.80}" if isinstance(url, str) else f"{url!r:.80}"
