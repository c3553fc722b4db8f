"""CSV files: headers, the types of columns, and errors that name the cell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from everhash.errors import FeatureTypeError, IdError, InputError
from everhash.sources import csvs, read
from tests.unit.sources.samples import labels_of, payloads, refused, whole


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "2"], [1, 2]),
        (["-1", "0"], [-1, 0]),
        (["1.0", ""], [1, None]),
        (["1", "x"], ["1", "x"]),
        (["007", "1"], ["007", "1"]),
        (["1.50", "1.5"], ["1.50", "1.5"]),
        (["1" * 20, "1"], ["1" * 20, "1"]),
        (["NA", "nan"], ["NA", "nan"]),
        (["true", "False"], ["true", "False"]),
        (["", ""], [None, None]),
        (['"a,b"', '"c\nd"'], ["a,b", "c\nd"]),
        (["ü", "e"], ["ü", "e"]),
    ],
)
def test_labels_of_a_csv_are_integers_only_if_all_are(
    cells: list[str], expected: list[Any], tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("\ufeffkind,f0\n" + "".join(f"{cell},1\n" for cell in cells), encoding="utf-8")
    assert whole(path, label="kind").y == expected


def test_a_csv_column_keeps_its_type_from_beginning_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csvs, "BLOCK_BYTES", 1 << 12)
    path = tmp_path / "a.csv"
    wide = "1" * 400
    with path.open("w") as file:
        file.write("id,f0,text\n")
        file.writelines(f"{i},0,{wide}\n" for i in range(300))
        file.write("last,0,x\n")
    ids = whole(path, features="f0", id="id").ids
    assert ids[:2] == ["0", "1"]
    assert ids[-1] == "last"


@pytest.mark.parametrize("first", ["0.5,1,2", "1,2,3", "nan,1e5,-3"])
def test_a_csv_without_names_is_all_features(first: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{first}\n4,5,6\n")
    assert whole(path).X.shape == (2, 3)
    assert whole(path).X[1].tolist() == [4, 5, 6]
    with pytest.raises(InputError, match=r"expected the names of the columns .*header"):
        whole(path, label="kind")


def test_the_numbers_pandas_writes_as_a_header_are_no_row(tmp_path: Path) -> None:
    frame = pd.DataFrame(np.arange(6.0).reshape(2, 3))
    for index in (True, False):
        frame.to_csv(tmp_path / "a.csv", index=index)
        assert whole(tmp_path / "a.csv").X.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("text", ["", "\n", "kind,f0\n"])
def test_an_empty_csv_is_no_batches(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(text)
    assert list(read(tmp_path / "a.csv")) == []
    assert list(read(tmp_path / "a.csv", label="kind" if "kind" in text else None)) == []


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["a", "", "b c"], ["a", None, "b c"]),
        (['"a,b"', '"c\nd"', '"é ""quoted"""'], ["a,b", "c\nd", 'é "quoted"']),
        (["1", "", "-20"], [1, None, -20]),
        (["1.0", "", "2"], [1, None, 2]),
        (["12.50", "0.25", "1e-3"], [12.5, 0.25, 0.001]),
        (["007", "1", "2"], ["007", "1", "2"]),
        (["true", "False", ""], [True, False, None]),
        (["true", "1", "no"], ["true", "1", "no"]),
        (["NaN", "1.5", "inf"], ["NaN", "1.5", "inf"]),
        (["1" * 20, "1", "2"], ["1" * 20, "1", "2"]),
        (["2024-05-01", "2024-05-02", "x"], ["2024-05-01", "2024-05-02", "x"]),
    ],
)
def test_a_csv_gives_numbers_booleans_and_texts(
    cells: list[str], expected: list[Any], tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    lines = (f"{cell},{i}\n" for i, cell in enumerate(cells))
    path.write_text("about,v\n" + "".join(lines), encoding="utf-8")
    found = payloads(path, "about", batch_rows=2)
    assert found == expected
    bools = [type(value) is bool for value in found]
    assert bools == [type(value) is bool for value in expected]


def test_what_a_csv_column_is_for_besides_decides_its_type(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("kind,sku,f0,f1\n1.5,7,0.1,2\n2.5,9,0.2,3\n")
    (batch,) = read(path, features="f0,f1", label="kind", id="sku", payload=["kind", "sku", "f0"])
    assert batch.payloads is not None
    assert batch.payloads[0] == {"kind": "1.5", "sku": 7, "f0": 0.1}
    assert labels_of(batch) == ["1.5", "2.5"]
    assert batch.X.tolist() == np.array([[0.1, 2], [0.2, 3]], np.float32).tolist()


@pytest.mark.parametrize(
    ("text", "options", "error", "says"),
    [
        ("a,b\n1,2\n3,x\n", {}, FeatureTypeError, "column 'b', row 1: .*number, got 'x'"),
        ("k,a\n1,2\n\n3,NA\n", {"label": "k"}, FeatureTypeError, "'a', row 1: .*got 'NA'"),
        ("a,b\n1,2\n3\n", {}, InputError, "row 1: expected 2 columns, got 1"),
        ("a,b\n1,2\n3,4,5\n", {"id": "a"}, InputError, "row 1: expected 2 columns, got 3"),
        ("1,2\n3,x\n", {}, FeatureTypeError, "column 'f1', row 1: .*got 'x'"),
        ("a,b\n1,2\n3,\n", {}, InputError, "column 'b', row 1: .*null"),
        ("a,b\n1,2\n,4\n", {"id": "a"}, IdError, "column 'a', row 1: .*null"),
        ("a,b\n1,2\n", {"label": "c"}, InputError, "no column 'c' .*'a', 'b'"),
        ("1,2\n3,4\n", {"features": "f0"}, InputError, "names of the columns"),
    ],
)
def test_a_csv_that_cannot_be_used_is_named(
    text: str, options: dict[str, str], error: Any, says: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    refused(error, f"^{path}: .*{says}", path, **options)


def test_a_csv_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"k,a\n\xff\xfe,1\n")
    refused(InputError, "row 0: .*utf8", tmp_path / "a.csv", label="k")
