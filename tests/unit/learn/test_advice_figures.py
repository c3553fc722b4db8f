"""Every figure that advice gives is the one on the page of its measurement."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from everhash.learn.advice_rules import FLAT_ROWS_A_MILLISECOND, choose, consider

DOCS = Path(__file__).resolve().parents[3] / "docs"
TOLD = "\n".join(
    [
        *(choice.why for dim in (384, 16_384) for choice in choose(150, 500, dim, None, None)),
        *consider(10, 20),
    ]
)


def cells(page: str, row: str, *headings: str) -> list[str]:
    """Return the figures in a row of the table under headings, as advice writes them."""
    text = (DOCS / page).read_text()
    for heading in headings:
        text = text[text.index(f"# {heading}\n") :]
    found = re.search(rf"^\| {re.escape(row)} +\|(.*)\|$", text, re.MULTILINE)
    assert found, (page, row)
    return [re.sub(r"\b0\.", ".", cell.strip(" *")) for cell in found[1].split("|")]


def codeword(page: str, row: str, *headings: str) -> list[str]:
    return cells(page, row, *headings, "By codeword")[4:8]


CLINC = "clinc150, 40 rows a label"
GIST = "cifar10-gist, 200 rows a label"


def test_bits_are_those_of_table_1() -> None:
    labelled = codeword("results/table1.md", "everhash", GIST)
    unlabelled = cells("results/table1.md", "everhash", GIST, "By mapping")[4:8]
    assert len(set(labelled)) == 1
    assert f"labelled entries score {labelled[0]} mAP" in TOLD
    assert f"{', '.join(unlabelled[:3])} and {unlabelled[3]}" in TOLD


def test_learners_are_those_of_table_2() -> None:
    exact = codeword("results/table2.md", "everhash", CLINC)[2]
    steps = codeword("results/table2.md", "everhash-sgd", CLINC)[2]
    assert f"scores {exact} mAP where gradient steps score {steps} (CLINC150)" in TOLD
    assert f"steps score {steps} mAP where it scores {exact} (CLINC150)" in TOLD


@pytest.mark.parametrize(
    ("data", "name"),
    [("clinc150", "CLINC150"), ("caltech256-cnn", "Caltech-256"), ("cifar10-cnn", "CIFAR-10 CNN")],
)
def test_what_logistic_regression_finds_is_on_its_page(data: str, name: str) -> None:
    default, _, _, logistic, _ = cells("results/found.md", data, "Labels learned")
    told = " ".join(TOLD.split())
    assert re.search(
        rf"{re.escape(logistic)}( of first answers)? against "
        rf"{re.escape(default.partition(' ')[0])} \({name}\)",
        told,
    )


def test_labels_nobody_has_taught_are_on_their_page() -> None:
    found = {
        row: cells("results/unseen.md", row, "Unseen labels")[10] for row in ("cosine", "everhash")
    }
    assert f"({found['cosine']} mAP against {found['everhash']}, CLINC150)" in TOLD


def test_likeness_codes_keep_what_their_page_says() -> None:
    data = ("digits", "cifar10-cnn", "caltech256-cnn", "clinc150")
    shares = sorted(cells("results/found.md", row, "Codes alone")[5] for row in data)
    assert f"the codes keep {shares[0]} to {shares[-1]} of the mAP of cosine" in TOLD


def test_few_rows_are_on_their_page() -> None:
    text = (DOCS / "results/found.md").read_text()
    text = text[text.index("# Few rows of each label have it\n") :]

    def both(data: str) -> str:
        """Return the first answers of cosine and of the default with two rows a label."""
        found = re.search(rf"^\| {data} +\| +2 \|(.*)\|$", text, re.MULTILINE)
        assert found
        default, _, cosine = (cell.split(" / ")[0].strip() for cell in found[1].split("|")[:3])
        return f"{cosine.lstrip('0')} against {default.lstrip('0')}"

    told = " ".join(TOLD.split())
    assert f"{both('digits')} with 2 rows of each of 10 labels (digits)" in told
    assert f"{both('fashion-mnist')} (Fashion-MNIST)" in told
    assert f"of 150 labels it is {both('clinc150')} (CLINC150)" in told


def test_costs_of_a_row_and_of_a_scan_are_on_their_pages() -> None:
    costs = (DOCS / "results.md").read_text()
    plain, lifted = (
        float(re.findall(rf"^ +384 +{n} +100,000 \| +([0-9.]+)", costs, re.MULTILINE)[0])
        for n in (0, 1000)
    )
    assert f"takes {lifted:.0f} instead of {plain:.1f} µs" in TOLD
    a_second = cells("results/find_speed.md", "IndexFlatIP", "200,000 entries")[3]
    scanned = float(a_second) * 200_000 / 1000
    assert pytest.approx(scanned, rel=0.05) == FLAT_ROWS_A_MILLISECOND
