"""Checks of the options of a search; the index, the service and the client share them."""

from __future__ import annotations

from typing import Any

import numpy as np

from everhash import limits
from everhash.errors import LimitError, OptionError
from everhash.wire.ids import is_unicode

WAYS = ("relevance", "meaning", "likeness", "asymmetric", "hamming")
"""How entries are ranked; see `everhash.index.ways`."""
TEXT_CHARACTERS = 256
"""Characters of a text that entries are looked for by."""
RECALL = 0.98
"""The share of the nearest entries that a search by likeness finds, unless it is told another."""
MAX_RADIUS = float(np.finfo(np.float32).max)
"""The largest float32: no distance is larger."""


def check_k(k: Any) -> int:
    """Return k, the number of entries wanted, as an int; raise if it is not a valid one."""
    wanted = check_whole("k", k, least=1)
    if wanted > limits.RESULTS:
        raise LimitError(f"k = {wanted}, at most {limits.RESULTS} are supported")
    return wanted


def check_whole(name: str, value: Any, *, least: int) -> int:
    """Return an option as an int; raise if it is no whole number, or too small."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise OptionError(f"{name} must be a whole number of at least {least}, got {value!r:.40}")
    return int(value)


def check_recall(recall: Any) -> float:
    """Return the share of the nearest entries to find as a float; raise if it is not a share."""
    number = isinstance(recall, int | float | np.integer | np.floating)
    share = float(recall) if number and 0 < recall <= 1 else 0.0
    if isinstance(recall, bool) or not share:
        raise OptionError(
            f"recall must be a number above 0 and at most 1, got {recall!r:.40}",
            hint=f"{RECALL} is the default, 1 finds all of the nearest",
        )
    return share


def check_by(by: Any) -> str:
    """Return the name of a way of searching; raise if it is unknown."""
    if by not in WAYS:
        raise OptionError(f"by {by!r:.40} is unknown", hint=f"choose from {', '.join(WAYS)}")
    return str(by)


def check_text(text: Any) -> str | None:
    """Return the text that entries are looked for by; None for no text, and for an empty one."""
    if text is not None and not (isinstance(text, str) and is_unicode(text)):
        raise OptionError(f"text must be a text, got {text!r:.40}")
    if text and len(text) > TEXT_CHARACTERS:
        raise LimitError(f"a text of {len(text)} characters, at most {TEXT_CHARACTERS}")
    return text or None


def check_radius(r: Any) -> float:
    """Return a radius as a finite float; raise if it is not a number."""
    number = isinstance(r, int | float | np.number) and not isinstance(r, bool)
    if not number or not (r <= 0 or r >= 0):  # NaN is neither
        raise OptionError(f"r must be a number, got {r!r:.40}")
    return float(min(max(r, -MAX_RADIUS), MAX_RADIUS))
