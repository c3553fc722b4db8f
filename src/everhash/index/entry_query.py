"""Entries as queries: by their features if they are kept, else by their codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from everhash.errors import InputError, OptionError
from everhash.index.arrays import Bools, Counts, Floats
from everhash.index.queries import EncodedQueries

if TYPE_CHECKING:
    from everhash.index.index import Index
    from everhash.index.stored import StoredEntries


def has_features(index: StoredEntries, places: Counts) -> Bools:
    """Return which entries have their features kept."""
    coded = index.has_code(index._labels.rows[places])
    return coded & index.keep_features


def features_at(index: StoredEntries, places: Counts) -> Floats:
    """Return features as they are stored, or raise if some are not kept."""
    if not index.keep_features:
        raise OptionError(
            "features are not kept", hint="a collection made with keep_features=True keeps them"
        )
    there = has_features(index, places)
    if not there.all():
        name = index._ids.names(places[~there][:1]).tolist()[0]
        raise InputError(
            f"entry {name!r} is known by its label: its features are not kept",
            hint="search with the row it was made from, or by the entry: search_like",
        )
    if index._coded is None:  # there has never been a coded entry
        return np.empty((0, index.hasher.n_features_in_), np.float32)
    distinct, which = np.unique(places, return_inverse=True)
    return index._coded.rows(distinct)[which]


def query_like(index: Index, places: Counts, distance: str) -> EncodedQueries:
    """Return entries as queries.

    An entry without features is searched by its code: margins of -1 and +1 where it has a bit, 0
    elsewhere. The code of a labelled entry is its label's codeword, or the sum of several.
    """
    there = has_features(index, places)
    if distance == "hamming" and not there.all():
        name = index._ids.names(places[~there][:1]).tolist()[0]
        raise OptionError(
            f"entry {name!r} has no bits in most cycles, so it has no Hamming distances",
            hint="distance='asymmetric'",
        )
    rows = np.zeros((len(places), getattr(index.hasher, "n_features_in_", 0)), np.float32)
    if there.any():
        rows[there] = features_at(index, places[there])
    queries = EncodedQueries.of(rows, index.hasher, index.mapping, distance, index.coding)
    for row in np.flatnonzero(~there).tolist():
        code, for_codes = _code(index, int(places[row])), queries.for_codes[row]
        queries.for_codewords[row] = code.reshape(queries.for_codewords[row].shape)
        # the coded entries' mapping may have fewer cycles
        queries.for_codes[row] = code[: for_codes.size].reshape(for_codes.shape)
    return queries


def _code(index: Index, place: int) -> Floats:
    """Return an entry's code over all cycles: -1, +1, and 0 where it has no bit."""
    hasher = index.hasher
    code = np.zeros((hasher.n_cycles_, hasher.bits), np.float32)
    if index._coded is not None and len(index.coded_among(np.array([place]))):
        home, bits = index._coded.code_of(place)
        code.reshape(-1)[home * hasher.bits :][: len(bits)] = np.where(bits, 1, -1)
        return code.reshape(-1)
    for number in index._labels.of(place):
        code[hasher.label_cycles_[number]] += hasher.words_[number]
    return code.reshape(-1)
