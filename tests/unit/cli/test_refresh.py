"""`everhash refresh`."""

from __future__ import annotations

from pathlib import Path

import everhash
from tests.unit.cli.commands import COLUMNS, DIM, Write, answers, output, rows, stats


def test_refresh_says_what_it_would_do_and_then_does_it(shop: Path) -> None:
    with everhash.open(shop, auto_refresh=False) as collection:
        collection.ingest(*rows(50, seed=5), [f"more-{i}" for i in range(50)])
    before = stats(shop)
    assert before["stale_bits"] > 0
    (would,) = answers("refresh", shop, "--dry-run")
    said = output("refresh", shop, "--dry-run")
    assert stats(shop) == before
    (did,) = answers("refresh", shop)
    assert would["bits"] == did["bits"] == 320
    assert would["dry_run"]
    assert not did["dry_run"]
    assert would["bits_flipped"] == did["bits_flipped"]
    percent = f"{100 * would['bits_flipped'] / 320:.1f} %"
    assert said.startswith(
        f"would rewrite {would['bits_flipped']} of 320 bits ({percent}) of 10 entries"
    )
    after = stats(shop)
    assert after["stale_bits"] == 0
    assert after["last_refresh"]["bits_flipped"] == did["bits_flipped"]
    assert output("refresh", shop).startswith("rewrote 0 of 320 bits (0.0 %)")


def test_ingest_refreshes_by_itself(shop: Path, write: Write) -> None:
    output("ingest", shop, write("b.parquet", 50, first=100, seed=5), *COLUMNS)
    after = stats(shop)
    assert after["stale_bits"] == 0
    assert after["last_refresh"]["entries"] == 10
    assert not after["refreshing"]


def test_refresh_says_why_there_is_nothing_to_do(tmp_path: Path, write: Write) -> None:
    path = tmp_path / "bare.ever"
    output("create", path, "--dim", DIM, "--keep-features", "none")
    assert output("refresh", path) == "nothing to refresh: no entry is without a label\n"
    output("ingest", path, write(n=2, kind=[None, "a"]), *COLUMNS)
    assert "keeps no features" in output("refresh", path)
