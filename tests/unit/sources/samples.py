"""Rows to read, the sources that hold them, and how to read them to their end."""

from __future__ import annotations

import csv
import tracemalloc
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from everhash.errors import InputError
from everhash.sources import Batch, read

Floats = NDArray[np.float32]


NAMES = {"features": "v", "label": "kind", "id": "sku"}


WIDE = {"features": "f*", "label": "kind", "id": "sku"}


GIF = b"GIF89a" + bytes(9)


DAY = datetime(2024, 5, 1, 10, 30, tzinfo=UTC)


class Tensor:
    """Looks like a torch tensor: no __array__, and .numpy() only once detached and on the host."""

    def __init__(self, values: Any, ready: bool = False) -> None:
        self.values = np.asarray(values)
        self.ready = ready
        self.ndim, self.dtype = self.values.ndim, f"torch.{self.values.dtype}"

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, at: Any) -> Tensor:
        return Tensor(self.values[at])

    def detach(self) -> Tensor:
        return self

    def cpu(self) -> Tensor:
        return Tensor(self.values, ready=True)

    def numpy(self) -> NDArray[Any]:
        if not self.ready:
            raise RuntimeError("can't convert a tensor that requires grad")
        return self.values

    def tolist(self) -> Any:
        return self.values.tolist()


class Rows:
    """Features, labels and ids, and how to write them down."""

    def __init__(self, X: Floats, y: list[Any], ids: list[Any]) -> None:
        self.X, self.y, self.ids = X, y, ids

    def __len__(self) -> int:
        return len(self.X)

    def cut(self, size: int) -> Iterator[tuple[Floats, list[Any], list[Any]]]:
        for i in range(0, len(self), size):
            yield self.X[i : i + size], self.y[i : i + size], self.ids[i : i + size]

    def table(self, vectors: pa.DataType | None = None) -> pa.Table:
        n, d = self.X.shape
        v = pa.FixedSizeListArray.from_arrays(pa.array(self.X.ravel()), d)
        v = v if vectors is None else pa.array(self.X.tolist(), vectors)
        return pa.table({"sku": self.ids, "v": v, "price": np.ones(n), "kind": self.y})

    def wide(self) -> pa.Table:
        columns = {f"f{j}": self.X[:, j] for j in range(self.X.shape[1])}
        return pa.table({"kind": self.y, **columns, "sku": self.ids})


def sample(n: int = 23, d: int = 3) -> Rows:
    X = np.random.default_rng(0).normal(size=(n, d)).astype(np.float32)
    return Rows(X, [f"k{i % 4}" for i in range(n)], [3 * i - 7 for i in range(n)])


def write_ipc(table: pa.Table, path: Path, make: Any = pa.ipc.new_file, size: int = 4) -> Path:
    with make(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=size)
    return path


def write_parquet(table: pa.Table, path: Path, size: int = 4) -> Path:
    pq.write_table(table, path, row_group_size=size)
    return path


def write_csv(rows: Rows, path: Path) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["kind", *(f"f{j}" for j in range(rows.X.shape[1])), "sku"])
        for x, label, name in zip(rows.X, rows.y, rows.ids, strict=True):
            writer.writerow(["" if label is None else label, *(repr(float(v)) for v in x), name])
    return path


def write_npz(rows: Rows, path: Path, save: Any = np.savez, order: Any = "C") -> Path:
    save(path, X=np.asarray(rows.X, order=order), y=rows.y, ids=rows.ids)
    return path


Source = Callable[[Rows, Path], tuple[Any, dict[str, str]]]


