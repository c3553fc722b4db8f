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
"""Each may do what the ones before it may, and more."""
PREFIX = "eh_"
"""Starts every secret, so that scanners for leaked secrets recognise it."""
MAX_KEYS_BYTES = 1 << 20
"""bytes of a file of keys"""
FORM = "[[key]] with name, role and sha256, as `everhash key` writes them"


@dataclass(frozen=True)
class ApiKey:
    """A name, what it may do, and the hash of its secret."""

    name: str
    role: str
    sha256: str

    def allows(self, role: str) -> bool:
        """Whether this key may do what the role may."""
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
        """Return the key with this secret, compared in constant time; None if there is none."""
        digest, found = hashlib.sha256(secret).digest(), None
        for known, key in self._keys:
            if hmac.compare_digest(known, digest):
                found = key
        return found

    def __len__(self) -> int:
        return len(self._keys)


def make_key(role: str, name: str | None = None) -> tuple[str, ApiKey]:
    """Make a random key; return the secret, which is not stored, and what a file keeps of it."""
    if role not in ROLES:
        raise OptionError(f"role {role!r:.40} is unknown", hint=f"choose from {', '.join(ROLES)}")
    secret = PREFIX + secrets.token_urlsafe(32)
    digest = hashlib.sha256(secret.encode()).hexdigest()
    return secret, _checked(
        {"name": name or f"{role}-{digest[:6]}", "role": role, "sha256": digest}
    )


def as_toml(key: ApiKey) -> str:
    """Return a key as TOML."""
    name = json.dumps(key.name, ensure_ascii=False)  # which TOML reads too
    return f'[[key]]\nname = {name}\nrole = "{key.role}"\nsha256 = "{key.sha256}"\n'


def add_key(path: Path, key: ApiKey) -> None:
    """Append a key to a file of keys, or make a new file that only its owner can read."""
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
        data = file.read(MAX_KEYS_BYTES + 1)
    if len(data) > MAX_KEYS_BYTES:
        raise InputError(f"{path} is too large for a file of keys", hint=FORM)
    try:
        text = data.decode()
        content = json.loads(text) if text.lstrip()[:1] == "{" else tomllib.loads(text)
        return Keys([_checked(item) for item in content["key"]])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        if isinstance(error, OptionError):
            message = f"{path}: {error.message_template}"
            raise OptionError(message, hint=error.hint_template) from None
        # the text is not quoted: it may contain a secret
        raise InputError(f"{path} is not a file of keys", hint=f"it has {FORM}") from None


def _checked(item: Any) -> ApiKey:
    """Return a key of a file, if it is valid."""
    key = ApiKey(item["name"], item["role"], item["sha256"])
    if not (isinstance(key.name, str) and 1 <= len(key.name) <= 64 and key.name.isprintable()):
        raise OptionError("a key's name has 1 to 64 printable characters", hint=FORM)
    if key.role not in ROLES:
        raise OptionError(f"the role of key {key.name!r} is unknown", hint=f"one of {ROLES}")
    if not (isinstance(key.sha256, str) and re.fullmatch("[0-9a-f]{64}", key.sha256)):
        raise OptionError(f"key {key.name!r} has no SHA-256 of 64 hexadecimal digits", hint=FORM)
    return key
