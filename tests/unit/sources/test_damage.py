"""Files that were truncated or changed are refused with their name, or read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
from hypothesis import given, settings
from hypothesis import strategies as st

from everhash.errors import InputError
from everhash.sources import count_rows, read
from tests.unit.sources.samples import PLAIN, SOURCES, refused, sample, table_of, write_ipc, written


def files(path: Path) -> dict[str, tuple[Path, dict[str, Any]]]:
    """Return one file of each kind, with the columns to read; tables also with payloads."""
    rows = sample(12)
    np.save(path / "a.npy", rows.X)
    made: dict[str, tuple[Path, dict[str, Any]]] = {"npy": (path / "a.npy", {})}
    for kind, make in SOURCES.items():
        (path / kind).mkdir()
        source, options = make(rows, path / kind)
        if isinstance(source, Path):
            made[kind] = source, options
    columns = {
        name: pa.concat_arrays([column] * 6).slice(0, 6) for name, (column, _) in PLAIN.items()
    }
    for file in written(table_of(**columns), path):
        made[f"payloads: {file.name}"] = file, {"features": "v", "payload": list(columns)}
    return made


def outcome(path: Path, options: dict[str, Any]) -> str:
    """Read a file that may be damaged; return the path if our error names it, or no text."""
    count_rows(path)
    try:
        for batch in read(path, batch_rows=5, **options):
            json.dumps(batch.payloads, allow_nan=False)
    except InputError as error:
        return str(error).partition(str(path))[1]
    return ""


def test_every_truncation_is_refused_or_read(tmp_path: Path) -> None:
    for kind, (path, options) in files(tmp_path).items():
        data = path.read_bytes()
        found = []
        for size in range(0, len(data), max(len(data) // 40, 1)):
            path.write_bytes(data[:size])
            found.append(outcome(path, options) == str(path))
        may_end_anywhere = kind == "csv" or "stream" in kind
        assert all(found) or may_end_anywhere, kind


@given(data=st.data())
@settings(max_examples=20)
def test_any_damage_is_refused_or_read(data: st.DataObject, tmp_path_factory: Any) -> None:
    for path, options in files(tmp_path_factory.mktemp("damage")).values():
        content = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 3))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        path.write_bytes(content)
        assert outcome(path, options) in ("", str(path))


def test_offsets_that_lead_astray_are_not_followed(tmp_path: Path) -> None:
    """A column's size is computed only after validation, or pyarrow would read out of bounds."""
    deep = [[[i] for i in range(77)], [[i] for i in range(63)]]
    path = write_ipc(table_of(deep=deep), tmp_path / "a.arrow")
    offsets, astray = (np.array([0, 77, end], np.int32).tobytes() for end in (140, 2**30))
    content = path.read_bytes()
    assert content.count(offsets) == 1
    path.write_bytes(content.replace(offsets, astray))
    refused(InputError, f"^{path}: ", path, features="v", payload="deep")
