"""Numbers and values formatted for people."""

from __future__ import annotations

import json
from typing import Any

import typer
from rich.cells import cell_len, set_cell_size


def counted(n: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun.

    >>> counted(1, "entry", "entries"), counted(1200, "row")
    ('1 entry', '1,200 rows')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def short(n: float) -> str:
    """Return a number in full below a million, else in M, G or T.

    >>> short(1200), short(1_234_567), short(38_400_000_000)
    ('1,200', '1.2 M', '38.4 G')
    """
    for power, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if n >= power:
            return f"{n / power:.1f} {letter}"
    return f"{n:,}"


def size(n: float) -> str:
    """Return a number of bytes with a unit.

    >>> size(812), size(163_840)
    ('812 bytes', '163.8 kB')
    """
    for power, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if n >= power:
            return f"{n / power:.1f} {unit}"
    return f"{n:,.0f} bytes"


def percent(part: int, whole: int) -> str:
    """Return a part as a percentage.

    >>> percent(31, 1000)
    '3.1 %'
    """
    return f"{100 * part / whole:.1f} %" if whole else "0.0 %"


def printable(value: Any) -> str:
    r"""Return a value on one line, with characters that could control a terminal escaped.

    >>> printable("caf\u00e9"), printable("two\nlines"), printable(7)
    ('café', 'two\\nlines', '7')
    """
    text = str(value)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def payload_line(payload: Any, room: int = 60) -> str:
    """Return a payload as one line of at most `room` cells, as the service's page shows it.

    >>> payload_line({"price": 3, "title": "winter boots"}), payload_line(["a", 1])
    ('winter boots', 'a, 1')
    >>> payload_line({"price": 3, "ok": True})
    'price: 3 · ok: true'
    """
    line = printable(" ".join(_text(payload).split()))
    return line if cell_len(line) <= room else set_cell_size(line, room - 1) + "…"


def _text(payload: Any) -> str:
    if isinstance(payload, list):
        return ", ".join(map(_text, payload))
    if not isinstance(payload, dict):
        return payload if isinstance(payload, str) else json.dumps(payload)
    titles = (payload.get(name) for name in ("text", "title", "name"))
    title = next((title for title in titles if isinstance(title, str)), None)
    if title is not None:
        return title
    rest = ((name, value) for name, value in payload.items() if name != "vector")
    plain = ((n, v if isinstance(v, str) else json.dumps(v, ensure_ascii=False)) for n, v in rest)
    return " · ".join(f"{name}: {value}" for name, value in plain)


def print_columns(heading: list[str], rows: list[list[str]], right: int = 0) -> None:
    """Print cells in columns, the first `right` of them aligned right.

    This is much faster than a Rich table, and easy to cut and grep.
    """
    widths = [max(map(cell_len, column)) for column in zip(heading, *rows, strict=True)]
    typer.secho(_line(heading, widths, right), bold=True)
    for row in rows:
        typer.echo(_line(row, widths, right))


def _line(cells: list[str], widths: list[int], right: int) -> str:
    gaps = [" " * (width - cell_len(cell)) for cell, width in zip(cells, widths, strict=True)]
    pairs = enumerate(zip(gaps, cells, strict=True))
    return "  ".join(gap + cell if i < right else cell + gap for i, (gap, cell) in pairs).rstrip()


def print_json(value: Any) -> None:
    """Print one JSON value on one line."""
    typer.echo(json.dumps(value, default=str))
