"""Codes to search, random and real, and the results that a search of them must give."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash import OnlineHasher, extras
from everhash.bench.datasets import Dataset
from everhash.bench.protocols import Split
from everhash.index.encoding import Odometer, choose_homes, encode
from everhash.index.segment import Segment

Words = NDArray[np.uint64]
Bytes = NDArray[np.uint8]
Counts = NDArray[np.int64]
Floats = NDArray[np.float32]
K, QUERIES, SLICE = 100, 1000, 20_000


class CodeSample(NamedTuple):
    """Codes of entries and queries; a query has a word and margins for each cycle."""

    bits: int
    words: Words
    cycles: Counts
    codewords: Words
    codeword_cycles: Counts
    margins: Floats
    """(q, n_cycles, bits)"""
    homes: Counts
    """(q,) the home cycle of each query; FAISS searches with its word."""

    @property
    def queries(self) -> Words:
        """(q, n_cycles, W) the signs of the margins."""
        return pack(self.margins > 0)

    @property
    def home_words(self) -> Bytes:
        """(q, bits / 8) the word of each query's home cycle, as FAISS wants it."""
        return self.queries[np.arange(len(self.homes)), self.homes].view(np.uint8)

    def segment(self) -> Segment:
        """Return the entries as the index keeps them."""
        arrays = (self.words, self.cycles, self.codewords, self.codeword_cycles)
        return Segment.build(*arrays, self.margins.shape[1], self.bits)


def pack(bits: NDArray[np.bool_]) -> Words:
    """Return bits as 64-bit words; their number must be a multiple of 64."""
    return np.packbits(bits, axis=-1, bitorder="little").view(np.uint64)


