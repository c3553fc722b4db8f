"""What every deep method promises."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from everhash.errors import (
    EverhashError,
    FeatureTypeError,
    InputError,
    LabelError,
    NotFiniteError,
    NotFittedError,
    NotOnlineError,
    OptionError,
    UnknownNameError,
)
from everhash.peers import deep
from everhash.peers.deep.deep_method import DeepMethod
from tests.unit.peers.deep.pictures import MOST, NAMES, SMALL, fitted, need_torch, pictures


@pytest.mark.parametrize("name", NAMES)
def test_images_of_a_label_are_nearer_than_those_of_others(
    name: str, learned: dict[str, DeepMethod]
) -> None:
    new = pictures(30, seed=1)
    signs = learned[name].transform(new.images).astype(np.int64)
    distances = (signs.shape[1] - signs @ signs.T) / 2
    same = np.array(new.y)[:, None] == np.array(new.y)
    assert distances[same].mean() + 1 < distances[~same].mean()
    assert learned[name].labels_ == ["red", "green", "blue"]


@pytest.mark.parametrize("name", MOST)
def test_the_same_seed_gives_the_same_bits_and_another_seed_does_not(
    name: str, learned: dict[str, DeepMethod]
) -> None:
    new = pictures(30, seed=1).images
    margins = learned[name].margins(new)
    np.testing.assert_array_equal(margins, fitted(name).margins(new))
    assert not np.array_equal(margins, fitted(name, seed=1, epochs=1).margins(new))


@pytest.mark.parametrize("name", NAMES)
def test_bits_are_signs_of_margins_and_do_not_depend_on_their_neighbours(
    name: str, learned: dict[str, DeepMethod]
) -> None:
    method, new = learned[name], pictures(70, seed=1).images
    margins, signs = method.margins(new), method.transform(new)
    assert margins.dtype == np.float32
    assert signs.dtype == np.int8
    np.testing.assert_array_equal(signs, np.where(margins > 0, 1, -1))
    np.testing.assert_array_equal(method.encode(new).unpack(), signs)
    one_by_one = np.concatenate([method.margins(image[None]) for image in new[:9]])
    np.testing.assert_array_equal(one_by_one, margins[:9])


def test_bytes_and_shares_of_255_are_the_same_images(learned: dict[str, DeepMethod]) -> None:
    new, method = pictures(9, seed=1).images, learned["latent"]
    shares = new.astype(np.float32) / 255
    np.testing.assert_array_equal(method.margins(new), method.margins(shares))


def test_training_leaves_the_settings_and_chances_of_pytorch_alone() -> None:
    torch = need_torch()
    before = torch.get_num_threads(), torch.get_rng_state()
    fitted("latent", epochs=1)
    assert torch.get_num_threads() == before[0]
    assert not torch.are_deterministic_algorithms_enabled()
    assert torch.equal(torch.get_rng_state(), before[1])


def test_fitting_again_forgets_and_is_a_new_version() -> None:
    method = fitted("latent", epochs=1)
    codes = method.encode(pictures().images)
    method.fit(*pictures())
    again = method.encode(pictures().images)
    assert (codes.version, again.version) == (1, 2)
    np.testing.assert_array_equal(codes.words, again.words)


def test_images_without_a_label_teach_nothing() -> None:
    images, y = pictures()
    labels: list[str | None] = list(y)
    more = np.concatenate([images, np.zeros_like(images[:7])])
    need_torch()
    method = deep.get("latent", bits=8, **{**SMALL, "epochs": 1}).fit(more, [*labels, *[None] * 7])
    bits = fitted("latent", epochs=1).margins(images)
    np.testing.assert_array_equal(method.margins(images), bits)


def test_progress_rises_to_the_whole() -> None:
    need_torch()
    shares: list[float] = []
    method = deep.get("ninh", bits=8, **{**SMALL, "epochs": 2})
    method.fit(*pictures(), progress=shares.append)
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0, 1)


GOOD = np.zeros((4, 16, 16, 3), np.uint8)
BAD: list[tuple[Any, type[EverhashError], str]] = [
    (GOOD[0], InputError, r"\(n, height, width, 3\).*got shape \(16, 16, 3\)"),
    (GOOD.transpose(0, 3, 1, 2), InputError, "colours come last"),
    (GOOD[:0], InputError, "got none"),
    (GOOD[:, :12], InputError, "multiples of 8 from 16 to 512, got 12 x 16"),
    (np.zeros((1, 16, 1024, 3), np.uint8), InputError, "got 16 x 1024"),
    (GOOD.astype(np.int64), FeatureTypeError, "got int64.*astype"),
    ([["a"]], FeatureTypeError, "uint8"),
    ([GOOD[0], GOOD[0, :8]], InputError, "several shapes"),
    (GOOD + np.float32(2), InputError, "floats from 2 to 2.*divide them by 255"),
    (np.where(np.arange(4)[:, None, None, None] == 2, np.nan, GOOD), NotFiniteError, "row 2"),
]


@pytest.mark.parametrize(("images", "error", "says"), BAD)
def test_images_that_cannot_be_used_say_why(
    images: Any, error: type[EverhashError], says: str
) -> None:
    need_torch()
    with pytest.raises(error, match=says):
        deep.get("latent").fit(images, ["a"] * len(images))


def test_images_of_another_size_than_the_learned_are_refused(
    learned: dict[str, DeepMethod],
) -> None:
    with pytest.raises(
        InputError, match="expected images of 16 x 16, as were learned, got 24 x 24"
    ):
        learned["latent"].encode(np.zeros((1, 24, 24, 3), np.uint8))


@pytest.mark.parametrize(
    ("y", "error", "says"),
    [
        (["a", "b"], LabelError, "4 rows but 2 labels"),
        (["a"] * 4, LabelError, "needs at least 2, got 1"),
        (None, LabelError, "needs at least 2, got 0"),
    ],
)
def test_labels_that_cannot_be_used_say_why(y: Any, error: type[EverhashError], says: str) -> None:
    need_torch()
    with pytest.raises(error, match=says):
        deep.get("ninh").fit(GOOD, y)


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("latent", {"bits": 0}, "bits"),
        ("latent", {"epochs": 2.5}, "epochs"),
        ("latent", {"step": -1}, "step"),
        ("latent", {"held_out": 1}, "held_out"),
        ("ninh", {"epsilon": 0.7}, "epsilon"),
        ("cnnh", {"rounds": 0}, "rounds"),
    ],
)
def test_options_are_checked_when_learning_begins(
    name: str, options: dict[str, Any], says: str
) -> None:
    need_torch()
    method = deep.get(name, **options)
    with pytest.raises(OptionError, match=says):
        method.fit(*pictures())
    with pytest.raises(NotFittedError):
        method.encode(GOOD)


def test_names_and_options_that_are_not_there_are_refused() -> None:
    with pytest.raises(
        UnknownNameError, match=r"no deep method 'dpsh'.*cnnh, cnnh\+, ninh, latent"
    ):
        deep.get("dpsh")
    with pytest.raises(OptionError, match="latent has no option 'rounds'"):
        deep.get("latent", rounds=3)
    with pytest.raises(OptionError, match="cnnh has no option 'classify'"):
        deep.get("cnnh", classify=True)


@pytest.mark.parametrize("name", NAMES)
def test_methods_are_described_without_being_fitted(name: str) -> None:
    about = deep.describe(name)
    assert about.name == name
    assert 2014 <= about.year <= 2015
    assert not about.online
    assert not about.codewords


def test_a_stream_is_refused() -> None:
    need_torch()
    with pytest.raises(NotOnlineError, match="latent is a batch method"):
        deep.get("latent").partial_fit(GOOD, ["a"] * 4)


def test_nothing_loads_pytorch_before_it_is_needed() -> None:
    code = (
        "import sys, everhash; from everhash import peers; from everhash.peers import deep; "
        "peers.names(); [deep.describe(name) for name in deep.names()]; "
        "print('torch' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"


def test_without_pytorch_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    says = r"a deep method needs: pip install 'everhash\[deep\]'"
    with pytest.raises(OptionError, match=says):
        deep.get("latent")
    with pytest.raises(OptionError, match=says):
        deep.load("a.safetensors")
