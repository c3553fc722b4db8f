"""GIST: the published program's features, and what they must not depend on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from everhash.bench import datasets
from everhash.bench.gist import AT_ONCE, DIM, Quantised, gist
from everhash.errors import InputError
from tests.conftest import missing

Images = NDArray[np.uint8]
CLOSE = 1e-5
"""Features reach from 0 to about .4."""


def noise(n: int, seed: int = 0, top: int = 256) -> Images:
    return np.random.default_rng(seed).integers(0, top, (n, 32, 32, 3), np.uint8)


def grid(features: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return features by image, scale, orientation, row and column of the grid."""
    return features.reshape(-1, 4, 8, 4, 4)


def shared(file: str) -> Path:
    found = [folder / file for folder in datasets.folders() if (folder / file).is_file()]
    return found[0] if found else missing(f"{file} is not on this machine")


def test_features_equal_the_shared_ones_to_within_their_rounding() -> None:
    with np.load(shared("cifar10_images_15k_u8.npz")) as file:
        some = np.arange(0, 15_000, 250)
        images, rows = file["images"][some], file["row"][some]
    with np.load(shared("cifar10_gist512_u8.npz")) as file:
        q, lo, scale = file["q"][rows], file["lo"], file["scale"]
    steps = (gist(images) - lo) / scale
    cut_off = q == 255
    assert cut_off.mean() < 0.002
    assert np.abs(steps - q)[~cut_off].max() < 0.51
    assert (steps[cut_off] > 254.49).all()


def test_an_image_of_one_grey_has_no_features() -> None:
    assert not gist(np.full((2, 32, 32, 3), 77, np.uint8)).any()


@given(seed=st.integers(0, 2**32 - 1), factor=st.integers(1, 3), added=st.integers(0, 60))
@settings(max_examples=10)
def test_brightness_and_contrast_do_not_matter(seed: int, factor: int, added: int) -> None:
    images = noise(2, seed, top=64)
    other = (images * factor + added).astype(np.uint8)
    np.testing.assert_allclose(gist(other), gist(images), atol=CLOSE)


def test_only_the_mean_of_the_channels_matters() -> None:
    images = noise(3)
    np.testing.assert_allclose(gist(images[..., ::-1]), gist(images), atol=CLOSE)
    np.testing.assert_allclose(gist(images.mean(axis=3)), gist(images), atol=CLOSE)


def test_an_image_has_the_features_it_has_alone() -> None:
    images = noise(AT_ONCE + 2)
    alone = np.concatenate([gist(images[i : i + 1]) for i in (0, 5, AT_ONCE, AT_ONCE + 1)])
    together = gist(images)[[0, 5, AT_ONCE, AT_ONCE + 1]]
    np.testing.assert_allclose(together, alone, atol=CLOSE)


def test_a_mirrored_image_has_mirrored_features() -> None:
    images = noise(4)
    mirrored = np.flip(grid(gist(images[:, :, ::-1])), axis=4)
    # the frequency just at the edge of the spectrum has no mirror image
    np.testing.assert_allclose(
        mirrored[:, :, -np.arange(8) % 8], grid(gist(images)), rtol=0.02, atol=2e-3
    )


@pytest.mark.parametrize("scale", range(3))  # of the coarsest, the prefilter leaves too little
@pytest.mark.parametrize("orientation", range(8))
def test_a_grating_is_answered_by_the_filter_of_its_scale_and_orientation(
    scale: int, orientation: int
) -> None:
    y, x = np.mgrid[:32, :32]
    angle = -np.pi * orientation / 8
    phase = 2 * np.pi * 0.3 / 1.85**scale * (x * np.cos(angle) + y * np.sin(angle))
    image = np.rint(127 + 100 * np.sin(phase)).astype(np.uint8)
    answers = grid(gist(image[None]))[0].mean(axis=(2, 3))
    assert answers[scale].argmax() == orientation
    assert answers[:, orientation].argmax() == scale


@pytest.mark.parametrize("shape", [(32, 32), (2, 28, 28), (2, 32, 32, 4), (2, 3, 32, 32)])
def test_images_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="expected images of shape"):
        gist(np.zeros(shape, np.uint8))


def test_progress_tells_how_many_rows_are_done() -> None:
    told: list[tuple[int, int]] = []
    n = AT_ONCE + 1
    gist(np.zeros((n, 32, 32), np.uint8), progress=lambda done, of: told.append((done, of)))
    assert told == [(AT_ONCE, n), (n, n)]
    assert gist(np.zeros((0, 32, 32), np.uint8)).shape == (0, DIM)


def test_rounding_moves_nothing_by_more_than_half_a_step() -> None:
    features = np.random.default_rng(0).gamma(2, 1, (500, DIM)).astype(np.float32)
    features[:, 3] = 0.25
    rounded = Quantised.of(features)
    kept = rounded.q < 255
    assert kept.mean() > 0.99
    moved = np.abs(rounded.features() - features) / rounded.scale
    assert moved[kept].max() < 0.501
    assert (rounded.features()[:, 3] == features[:, 3]).all()


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path, y = tmp_path / "made.npz", np.array([3, 1, 2], np.uint8)
    rounded = Quantised.of(gist(noise(3)))
    rounded.write(path, y)
    read, labels = Quantised.read(path, 3)
    np.testing.assert_array_equal(read.features(), rounded.features())
    np.testing.assert_array_equal(labels, y)
    assert [each.name for each in tmp_path.iterdir()] == ["made.npz"]
    with pytest.raises(InputError, match=r"expected uint8 of shape \(4, 512\) as 'q'"):
        Quantised.read(path, 4)


@given(at=st.floats(0, 1, exclude_max=True), flip=st.integers(1, 255))
@settings(max_examples=100)
def test_a_damaged_file_gives_an_error_or_what_was_written(
    tmp_path: Path, at: float, flip: int
) -> None:
    path = tmp_path / "made.npz"
    rounded = Quantised.of(np.random.default_rng(0).random((3, DIM), np.float32))
    rounded.write(path, np.zeros(3, np.uint8))
    data = bytearray(path.read_bytes())
    data[int(at * len(data))] ^= flip
    path.write_bytes(data)
    message = ""
    try:
        found = Quantised.read(path, 3)[0].features()
    except InputError as error:
        found, message = rounded.features(), str(error)
    assert not message or message.startswith(str(path))
    np.testing.assert_array_equal(found, rounded.features())