def make_uniform(bits: int, n: int) -> CodeSample:
    """Return random codes, of which a search can skip none."""
    rng = np.random.default_rng(0)
    words = rng.integers(0, 2**64, (n, bits // 64), dtype=np.uint64)
    margins = rng.standard_normal((QUERIES, 1, bits), dtype=np.float32)
    none, zeros = np.zeros(QUERIES, np.int64), np.zeros(n, np.int64)
    return CodeSample(bits, words, zeros, words[:100], zeros[:100], margins, none)


def make_clustered(bits: int, n: int) -> CodeSample:
    """Return codes near 100 codewords: 10 % of the bits are flipped."""
    rng = np.random.default_rng(1)
    codewords = rng.random((100, bits)) < 0.5

    def near(count: int) -> NDArray[np.bool_]:
        noise: NDArray[np.bool_] = rng.random((count, bits), dtype=np.float32) < 0.1
        return codewords[rng.integers(0, 100, count)] ^ noise

    words, signs = pack(near(n)), np.where(near(QUERIES), 1, -1)
    margins = (signs * np.abs(rng.standard_normal(signs.shape))).astype(np.float32)
    none, zeros = np.zeros(QUERIES, np.int64), np.zeros(n, np.int64)
    return CodeSample(
        bits, words, zeros, pack(codewords), np.zeros(100, np.int64), margins[:, None], none
    )


def make_real(data: Dataset, split: Split, bits: int, n: int) -> CodeSample:
    """Return codes of a learned mapping; rows are repeated with Gaussian jitter.

    Its standard deviation in each feature is 1 % of the row's distance from the mean of the stream.
    """
    rng = np.random.default_rng(2)
    hasher = OnlineHasher(bits).partial_fit(data.X[split.stream], data.y[split.stream])
    mapping = hasher.freeze()
    X, odometer = data.X[split.entries], Odometer.start_with(mapping, "home")
    jitter = 0.01 * np.linalg.norm(X - data.X[split.stream].mean(axis=0), axis=1, keepdims=True)
    words, cycles = np.empty((n, bits // 64), np.uint64), np.empty(n, np.int64)
    for start in range(0, n, SLICE):
        part = slice(start, min(start + SLICE, n))
        at = np.arange(part.start, part.stop) % len(X)
        rows = X[at] + jitter[at] * rng.standard_normal((len(at), X.shape[1]), dtype=np.float32)
        columns = encode(mapping, "home", mapping.measure(rows), odometer)
        words[part], cycles[part] = columns.words, columns.homes
    Z = mapping.measure(data.X[np.resize(rng.permutation(split.queries), QUERIES)])
    margins = mapping.margins(Z).reshape(QUERIES, -1, bits)
    homes = choose_homes(mapping, "home", Z)[0]
    codewords = pack(mapping.words > 0)
    return CodeSample(bits, words, cycles, codewords, mapping.label_cycles, margins, homes)


def signs_of(words: Words) -> Floats:
    """Return (bits, n) signs, laid out for the matrix product."""
    out = np.empty((64 * words.shape[1], len(words)), np.float32)
    for start in range(0, len(words), SLICE):
        part = np.ascontiguousarray(words[start : start + SLICE]).view(np.uint8)
        out[:, start : start + SLICE] = np.unpackbits(part, axis=1, bitorder="little").T * 2.0 - 1
    return out


@lru_cache(maxsize=1)
def load_faiss() -> Any:
    """Return FAISS, on one thread, or None where it is not installed."""
    faiss: Any = extras.find("faiss")
    if faiss is not None:
        faiss.omp_set_num_threads(1)
    return faiss


def flat_index(words: Words, bits: int) -> Any:
    """Return FAISS's exact index of these words."""
    index = load_faiss().IndexBinaryFlat(bits)
    index.add(np.ascontiguousarray(words).view(np.uint8))
    return index


class Expected(NamedTuple):
    """Results of the first queries, computed in another way."""

    distances: NDArray[Any]
    places: Counts

    def check(self, part: slice, distances: NDArray[Any], places: Counts) -> None:
        """Raise if the results of these queries are not the expected ones."""
        for name, ours in (("distances", distances), ("places", places)):
            wanted = getattr(self, name)[part]
            if not np.array_equal(ours[: len(wanted)], wanted):
                raise RuntimeError(f"wrong {name} for queries {part.start} to {part.stop}")


def expect_hamming(codes: CodeSample) -> Expected:
    """Return three queries' places by sorting, and all distances by FAISS where it is installed."""
    far = np.stack([_distances(codes, query) for query in codes.queries[:3]])
    places = np.argsort(far, axis=1, kind="stable")[:, :K]
    by_faiss = None if load_faiss() is None else _distances_by_faiss(codes)
    distances = np.take_along_axis(far, places, axis=1) if by_faiss is None else by_faiss
    return Expected(distances, places)


def _distances(codes: CodeSample, query: Words) -> Counts:
    differs = np.bitwise_count(codes.words ^ query[codes.cycles])
    total: Counts = differs.sum(axis=1, dtype=np.int64)
    return total


def _distances_by_faiss(codes: CodeSample) -> Counts:
    """Return (q, K) distances, searched cycle by cycle."""
    queries, nearest = codes.queries, []
    for cycle in np.unique(codes.cycles):
        index = flat_index(codes.words[codes.cycles == cycle], codes.bits)
        words = np.ascontiguousarray(queries[:, cycle]).view(np.uint8)
        nearest.append(index.search(words, min(K, index.ntotal))[0])
    return np.sort(np.concatenate(nearest, axis=1), axis=1)[:, :K].astype(np.int64)


def expect_margins(codes: CodeSample, segment: Segment) -> Expected:
    """Return three queries' results by sorting all distances, checked against float64 sums."""
    far = segment.margins_of(codes.margins[:3], np.arange(len(codes.words)))
    places = np.argsort(far, axis=1, kind="stable")[:, :K]
    distances = np.take_along_axis(far, places, axis=1)
    for margins, ours, at in zip(codes.margins, distances, places, strict=False):
        terms = margins[codes.cycles[at]].astype(np.float64) * signs_of(codes.words[at]).T
        # terms may cancel out, so the allowed rounding depends on their size, not on their sum
        if not (np.abs(ours + terms.sum(axis=1)) <= 1e-6 * np.abs(terms).sum(axis=1)).all():
            raise RuntimeError("distances by margins are not the sums of their terms")
    return Expected(distances, places)
