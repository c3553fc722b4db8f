"""GIST descriptors of small images: 512 numbers that describe a scene.

Oliva and Torralba, Modeling the Shape of the Scene, IJCV 42(3), 2001. The constants are those of
the authors' program LMgist, which most published figures on CIFAR-10 GIST are based on:

    grey        mean of the channels, stretched to 0..255 in each image
    prefilter   log, less what varies slowly, divided by the local contrast
    filters     4 scales x 8 orientations, Gabor transfer functions in the frequency domain
    blocks      mean magnitude of each response in a grid of 4 x 4

The numbers of an image are ordered by filter, from the finest scale to the coarsest, and within a
filter by row of its grid.

One step differs. A response is needed only in the middle ninth of its padded image, and most of its
spectrum is zero; so two matrix products replace the inverse Fourier transform, over the box of
frequencies that the filter passes. That is four times as fast.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, NamedTuple
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from everhash.errors import InputError
from everhash.sources.columns import explained
from everhash.sources.npy_header import NpyHeader

Progress = Callable[[int, int], None]
"""Called with the number of rows done and of all rows."""

SIDE = 32
"""Height and width of an image in pixels."""
SCALES, ORIENTATIONS, BLOCKS = 4, 8, 4
DIM = SCALES * ORIENTATIONS * BLOCKS**2
CUTOFF = 4.0
"""Cycles an image at which the prefilter removes half; it removes more of lower frequencies."""
BORDER, WIDE_BORDER = 5, 32
"""Pixels of mirrored border, before the prefilter and before the filters."""
LEAST_CONTRAST = 0.2
FINEST, COARSER = 0.3, 1.85
"""Cycles a pixel of the finest scale, and the factor between one scale and the next."""
NEGLIGIBLE = 1e-7
"""Frequencies that a filter passes less of are left out; float32 cannot represent them."""
AT_ONCE = 64
REACHED = 0.9995
"""The quantile of a feature that the largest of 256 steps stands for."""

Images = NDArray[np.float64]


def gist(images: NDArray[np.generic], *, progress: Progress | None = None) -> NDArray[np.float32]:
    """Return (n, 512) features of (n, 32, 32, 3) or (n, 32, 32) images.

    The features of an image of one colour are zeros.

    >>> gist(np.zeros((2, 32, 32, 3), np.uint8)).shape
    (2, 512)
    """
    if images.shape[1:3] != (SIDE, SIDE) or images.shape[3:] not in {(), (3,)}:
        raise InputError(
            f"expected images of shape (n, 32, 32, 3) or (n, 32, 32), got {images.shape}",
            hint="resize the images first",
        )
    features = np.empty((len(images), DIM), np.float32)
    for start in range(0, len(images), AT_ONCE):
        some = slice(start, start + AT_ONCE)
        features[some] = _responses(_prefilter(_stretched_grey(images[some])))
        if progress is not None:
            progress(min(some.stop, len(images)), len(images))
    return features


class Quantised(NamedTuple):
    """Features as bytes, with one step size a dimension: X = q * scale + lo."""

    q: NDArray[np.uint8]
    lo: NDArray[np.float32]
    scale: NDArray[np.float32]

    @classmethod
    def of(cls, features: NDArray[np.float32]) -> Quantised:
        """Round to 256 steps from the least value to nearly the largest; clip higher values."""
        lo = features.min(axis=0)
        scale = (np.quantile(features, REACHED, axis=0) - lo).astype(np.float32) / 255
        scale[scale == 0] = 1
        return cls(np.rint((features - lo) / scale).clip(0, 255).astype(np.uint8), lo, scale)

    def features(self) -> NDArray[np.float32]:
        """Return the features."""
        return self.q * self.scale + self.lo

    def write(self, path: Path, y: NDArray[np.uint8]) -> None:
        """Write features and labels to a .npz file, atomically."""
        with NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as part:
            try:
                np.savez_compressed(part, q=self.q, lo=self.lo, scale=self.scale, y=y)
                part.flush()
                Path(part.name).replace(path)
            except BaseException:
                Path(part.name).unlink()
                raise

    @classmethod
    def read(cls, path: Path, rows: int) -> tuple[Quantised, NDArray[np.uint8]]:
        """Read features and labels that `write` wrote; shapes and types are checked first."""
        expected: dict[str, tuple[tuple[int, ...], type]] = {
            "q": ((rows, DIM), np.uint8),
            "lo": ((DIM,), np.float32),
            "scale": ((DIM,), np.float32),
            "y": ((rows,), np.uint8),
        }
        broken = (BadZipFile, zlib.error, NotImplementedError, RuntimeError)
        with explained(str(path), "npz", *broken), ZipFile(path) as archive:
            q, lo, scale, y = (_array(archive, name, *of) for name, of in expected.items())
        return cls(q, lo, scale), y


def _array(archive: ZipFile, name: str, shape: tuple[int, ...], dtype: type) -> NDArray[Any]:
    info = archive.getinfo(f"{name}.npy")
    with archive.open(info) as file:
        stored = NpyHeader(file, info.file_size, f"{archive.filename}: array {name!r}")
        if stored.shape != shape or stored.dtype != dtype or stored.fortran:
            got = f"{stored.dtype} of shape {stored.shape}"
            raise ValueError(f"expected {np.dtype(dtype)} of shape {shape} as {name!r}, got {got}")
        array = stored.take(len(stored))
        file.read(1)  # the checksum is verified at the end of the file
        return array


def _stretched_grey(images: NDArray[np.generic]) -> Images:
    grey: Images = images.astype(np.float64)
    grey = grey.mean(axis=3) if grey.ndim == 4 else grey
    grey -= grey.min(axis=(1, 2), keepdims=True)
    brightest = grey.max(axis=(1, 2), keepdims=True)
    grey *= 255 / np.where(brightest > 0, brightest, 1)
    return grey


def _prefilter(grey: Images) -> Images:
    """Remove low frequencies and normalise the local contrast."""
    logs = _mirrored(np.log1p(grey), BORDER)
    squares = _frequencies(logs.shape[1]) ** 2
    smooth = np.exp(-(squares[:, None] + squares) * np.log(2) / CUTOFF**2)

    def smoothed(values: Images) -> Images:
        return np.fft.ifft2(np.fft.fft2(values) * smooth).real

    detail = logs - smoothed(logs)
    contrast = np.sqrt(np.abs(smoothed(detail**2)))
    even: Images = detail / (LEAST_CONTRAST + contrast)
    return even[:, BORDER:-BORDER, BORDER:-BORDER]


def _responses(evened: Images) -> NDArray[np.float32]:
    """Return the block means of each filter's response."""
    padded = _mirrored(evened, WIDE_BORDER).astype(np.float32)
    spectra = np.fft.fftshift(np.fft.fft2(padded), axes=(1, 2))
    n, block = len(evened), SIDE // BLOCKS
    found = np.empty((n, SCALES * ORIENTATIONS, BLOCKS, BLOCKS), np.float32)
    for number, each in enumerate(_filters()):
        passed = spectra[:, each.rows, each.columns] * each.transfer
        across = (passed.reshape(-1, passed.shape[2]) @ each.to_x).reshape(n, -1, SIDE)
        response = each.to_y @ across
        magnitude = np.sqrt(response.real**2 + response.imag**2)
        found[:, number] = magnitude.reshape(n, BLOCKS, block, BLOCKS, block).mean(axis=(2, 4))
    return found.reshape(n, DIM)


