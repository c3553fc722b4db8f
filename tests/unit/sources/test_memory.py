"""Memory does not grow with the source, and large payloads make smaller batches."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from everhash.sources import npy, read, tables
from tests.unit.sources.samples import peak_memory, table_of, write_ipc, written


def write_large(kind: str, path: Path, n: int, d: int) -> Path:
    """Write n rows, never holding many of them."""
    block = np.random.default_rng(0).normal(size=(1000, d)).astype(np.float32)
    values = pa.FixedSizeListArray.from_arrays(pa.array(block.ravel()), d)
    table = pa.table({"v": values, "kind": ["cat"] * 1000, "sku": range(1000)})
    if kind == "npy":
        np.save(path, np.tile(block, (n // 1000, 1)))
    elif kind == "npz":
        np.savez(path, X=np.tile(block, (n // 1000, 1)), y=np.zeros(n), ids=np.arange(n))
    elif kind == "csv":
        with path.open("wb") as file:
            wide = pa.table({f"f{j}": block[:, j] for j in range(d)}).append_column(
                "kind", table[1]
            )
            for i in range(n // 1000):
                options = pa.csv.WriteOptions(include_header=i == 0)
                pa.csv.write_csv(wide, file, options)
    elif kind == "arrow":
        with pa.ipc.new_file(path, table.schema) as writer:
            for _ in range(n // 1000):
                writer.write_table(table)
    else:
        size = 1000 if kind == "parquet" else n
        with pq.ParquetWriter(path, table.schema) as writer:
            for _ in range(n // size):
                writer.write_table(pa.concat_tables([table] * (size // 1000)), row_group_size=size)
    return path


@pytest.mark.parametrize("kind", ["npy", "npz", "parquet", "one-group.parquet", "arrow"])
def test_only_a_part_of_a_file_is_held(kind: str, tmp_path: Path) -> None:
    n, d = 60_000, 64
    path = write_large(kind, tmp_path / f"a.{kind}", n, d)
    label = None if kind in ("npy", "npz") else "kind"
    sizes: list[int] = []
    batches = read(path, label=label, batch_rows=1000)
    peak = peak_memory(lambda: sizes.extend(len(batch.X) for batch in batches))
    assert sum(sizes) == n
    assert peak < n * d * 4 / 3


PEAK = """
import sys
import pyarrow as pa
from everhash.sources import csvs, read
csvs.BLOCK_BYTES = 1 << 16
rows = sum(len(batch.X) for batch in read(sys.argv[1], label="kind", batch_rows=2000))
print(rows, pa.default_memory_pool().max_memory())
"""


@pytest.mark.parametrize(("kind", "n", "d"), [("parquet", 100_000, 32), ("csv", 16_000, 64)])
def test_a_larger_file_needs_no_more_memory(kind: str, n: int, d: int, tmp_path: Path) -> None:
    """pyarrow's peak in fresh processes; of a CSV it reads up to 32 blocks ahead."""
    peaks = []
    for size in (n // (10 if kind == "parquet" else 2), n):
        path = write_large(kind, tmp_path / f"{size}.{kind}", size, d)
        run = subprocess.run(
            [sys.executable, "-c", PEAK, str(path)], capture_output=True, text=True, check=True
        )
        rows, peak = map(int, run.stdout.split())
        assert rows == size
        peaks.append(peak)
    assert peaks[1] < 1.2 * peaks[0]
    assert peaks[1] < path.stat().st_size / 2


def test_heavy_columns_are_never_held_for_all_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "MAX_BATCH_BYTES", 1_000_000)
    monkeypatch.setattr(tables, "PARQUET_ROWS", 10)
    document, n = "x" * 50_000, 400
    schema = table_of(text=["a"]).schema
    with pq.ParquetWriter(tmp_path / "a.parquet", schema) as writer:
        for i in range(n):
            writer.write_table(pa.table({"v": [[float(i), 1.0]], "text": [document]}, schema))
    sizes: list[int] = []
    batches = read(tmp_path / "a.parquet", payload="text", batch_rows=1000)
    peak = peak_memory(lambda: sizes.extend(len(batch.X) for batch in batches))
    assert sum(sizes) == n
    assert max(sizes) <= 30
    assert peak < n * len(document) / 3


def test_heavy_record_batches_and_arrays_are_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (tables, npy):
        monkeypatch.setattr(module, "MAX_BATCH_BYTES", 1_000_000)
    texts = ["x" * 50_000] * 45
    table = table_of(text=texts)
    np.savez(tmp_path / "a.npz", X=np.ones((45, 2)), text=texts)
    for path in (table, write_ipc(table, tmp_path / "a.arrow", size=45), tmp_path / "a.npz"):
        sizes = [len(batch.X) for batch in read(path, payload="text")]
        assert sum(sizes) == 45
        assert max(sizes) <= 20
        assert [len(batch.X) for batch in read(path)] == [45]


def test_light_columns_do_not_make_batches_smaller(tmp_path: Path) -> None:
    for path in written(table_of(text=["some words"] * 3000), tmp_path):
        assert [len(batch.X) for batch in read(path, payload="text", batch_rows=1500)] == [
            1500,
            1500,
        ]
