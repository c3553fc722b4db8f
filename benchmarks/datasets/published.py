"""Public archives that only `make_features.py` reads: Caltech-256's tar, CLINC150's JSON.

Nothing is unpacked to disk. CIFAR-10 and Fashion-MNIST are read by `everhash.bench.archives`.
"""

from __future__ import annotations

import io
import json
import re
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.errors import InputError

PICTURE = re.compile(r"(?:.*/)?(\d{3}\.[\w-]+)/(\d{3}_\d{4}\.jpg)")
"""A picture in Caltech-256's tar: the folder of its class, and its own name."""
ABSENT = frozenset({"009_0045.jpg", "043_0042.jpg", "073_0054.jpg"})
"""Pictures that the shared files do not have; they are left out, so that rows are the same."""
QUERIES_A_CLASS = 20
MAX_PICTURE = 64 << 20
SPLITS = ("train", "val", "test", "oos_train", "oos_val", "oos_test")
OUT_OF_SCOPE = "oos"


class Pictures(NamedTuple):
    """One row a picture, in the order of their names; `values` holds what was made of each."""

    values: list[Any]
    y: NDArray[np.int16]
    names: NDArray[np.str_]
    classes: NDArray[np.str_]

    def is_test(self) -> NDArray[np.uint8]:
        """Mark 20 queries of each class, those of the shared files."""
        rng = np.random.RandomState(0)
        marks = np.zeros(len(self.y), np.uint8)
        for label in range(len(self.classes)):
            marks[rng.permutation(np.flatnonzero(self.y == label))[:QUERIES_A_CLASS]] = 1
        return marks


def read_caltech256(path: Path, each: Callable[[Any], Any]) -> Pictures:
    """Read all pictures of Caltech-256's tar; `each` gets a Pillow image in RGB."""
    found = sorted(
        ((folder, name, each(picture)) for folder, name, picture in _pictures(path)),
        key=lambda row: row[:2],
    )
    if not found:
        raise InputError(
            f"{path}: no pictures in it", hint="expected names such as 001.ak47/001_0001.jpg"
        )
    classes = sorted({folder for folder, *_ in found})
    number = {folder: place for place, folder in enumerate(classes)}
    return Pictures(
        [value for *_, value in found],
        np.array([number[folder] for folder, *_ in found], np.int16),
        np.array([name for _, name, _ in found]),
        np.array(classes),
    )


def _pictures(path: Path) -> Iterator[tuple[str, str, Any]]:
    from PIL import Image

    with tarfile.open(path) as tar:
        for member in tar:
            match = PICTURE.fullmatch(member.name)
            if match is None or match[2] in ABSENT or not member.isfile():
                continue
            file = tar.extractfile(member)
            if file is None or member.size > MAX_PICTURE:
                raise InputError(f"{path}: {member.name} is no picture", hint="download it again")
            with Image.open(io.BytesIO(file.read())) as picture:
                yield match[1], match[2], picture.convert("RGB")


class Texts(NamedTuple):
    """CLINC150's sentences; y is -1 where a sentence is out of scope."""

    text: NDArray[np.str_]
    y: NDArray[np.int16]
    split: NDArray[np.uint8]
    classes: NDArray[np.str_]


def read_clinc150(path: Path) -> Texts:
    """Read data_full.json: the six splits one after the other, classes in alphabetical order."""
    content = json.loads(path.read_text(encoding="utf-8"))
    missing = [name for name in SPLITS if name not in content]
    if missing:
        raise InputError(
            f"{path}: no split {missing[0]!r} in it", hint="expected data_full.json of CLINC150"
        )
    rows = [(text, of, place) for place, name in enumerate(SPLITS) for text, of in content[name]]
    classes = sorted({of for _, of, _ in rows} - {OUT_OF_SCOPE})
    number = {of: place for place, of in enumerate(classes)} | {OUT_OF_SCOPE: -1}
    return Texts(
        np.array([text for text, _, _ in rows]),
        np.array([number[of] for _, of, _ in rows], np.int16),
        np.array([place for *_, place in rows], np.uint8),
        np.array(classes),
    )
