"""`everhash advise`."""

from __future__ import annotations

import json
import re

import pytest

from everhash import advise
from tests.unit.cli.commands import cells, output


@pytest.mark.parametrize(
    ("arguments", "labels", "bits", "rho"),
    [
        (["397"], 397, 32, None),
        (["397", "--bits", "32"], 397, 32, None),
        (["100", "-k", "4", "-r", "2"], 100, 4, 2),
        (["3", "--labels-per-cycle", "50", "--bits", "64"], 3, 64, 50),
    ],
)
def test_advise_says_what_the_library_says(
    arguments: list[str], labels: int, bits: int, rho: int | None
) -> None:
    advice = advise(labels, bits, rho)
    as_json = json.loads(output("advise", *arguments, "--json"))
    assert as_json == {**advice.as_dict(), "warnings": list(advice.warnings)}

    printed = output("advise", *arguments)
    assert f"{labels} labels at {bits} bits a cycle" in printed
    table = {row[0]: row[1] for row in cells(printed)}
    assert table == {
        "labels a cycle (rho)": f"{advice.labels_per_cycle}",
        "cycles": f"{advice.cycles}",
        "width": f"{advice.width} bits",
        "labelled entry": "0 bytes",
        "unlabelled entry, home cycle": f"{advice.entry_bytes} bytes",
        "unlabelled entry, all cycles": f"{advice.full_entry_bytes} bytes",
        "codewords": f"{advice.codeword_bytes:,} bytes",
        "mapping": f"{advice.functions_bytes_per_feature:,} bytes",
        "all bipartitions differ": f"{advice.unique_paper:.4f}",
        "counting complements": f"{advice.unique:.4f}",
        "stale bits a learned row": f"{advice.stale_bits_home:.2f}",
        "": f"{advice.stale_bits_full:.0f}",
    }
    assert re.findall("warning: (.*)", printed) == list(advice.warnings)
