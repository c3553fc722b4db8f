"""Features from public archives, which are read as published; rows and keys are the shared ones.

The archives are tiny ones that the tests make. The networks are stood in for: what they give is
compared with the shared features in docs/bench.md, as their packages are large.
"""

from __future__ import annotations

import gzip
import importlib.util
import io
import json
import sys
import tarfile
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everhash.bench import archives, datasets
from everhash.bench.archives import Batches
from everhash.bench.gist import Quantised, gist
from everhash.errors import DataMissingError, InputError
from tests.conftest import missing
from tests.unit.bench.test_datasets import (
    MEMBERS,
    RECORDS,
    as_tar,
    batches,
    md5,
    some_images,
    write_fashion,
)

SCRIPTS = Path(__file__).resolve().parents[3] / datasets.SCRIPT


def script() -> ModuleType:
    """Load the script, which is no part of the package."""
    for name in ("networks", "published", "make_features"):
        spec = importlib.util.spec_from_file_location(name, SCRIPTS.parent / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return module


@pytest.fixture
def maker() -> Any:
    before = dict(sys.modules)
    yield script()
    for name in ("published", "make_features", "networks"):
        sys.modules.pop(name, None)
        if name in before:
            sys.modules[name] = before[name]


def made(maker: Any, name: str, folder: Path) -> dict[str, Any]:
    with np.load(maker.make(name, folder, folder / "out")) as file:
        return dict(file)


def test_every_set_with_a_file_has_a_maker(maker: Any) -> None:
    assert set(maker.MAKERS) == set(datasets.FILES)


def test_cifar10_gist_is_that_of_the_archives_images(
    maker: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = gzip.compress(as_tar(batches()))
    monkeypatch.setattr(archives, "CIFAR10", Batches("small.tar.gz", md5(data), MEMBERS, RECORDS))
    (tmp_path / "small.tar.gz").write_bytes(data)
    arrays = made(maker, "cifar10-gist", tmp_path)
    images, y = some_images()
    np.testing.assert_array_equal(arrays["q"], Quantised.of(gist(images)).q)
    np.testing.assert_array_equal(arrays["y"], y)
    assert arrays["n_train"] == 5
    with pytest.raises(InputError, match="is there already"):
        maker.make("cifar10-gist", tmp_path, tmp_path / "out")


def test_fashion_mnist_keeps_its_pixels(
    maker: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(2)
    X, y = rng.integers(0, 256, (7, 784), np.uint8), rng.integers(0, 10, 7, np.uint8)
    write_fashion(tmp_path, monkeypatch, X, y)
    arrays = made(maker, "fashion-mnist", tmp_path)
    np.testing.assert_array_equal(arrays["X"], X)
    np.testing.assert_array_equal(arrays["y"], y)
    assert arrays["n_train"] == 6


def test_clinc150_has_its_splits_in_order_and_its_classes_by_name(
    maker: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content: dict[str, list[list[str]]] = {
        "val": [["b?", "weather"]],
        "oos_test": [["c?", "oos"]],
        "train": [["a?", "weather"], ["d?", "alarm"]],
        "test": [["e?", "alarm"]],
        "oos_val": [["f?", "oos"]],
        "oos_train": [["g?", "oos"]],
    }
    (tmp_path / "data_full.json").write_text(json.dumps(content))
    stand_in = SimpleNamespace(embedded=lambda texts: np.ones((len(texts), 3), np.float32))
    monkeypatch.setitem(sys.modules, "networks", stand_in)
    arrays = made(maker, "clinc150", tmp_path)
    assert arrays["text"].tolist() == ["a?", "d?", "b?", "e?", "g?", "f?", "c?"]
    assert arrays["y"].tolist() == [1, 0, 1, 0, -1, -1, -1]
    assert arrays["split"].tolist() == [0, 0, 1, 2, 3, 4, 5]
    assert arrays["classes"].tolist() == ["alarm", "weather"]
    assert arrays["X"].dtype == np.float16
    (tmp_path / "data_full.json").write_text("{}")
    with pytest.raises(InputError, match="no split 'train'"):
        maker.MAKERS["clinc150"](tmp_path)


def pictures(folder: Path, count: int = 22) -> None:
    """Write a tar of small pictures of two classes, one of them among the absent ones."""
    from PIL import Image

    rng = np.random.default_rng(5)
    names = [f"009.bear/009_{n:04d}.jpg" for n in (45, *range(1, count))]
    names += [f"010.beer-mug/010_{n:04d}.jpg" for n in range(1, count)]
    with tarfile.open(folder / "256_ObjectCategories.tar", "w") as tar:
        for name in reversed([*names, "009.bear/RENAME2"]):
            buffer = io.BytesIO()
            Image.fromarray(rng.integers(0, 256, (40, 30, 3), np.uint8)).save(buffer, "JPEG")
            member = tarfile.TarInfo(f"256_ObjectCategories/{name}")
            member.size = buffer.tell()
            buffer.seek(0)
            tar.addfile(member, buffer)


def test_caltech256_is_in_the_order_of_names_with_twenty_queries_a_class(
    maker: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pictures(tmp_path)
    arrays = made(maker, "caltech256-gist", tmp_path)
    assert arrays["q"].shape == (42, 512)
    assert arrays["y"].tolist() == [0] * 21 + [1] * 21
    assert arrays["classes"].tolist() == ["009.bear", "010.beer-mug"]
    assert [arrays["is_test"][arrays["y"] == label].sum() for label in (0, 1)] == [20, 20]
    rng = np.random.default_rng(6)
    stand_in = SimpleNamespace(pooled=lambda many: rng.normal(size=(len(many), 600)))
    monkeypatch.setitem(sys.modules, "networks", stand_in)
    other = made(maker, "caltech256-cnn", tmp_path)
    assert other["q"].shape == (42, 512)
    assert other["names"][0] == "009_0001.jpg"
    np.testing.assert_array_equal(other["is_test"], arrays["is_test"])


def test_the_queries_of_caltech256_are_those_of_the_shared_file(maker: Any) -> None:
    try:
        data = datasets.load("caltech256-gist")
    except DataMissingError as error:
        missing(str(error))
    rows = sys.modules["published"].Pictures(
        [], data.y.astype(np.int16), np.array([]), np.array(data.classes)
    )
    np.testing.assert_array_equal(rows.is_test() == 1, data.is_query)


@given(seed=st.integers(0, 1000), rows=st.integers(30, 60), dims=st.integers(2, 6))
@settings(max_examples=20, deadline=None)
def test_reduced_features_are_the_principal_components(seed: int, rows: int, dims: int) -> None:
    maker: Any = script()
    rng = np.random.default_rng(seed)
    features = (rng.normal(size=(rows, 8)) * np.arange(8, 0, -1)).astype(np.float32)
    fitted = np.arange(rows) < rows - 5
    arrays = maker.reduced(features, fitted, dims)
    X = Quantised(arrays["q"], arrays["lo"], arrays["scale"]).features()
    away = features - features[fitted].mean(axis=0)
    _, _, directions = np.linalg.svd(away[fitted], full_matrices=False)
    expected = away @ directions[:dims].T
    turned = expected * np.sign((expected * X).sum(axis=0))
    assert np.abs(X - turned).max() <= arrays["scale"].max() * 1.5


def test_a_missing_archive_names_its_public_source(maker: Any, tmp_path: Path) -> None:
    for name in maker.MAKERS:
        with pytest.raises(InputError) as caught:
            maker.make(name, tmp_path, tmp_path / "out")
        assert str(tmp_path) in str(caught.value)
    with pytest.raises(InputError, match=r"get CLINC150 \(data_full.json\)"):
        maker.make("clinc150", tmp_path, tmp_path / "out")