SOURCES: dict[str, Source] = {
    "npz": lambda r, p: (write_npz(r, p / "a.npz"), {}),
    "npz compressed": lambda r, p: (write_npz(r, p / "a.npz", np.savez_compressed), {}),
    "npz by columns": lambda r, p: (write_npz(r, p / "a.npz", order="F"), {}),
    "parquet fixed": lambda r, p: (write_parquet(r.table(), p / "a.parquet"), NAMES),
    "parquet lists": lambda r, p: (
        write_parquet(r.table(pa.list_(pa.float32())), p / "a.parquet"),
        NAMES,
    ),
    "parquet large lists": lambda r, p: (
        write_parquet(r.table(pa.large_list(pa.float64())), p / "a.parquet", 100),
        NAMES,
    ),
    "parquet columns": lambda r, p: (write_parquet(r.wide(), p / "a.parquet"), WIDE),
    "arrow file": lambda r, p: (write_ipc(r.table(), p / "a.arrow"), NAMES),
    "arrow stream": lambda r, p: (write_ipc(r.wide(), p / "a.arrow", pa.ipc.new_stream), WIDE),
    "feather": lambda r, p: (
        pa.feather.write_feather(r.table(pa.list_(pa.float32())), str(p / "a.feather"))
        or p / "a.feather",
        NAMES,
    ),
    "csv": lambda r, p: (write_csv(r, p / "a.csv"), {"label": "kind", "id": "sku"}),
    "arrays": lambda r, p: ((r.X, r.y, r.ids), {}),
    "lists": lambda r, p: ((r.X.tolist(), r.y, r.ids), {}),
    "tensors": lambda r, p: ((Tensor(r.X), r.y, Tensor(r.ids)), {}),
    "table": lambda r, p: (r.table(), NAMES),
    "record batches": lambda r, p: (r.table().to_reader(5), NAMES),
    "data frame": lambda r, p: (r.wide().to_pandas(), WIDE),
    "batches": lambda r, p: (r.cut(5), {}),
    "batches as lists": lambda r, p: ([[Tensor(X), y, ids] for X, y, ids in r.cut(5)], {}),
    "batches by name": lambda r, p: (
        [{"v": X, "kind": y, "sku": ids} for X, y, ids in r.cut(5)],
        NAMES,
    ),
    "tensors by name": lambda r, p: (
        ({"sku": Tensor(ids), "v": Tensor(X), "kind": y} for X, y, ids in r.cut(5)),
        {"label": "kind", "id": "sku"},
    ),
    "tables": lambda r, p: (
        [r.table().slice(i, 6) for i in range(0, len(r), 6)],
        NAMES,
    ),
    "rows": lambda r, p: (r.table().to_pylist(), NAMES),
    "rows of numbers": lambda r, p: (iter(r.wide().to_pylist()), WIDE),
    "one mapping": lambda r, p: ({"v": r.X, "kind": r.y, "sku": r.ids}, NAMES),
}


def whole(source: Any, **options: Any) -> Rows:
    """Read a source to its end, and put the batches together."""
    batches = list(read(source, **options))
    for batch in batches:
        assert isinstance(batch, Batch)
        assert batch.X.dtype == np.float32
        assert batch.X.flags.c_contiguous
        assert 0 < len(batch.X) <= options.get("batch_rows", 10_000)
        assert batch.y is None or len(batch.y) == len(batch.X)
        assert batch.ids is None or len(batch.ids) == len(batch.X)
    X = np.concatenate([batch.X for batch in batches]) if batches else np.empty((0, 0), np.float32)
    y = [label for batch in batches if batch.y is not None for label in batch.y]
    return Rows(X, y, [name for batch in batches for name in batch.ids or []])


def same(read_rows: Rows, rows: Rows) -> None:
    np.testing.assert_array_equal(read_rows.X, rows.X)
    assert read_rows.y == rows.y
    assert read_rows.ids == rows.ids


def refused(error: type[InputError], says: str, source: Any, **options: Any) -> None:
    """Read a source that must be refused, in one line and, about attachments, with a hint."""
    with pytest.raises(error, match=says) as caught:
        list(read(source, **options))
    assert "\n" not in str(caught.value)
    assert caught.value.message[0].islower() or caught.value.message[0] in "/0123456789X"
    assert caught.value.hint or not options.keys() & {"payload", "thumbnail"}


POOLS: list[pa.MemoryPool] = []
"""pyarrow crashes if one goes away while something is left in it."""


def peak_memory(work: Callable[[], None]) -> int:
    """Return the most bytes that Python and pyarrow hold while something is done."""
    usual = pa.default_memory_pool()
    POOLS.append(pa.proxy_memory_pool(usual))
    pa.set_memory_pool(POOLS[-1])
    tracemalloc.start()
    try:
        work()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(usual)
    return peak + int(POOLS[-1].max_memory())


def table_of(**columns: Any) -> pa.Table:
    """Return a table with a column of vectors `v` before these."""
    n = len(next(iter(columns.values())))
    return pa.table({"v": [[float(i), 1.0] for i in range(n)], **columns})


