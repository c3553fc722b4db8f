"""Keys: who may read, write or administer. A file has their SHA-256 only, nothing logs them.

    [[key]]
    name = "page"
    role = "read"
    sha256 = "9f86d0…"

The same as JSON is {"key": [{"name": …, "role": …, "sha256": …}]}. A key is 32 random bytes, so
a plain hash is enough: there is nothing to guess.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from everhash.errors import DataMissingError, InputError, OptionError

ROLES = ("read", "write", "admin")
"""Each may do what those before it may."""
PREFIX = "eh_"
"""So that scanners for leaked secrets know one when they see it."""
LARGEST = 1 << 20
"""bytes of a file of keys"""
FORM = "[[key]] with name, role and sha256, as `everhash key` writes them"


@dataclass(frozen=True)
class ApiKey:
    """Somebody's right to ask."""

    name: str
    role: str
    sha256: str

    def allows(self, role: str) -> bool:
        """Whether this key is enough for what needs a role."""
        return ROLES.index(self.role) >= ROLES.index(role)


class Keys:
    """All keys of a service."""

    def __init__(self, keys: list[ApiKey]) -> None:
        if not keys:
            raise OptionError("no key at all", hint="`everhash key admin` makes one")
        for part in ("name", "sha256"):
            values = [getattr(key, part) for key in keys]
            if len(set(values)) < len(values):
                raise OptionError(f"two keys have the same {part}", hint="remove one of them")
        self._keys = [(bytes.fromhex(key.sha256), key) for key in keys]

    def find(self, secret: bytes) -> ApiKey | None:
        """Return whose key this is; how long that takes does not tell how much of it is right."""
        digest, found = hashlib.sha256(secret).digest(), None
        for known, key in self._keys:
            if hmac.compare_digest(known, digest):
                found = key
        return found

    def __len__(self) -> int:
        return len(self._keys)


def make_key(role: str, name: str | None = None) -> tuple[str, ApiKey]:
    """Draw a key; return the secret, which nobody can tell later, and what a file keeps of it."""
    if role not in ROLES:
        raise OptionError(f"role {role!r:.40} is unknown", hint=f"choose from {', '.join(ROLES)}")
    secret = PREFIX + secrets.token_urlsafe(32)
    digest = hashlib.sha256(secret.encode()).hexdigest()
    return secret, _checked(
        {"name": name or f"{role}-{digest[:6]}", "role": role, "sha256": digest}
    )


def as_toml(key: ApiKey) -> str:
    """Return a key as it stands in a file."""
    name = json.dumps(key.name, ensure_ascii=False)  # which TOML reads too
    return f'[[key]]\nname = {name}\nrole = "{key.role}"\nsha256 = "{key.sha256}"\n'


def add_key(path: Path, key: ApiKey) -> None:
    """Append a key to a file of keys, or begin one that only its owner reads."""
    known = [known for _, known in read_keys(path)._keys] if path.exists() else []
    Keys([*known, key])
    if known and path.read_bytes().lstrip()[:1] == b"{":
        raise OptionError(f"{path} is JSON", hint="add the key by hand, or keep keys as TOML")
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(("\n" if known else "") + as_toml(key))


def read_keys(path: Path) -> Keys:
    """Read a file of keys, TOML or JSON."""
    if not path.is_file():
        raise DataMissingError(f"no file of keys at {path}", hint="`everhash key` makes one")
    with path.open("rb") as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise InputError(f"{path} is too large for a file of keys", hint=FORM)
    try:
        text = content.decode()
        told = json.loads(text) if text.lstrip()[:1] == "{" else tomllib.loads(text)
        return Keys([_checked(item) for item in told["key"]])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        if isinstance(error, OptionError):
            raise OptionError(f"{path}: {error.message}", hint=error.hint) from None
        # neither the text nor what is wrong with it: somebody may have put a key there
        raise InputError(f"{path} is no file of keys", hint=f"it has {FORM}") from None


def _checked(told: Any) -> ApiKey:
    """Return a key as it stands in a file, if it is one."""
    key = ApiKey(told["name"], told["role"], told["sha256"])
    if not (isinstance(key.name, str) and 1 <= len(key.name) <= 64 and key.name.isprintable()):
        raise OptionError("a key's name has 1 to 64 printable characters", hint=FORM)
    if key.role not in ROLES:
        raise OptionError(f"the role of key {key.name!r} is unknown", hint=f"one of {ROLES}")
    if not (isinstance(key.sha256, str) and re.fullmatch("[0-9a-f]{64}", key.sha256)):
        raise OptionError(f"key {key.name!r} has no SHA-256 of 64 hexadecimal digits", hint=FORM)
    return key