class Filter(NamedTuple):
    """A Gabor filter on a box of frequencies, and the matrices that lead from there to pixels."""

    rows: slice
    columns: slice
    transfer: NDArray[np.float32]
    """(rows, columns)"""
    to_y: NDArray[np.complex64]
    """(32, rows)"""
    to_x: NDArray[np.complex64]
    """(columns, 32)"""


@cache
def _filters() -> tuple[Filter, ...]:
    side = SIDE + 2 * WIDE_BORDER
    pixels = np.arange(WIDE_BORDER, WIDE_BORDER + SIDE)
    turns = np.outer(pixels, np.fft.fftshift(_frequencies(side))) / side
    inverse = (np.exp(2j * np.pi * turns) / side).astype(np.complex64)
    bank = []
    for transfer in _transfer_functions(side):
        rows, columns = _extent(transfer.max(axis=1)), _extent(transfer.max(axis=0))
        box = transfer[rows, columns].astype(np.float32)
        to_x = np.ascontiguousarray(inverse[:, columns].T)
        bank.append(Filter(rows, columns, box, inverse[:, rows].copy(), to_x))
    return tuple(bank)


def _transfer_functions(side: int) -> Iterator[NDArray[np.float64]]:
    """Yield the filters, finest scale first, with frequency 0 in the middle."""
    y, x = np.meshgrid(*[np.fft.fftshift(_frequencies(side))] * 2, indexing="ij")
    radius, angle = np.hypot(x, y) / side, np.arctan2(y, x)
    narrowness = (ORIENTATIONS / 8) ** 2
    for scale in range(SCALES):
        along = 3.5 * (radius * COARSER**scale / FINEST - 1) ** 2
        for orientation in range(ORIENTATIONS):
            turned = angle + np.pi * orientation / ORIENTATIONS
            turned -= 2 * np.pi * (turned > np.pi)
            yield np.exp(-along - 2 * np.pi * narrowness * turned**2)


def _frequencies(side: int) -> NDArray[np.float64]:
    """Return the frequencies of a Fourier transform, in cycles an image."""
    frequencies: NDArray[np.float64] = np.fft.fftfreq(side, 1 / side).astype(np.float64)
    return frequencies


def _extent(most: NDArray[np.float64]) -> slice:
    """Return the range in which the filter passes anything."""
    passing = np.flatnonzero(most > NEGLIGIBLE)
    return slice(int(passing[0]), int(passing[-1]) + 1)


def _mirrored(images: Images, border: int) -> Images:
    return np.pad(images, ((0, 0), (border, border), (border, border)), "symmetric")
