"""Entries as queries: by their features if they are kept, else by their labels and codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from everhash.errors import OptionError
from everhash.index.arrays import Bools, Counts, Floats
from everhash.index.hasher import n_features_of
from everhash.index.queries import EncodedQueries

if TYPE_CHECKING:
    from everhash.index.reading import ReadableEntries


def rows_of(entries: ReadableEntries, places: Counts) -> tuple[Floats, Bools]:
    """Return features of entries, zeros where they are not kept, and which are kept."""
    known = np.isin(places, entries.with_features(places))
    rows = np.zeros((len(places), n_features_of(entries.hasher)), np.float32)
    if known.any():
        rows[known] = entries.features_at(places[known])
    return rows, known


def probabilities_of(entries: ReadableEntries, places: Counts, n_labels: int) -> Floats:
    """Return (n, n_labels) the labels that entries have, or are taken for, in equal shares."""
    shares = np.zeros((len(places), n_labels), np.float32)
    for row, place in enumerate(places.tolist()):
        numbers = entries.label_numbers(place)
        if len(numbers) == 0 and entries.guess_column[place] >= 0:
            numbers = (int(entries.guess_column[place]),)
        shares[row, list(numbers)] = 1 / max(1, len(numbers))
    return shares


def codes_of(
    entries: ReadableEntries, rows: Floats, places: Counts, known: Bools, by: str
) -> EncodedQueries:
    """Return entries as queries for distances of codes.

    An entry without features is searched by its code: margins of -1 and +1 where it has a bit, 0
    elsewhere. The code of a labelled entry is its label's codeword, or the sum of several.
    """
    if by == "hamming" and not known.all():
        name = entries.names_at(places[~known][:1]).tolist()[0]
        raise OptionError(
            f"entry {name!r} has no bits in most cycles, so it has no Hamming distances",
            hint='pass {option by="asymmetric"}',
        )
    queries = EncodedQueries.of(rows, entries.hasher, entries.mapping, by, entries.coding)
    for row in np.flatnonzero(~known).tolist():
        code, for_codes = _code(entries, int(places[row])), queries.for_codes[row]
        queries.for_codewords[row] = code.reshape(queries.for_codewords[row].shape)
        # the coded entries' mapping may have fewer cycles
        queries.for_codes[row] = code[: for_codes.size].reshape(for_codes.shape)
    return queries


def _code(entries: ReadableEntries, place: int) -> Floats:
    """Return an entry's code over all cycles: -1, +1, and 0 where it has no bit."""
    hasher = entries.hasher
    code = np.zeros((hasher.n_cycles_, hasher.bits), np.float32)
    if entries.coded is not None and len(entries.coded_among(np.array([place]))):
        home, bits = entries.coded.code_of(place)
        code.reshape(-1)[home * hasher.bits :][: len(bits)] = np.where(bits, 1, -1)
        return code.reshape(-1)
    for number in entries.label_numbers(place):
        code[hasher.label_cycles_[number]] += hasher.words_[number]
    return code.reshape(-1)
