"""Ids and labels given as text: on a command line, in a URL, in a field of a page."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable

from everhash.collection.api import CollectionApi
from everhash.wire.ids import Id

INT64 = range(-(2**63), 2**63)


def typed_ids(collection: CollectionApi, texts: Iterable[str]) -> list[Id]:
    """Return the ids that texts name: the text if the collection has that id, else the number."""
    texts = list(texts)
    digits = [text for text in texts if re.fullmatch(r"-?[0-9]{1,19}", text)]
    numbers = {text: int(text) for text in digits if int(text) in INT64}
    if not numbers:  # a remote collection need not be asked
        return list(texts)
    there = collection.has([*numbers, *numbers.values()]).tolist()
    as_text, as_number = there[: len(numbers)], there[len(numbers) :]
    read = {
        text: numbers[text] if number and not same else text
        for text, same, number in zip(numbers, as_text, as_number, strict=True)
    }
    return [read.get(text, text) for text in texts]


def typed_label(text: str, is_known: Callable[[Hashable], bool]) -> Hashable:
    """Return the label that a text names: the text, unless it is known only as a number.

    >>> known = {7, 8, "8"}.__contains__
    >>> typed_label("7", known), typed_label("8", known), typed_label("2.5", known)
    (7, '8', '2.5')
    """
    for read in (str, int, float):
        try:
            value: Hashable = read(text)
        except (ValueError, OverflowError):
            continue
        if is_known(value):
            return value
    return text
