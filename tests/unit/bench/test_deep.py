"""Deep methods beside others: one split for images and features, and a page about both."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from everhash.bench import datasets, deep, images, report
from everhash.bench.datasets import Dataset
from everhash.bench.experiment import Experiment, load, named
from everhash.bench.images import ImageSet
from everhash.bench.kinds import NO_DATA
from everhash.bench.task import Row, Task
from everhash.errors import DataMissingError, InputError, OptionError
from tests.unit.peers.deep.pictures import SMALL, need_torch, pictures

OPTIONS = tuple(sorted(SMALL.items()))


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> ImageSet:
    """Put 30 training images and 60 test images in place of CIFAR-10's."""
    made = pictures(90).images
    there = ImageSet(made, np.arange(90) % 3, np.arange(90)[::-1].copy(), 30)
    monkeypatch.setattr(images, "load", lambda: there)
    return there


def task(dataset: str = images.NAME, method: str = "latent", **more: Any) -> Task:
    return Task("deep", dataset, method, 8, rows_a_label=8, queries=30, **more)


def test_queries_are_test_images_and_all_others_are_entries(few: ImageSet) -> None:
    split = deep.split_of(task(), few)
    assert (split.stream < 30).all()
    assert (split.queries >= 30).all()
    assert np.bincount(few.y[split.stream]).tolist() == [8, 8, 8]
    assert np.bincount(few.y[split.queries]).tolist() == [10, 10, 10]
    rest = np.setdiff1d(np.arange(30, 90), split.queries)
    assert sorted(split.entries) == sorted([*split.stream, *rest])
    other = deep.split_of(task(seed=1), few)
    assert sorted(other.queries) != sorted(split.queries)


@pytest.mark.usefixtures("few")
def test_a_deep_method_is_measured_on_images() -> None:
    need_torch()
    figures = deep.measure(task(options=OPTIONS), NO_DATA)
    assert (figures["stream"], figures["ranked"], figures["asked"]) == (24, 54, 30)
    assert figures["mapping"]["hamming"].average > 0.5
    assert figures["bytes"] == {"mapping": 1}
    assert "codeword" not in figures


@pytest.mark.parametrize("method", ["everhash", "onehot", "logistic", "cosine"])
def test_others_are_measured_on_the_features_of_the_same_images(
    method: str, few: ImageSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    colours = few.images[few.row].mean(axis=(1, 2)).astype(np.float32)
    whole = Dataset("cifar10-gist", colours, few.y[few.row], np.zeros(90, np.bool_))
    monkeypatch.setattr(datasets, "load", lambda name: whole)
    deep.features_of.cache_clear()
    features = deep.features_of("cifar10-gist")
    deep.features_of.cache_clear()
    np.testing.assert_array_equal(features.y, few.y)
    np.testing.assert_array_equal(features.X, few.images.mean(axis=(1, 2)).astype(np.float32))
    figures = deep.measure(task("cifar10-gist", method), NO_DATA)
    deep.features_of.cache_clear()
    assert (figures["stream"], figures["ranked"], figures["asked"]) == (24, 54, 30)
    assert figures["mapping"]["asymmetric"].average > 0.8


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    "wrong",
    [task("digits"), task(protocol="noise"), task(method="everhash")],
    ids=["data", "protocol", "method"],
)
def test_what_cannot_be_measured_is_refused(wrong: Task) -> None:
    with pytest.raises(OptionError, match="expected"):
        deep.measure(wrong, NO_DATA)


def test_images_that_are_missing_or_damaged_say_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "folders", lambda: [tmp_path])
    images.load.cache_clear()
    with pytest.raises(DataMissingError, match=f"{images.FILE}.*EVERHASH_DATA"):
        images.load()
    (tmp_path / images.FILE).write_bytes(b"something else")
    with pytest.raises(InputError, match="is damaged"):
        images.load()


def test_deep_methods_are_named_one_by_one_and_have_bits_and_few_seeds() -> None:
    assert named("latent,cnnh+", "here") == ["latent", "cnnh+"]
    assert "latent" not in named("all", "here")
    tasks = load("deep5k").tasks()
    seeds = {name: sum(t.method == name for t in tasks) for name in ("latent", "everhash")}
    assert seeds == {"latent": 1, "everhash": 10}
    assert {t.bits for t in tasks if t.method in ("latent", "everhash")} == {48}


def row(dataset: str, method: str, score: float, seed: int = 0, bits: int = 48) -> Row:
    whole = Task("deep", dataset, method, bits, seed, 500).as_row()
    both = {name: [score, score, score, score / 2, score / 4] for name in ("hamming", "asymmetric")}
    figures: Row = {"stream": 5000, "ranked": 14000, "asked": 1000, "seconds": 3.0, "mapping": both}
    if method in ("everhash", "paper"):
        figures["codeword"] = both
    return {**whole, **figures, "machine": "a machine", "jobs": 1, "version": "0"}


def test_the_page_has_one_table_and_says_who_beats_everhash_on_which_features() -> None:
    rows = [
        row("cifar10-images", "latent", 0.6),
        row("cifar10-images", "ninh", 0.5),
        *(row("cifar10-gist", "everhash", 0.4, seed) for seed in range(3)),
        row("cifar10-cnn", "everhash", 0.8),
        row("cifar10-cnn", "paper", 0.7),
        row("cifar10-cnn", "cosine", 0.3, bits=0),
    ]
    text = report.text(Experiment("mine", "Mine", "", ()), rows)
    told = re.sub(r"\s+", " ", text)
    lines = [[cell.strip(" *") for cell in found.split("|")[1:-1]] for found in text.splitlines()]
    latent = next(cells for cells in lines if cells[:2] == ["latent", "images"])
    first, ten, seconds, published = latent[6:]
    assert latent[2:6] == ["0.600", "0.600", "-", "-"]
    assert (first, ten, seconds, published) == ("0.300", "0.150", "3.00", "0.890")
    assert ["paper", "CNN features"] in [cells[:2] for cells in lines]
    assert "0.803 published, 0.700 here" in told
    gist, cnn = told.split("everhash on GIST beside")[1].split("everhash on CNN features beside")
    assert "`latent`" in gist
    assert "`ninh`" in gist
    assert "None of" in cnn