def written(table: pa.Table, folder: Path) -> list[Path]:
    """Return one file of each kind of table."""
    files = [folder / f"a.{ending}" for ending in ("parquet", "arrow", "stream.arrow", "feather")]
    write_parquet(table, files[0])
    write_ipc(table, files[1])
    write_ipc(table, files[2], pa.ipc.new_stream)
    pa.feather.write_feather(table, str(files[3]))
    return files


def payloads(source: Any, payload: Any, **options: Any) -> list[Any]:
    """Read a source to its end and return the payloads of its rows."""
    found = []
    for batch in read(source, payload=payload, **{"features": "v", **options}):
        assert isinstance(batch, Batch)
        assert batch.thumbnails is None
        assert batch.payloads is not None
        assert len(batch.payloads) == len(batch.X)
        found += batch.payloads
    return found


def labels_of(batch: Batch) -> list[Any]:
    assert batch.y is not None
    return list(batch.y)


def thumbnails(source: Any, thumbnail: str, **options: Any) -> list[Any]:
    found = []
    for batch in read(source, thumbnail=thumbnail, **{"features": "v", **options}):
        assert batch.payloads is None
        assert batch.thumbnails is not None
        assert len(batch.thumbnails) == len(batch.X)
        found += batch.thumbnails
    return found


PLAIN: dict[str, tuple[pa.Array, list[Any]]] = {
    "texts": (pa.array(["a", None, ""]), ["a", None, ""]),
    "large texts": (pa.array(["é", None], pa.large_string()), ["é", None]),
    "few texts": (pa.array(["b", "a", None, "b"]).dictionary_encode(), ["b", "a", None, "b"]),
    "integers": (pa.array([1, None, 2**63 - 1]), [1, None, 2**63 - 1]),
    "unsigned": (pa.array([2**64 - 1], pa.uint64()), [2**64 - 1]),
    "booleans": (pa.array([True, False, None]), [True, False, None]),
    "nothing": (pa.nulls(2), [None, None]),
    "floats": (pa.array([0.1, None, float("nan"), -1e300]), [0.1, None, None, -1e300]),
    "floats of 32 bits": (pa.array([0.1, None], pa.float32()), [0.1, None]),
    "floats of 16 bits": (pa.array([0.1], pa.float16()), [0.1]),
    "decimals": (pa.array([Decimal("12.50"), None, Decimal("-0.01")]), ["12.50", None, "-0.01"]),
    "dates": (pa.array([date(2024, 5, 1), None]), ["2024-05-01", None]),
    "dates far away": (pa.array([2**31 - 1], pa.int32()).view(pa.date32()), ["5881580-07-11"]),
    "dates of 64 bits": (pa.array([date(1960, 1, 2)], pa.date64()), ["1960-01-02"]),
    "times": (pa.array([time(7, 5), time(7, 5, 0, 250_000)]), ["07:05:00", "07:05:00.25"]),
    "moments": (pa.array([DAY.replace(tzinfo=None), None]), ["2024-05-01T10:30:00", None]),
    "instants": (pa.array([DAY], pa.timestamp("ms", "Europe/Berlin")), ["2024-05-01T10:30:00Z"]),
    "nanoseconds": (
        pa.array([1, 10**9], pa.timestamp("ns")),
        ["1970-01-01T00:00:00.000000001", "1970-01-01T00:00:01"],
    ),
    "lists": (pa.array([["a", None], [], None]), [["a", None], [], None]),
    "vectors": (pa.array([[0.1, float("nan")]], pa.list_(pa.float32(), 2)), [[0.1, None]]),
    "structs": (
        pa.array([{"a": 1, "b": {"c": ["x"]}}, None, {"a": None, "b": {"c": None}}]),
        [{"a": 1, "b": {"c": ["x"]}}, None, {"a": None, "b": {"c": None}}],
    ),
    "structs with dates": (pa.array([{"on": [DAY.date()]}]), [{"on": ["2024-05-01"]}]),
    "maps": (
        pa.array([[("a", 1), ("b", None)], None, []], pa.map_(pa.string(), pa.int8())),
        [{"a": 1, "b": None}, None, {}],
    ),
}
