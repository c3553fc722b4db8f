"""The page in a real browser: numbers that somebody brings, as a file or pasted."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from tests.browser.collections import DIM, centres
from tests.browser.conftest import Open
from tests.browser.processes import Server, Site
from tests.browser.reading import TIMES, ranking, until

pytestmark = pytest.mark.slow

DROP = """([name, text]) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([text], name));
    const options = { bubbles: true, cancelable: true, dataTransfer: transfer };
    for (const type of ["dragenter", "dragover", "drop"]) {
        document.querySelector("#search").dispatchEvent(new DragEvent(type, options));
    }
}"""


def best(server: Site, rows: NDArray[np.float32]) -> list[list[str]]:
    """Return what the server finds for rows, as the page writes ids."""
    matches = server.post("/search", {"rows": rows.tolist()})["matches"]
    return [
        [json.dumps(one["id"], ensure_ascii=False) for one in match["found"]] for match in matches
    ]


def test_pasted_numbers_are_searched_and_noise_is_out_of_scope(
    digits_page: Site, opened: Open
) -> None:
    page = opened(digits_page)
    page.get_by_role("tab", name="Bring numbers").click()
    search = page.locator("#by-numbers").get_by_role("button", name="Search")
    for text, said in (
        ("", "expected 64 numbers a row, got nothing"),
        ("1 2 3", "expected 64 numbers a row, got 3"),
        ("1,,3", "expected 64 numbers a row, but number 2 is “”"),
        ("[1, 2", "expected 64 numbers a row as a JSON list such as [0.1, 2, -3], or a list of"),
        ("[[1], [2]]", "row 1: expected 64 numbers a row, got 1"),
    ):
        page.fill("#vector", text)
        search.click()
        page.locator("#vector-error", has_text=said).wait_for()
    digits = load_digits()
    page.fill("#vector", json.dumps([digits.data[3].tolist()]))
    search.click()
    page.locator(".card").nth(9).wait_for()
    shown = page.locator(".card .second").all_inner_texts()
    assert all(text.endswith(f"digit: {digits.target[3]}") for text in shown)
    assert page.locator("#novel").is_hidden()
    noise = np.random.default_rng(0).integers(0, 17, 64)
    page.fill("#vector", "; ".join(map(str, noise)))
    search.click()
    page.get_by_text("Perhaps out of scope.").wait_for()
    found = digits_page.post("/search", {"rows": [noise.tolist()]})["matches"][0]
    told = re.search(r"(\d+) % of the rows that came were", page.locator("#novel").inner_text())
    assert told is not None
    assert int(told[1]) == int(100 * found["novelty"]) >= 95
    page.locator("#novel").get_by_role("button", name="What does that mean?").click()
    assert page.locator("#word-box").inner_text().startswith("Novelty")


def as_csv(rows: NDArray[np.float32]) -> str:
    """Return rows as a table with a header, ids and texts."""
    head = ",".join(["name", *(f"x{i}" for i in range(rows.shape[1]))])
    lines = [f'"one, two",{",".join(map(str, row))}' for row in rows.tolist()]
    return "\n".join([head, *lines, ""])


SAVED: dict[str, Callable[[Path, NDArray[np.float32]], Any]] = {
    "rows.npy": np.save,
    "half.npy": lambda path, rows: np.save(path, rows.astype(np.float16)),
    "big.npy": lambda path, rows: np.save(path, rows.astype(">f8")),
    "columns.npy": lambda path, rows: np.save(path, np.asfortranarray(rows)),
    "plain.csv": lambda path, rows: np.savetxt(path, rows, delimiter=",", fmt="%.9g"),
    "blanks.txt": lambda path, rows: np.savetxt(path, rows, fmt="%.9g"),
    "header.csv": lambda path, rows: path.write_text(as_csv(rows)),
    "rows.json": lambda path, rows: path.write_text(json.dumps(rows.tolist())),
    "rows.jsonl": lambda path, rows: path.write_text(
        "\n".join(json.dumps(row) for row in rows.tolist())
    ),
}


@pytest.fixture(scope="module")
def bringing(shop: Server, opened_once: Open) -> Any:
    """A page to which one file after the other is brought."""
    page = opened_once(shop)
    page.get_by_role("tab", name="Bring numbers").click()
    return page


@pytest.mark.parametrize("name", SAVED)
def test_a_file_is_searched_row_by_row(
    name: str, tmp_path: Path, shop: Server, bringing: Any
) -> None:
    rows = centres()[[7, 100]].astype(np.float16).astype(np.float32)
    SAVED[name](tmp_path / name, rows)
    bringing.set_input_files("#file", tmp_path / name)
    bringing.get_by_text(f"Nearest to row 1 of 2 in {name}").wait_for()
    found = best(shop, rows)
    assert found[0] != found[1]  # so what the file before has left is no answer
    until(lambda: ranking(bringing) == found[0])
    bringing.get_by_role("button", name="next row").click()
    bringing.get_by_text(f"Nearest to row 2 of 2 in {name}").wait_for()
    until(lambda: ranking(bringing) == found[1])
    assert bringing.get_by_role("button", name="next row").is_disabled()


def test_a_file_of_one_row_needs_no_second_dimension(
    tmp_path: Path, shop: Server, opened: Open
) -> None:
    row = centres()[7]
    np.save(tmp_path / "one.npy", row)
    page = opened(shop)
    page.get_by_role("tab", name="Bring numbers").click()
    page.set_input_files("#file", tmp_path / "one.npy")
    page.get_by_text(f"Nearest to one.npy, a row of {DIM} numbers").wait_for()
    assert ranking(page) == best(shop, row[None])[0]


def test_what_is_not_read_is_said_with_what_is(tmp_path: Path, shop: Server, opened: Open) -> None:
    page = opened(shop)
    page.get_by_role("tab", name="Bring numbers").click()
    np.save(tmp_path / "wrong.npy", centres()[:, :-1])
    np.save(tmp_path / "deep.npy", np.zeros((2, 3, DIM)))
    np.save(tmp_path / "words.npy", np.array(["a", "b"]))
    np.savez(tmp_path / "many.npz", X=centres())
    (tmp_path / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(40))
    (tmp_path / "table.parquet").write_bytes(b"PAR1" + bytes(40))
    (tmp_path / "letter.txt").write_text("Dear reader, this is no row of numbers.")
    (tmp_path / "nothing.csv").write_text("")
    works = "a .npy, .csv or .json file of numbers works"
    for name, said in (
        ("wrong.npy", f"expected {DIM} numbers a row, wrong.npy has {DIM - 1}"),
        (
            "deep.npy",
            f"a table of rows, this array has 3 dimensions (2 {TIMES} 3 {TIMES} {DIM})",
        ),
        ("words.npy", "expected numbers, this array is of type <U1"),
        ("many.npz", f"many.npz is an archive, such as .npz, which is not read here; {works}"),
        (
            "photo.png",
            f"photo.png is a picture, and entries are found by numbers: turn it into {DIM} numbers",
        ),
        ("table.parquet", f"table.parquet is a Parquet file, which is not read here; {works}"),
        ("letter.txt", f"expected {DIM} numbers a row, but number 1 is “Dear”"),
        ("nothing.csv", f"nothing.csv is empty; {works}"),
    ):
        page.set_input_files("#file", tmp_path / name)
        page.locator("#file-error", has_text=said).wait_for()
    assert page.locator(".card").count() == 0


def test_a_file_is_dropped_anywhere_on_the_search(shop: Server, opened: Open) -> None:
    page = opened(shop)
    row = centres()[7]
    page.evaluate(DROP, ["row.csv", ",".join(map(str, row.tolist()))])
    page.get_by_text(f"Nearest to row.csv, a row of {DIM} numbers").wait_for()
    until(lambda: ranking(page) == best(shop, row[None])[0])
    assert page.locator("#by-numbers").is_visible()
