"""Real feature sets by name.

Files are looked for in `$EVERHASH_DATA`, then in `../shared/data` beside a checkout, then in
`~/.cache/everhash`. Each is held against its checksum when it is read.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from everhash.errors import DataMissingError, ModelFileError, UnknownNameError

FILES = {
    "cifar10-gist": (
        "cifar10_gist512_u8.npz",
        "1f3b18aa6c4e0ae892e088e578552c0c0f14a95ad477bda1c428f937159588f6",
    ),
    "cifar10-cnn": (
        "cifar10_efflite2_pca512_u8.npz",
        "f0c6f6c6ed8635c2b4ef5c357550dbf1db3793f79012e58a961bbe1ade6df507",
    ),
    "caltech256-cnn": (
        "caltech256_efflite2_pca512_u8.npz",
        "8f281566b253c206b73ce709915a22a38bddb03ee9109b60700523e235d684ec",
    ),
    "clinc150": (
        "clinc150_minilm384_f16.npz",
        "a87e8a4d8dfe770747c4054fee351aeda627c548ecc594ec01b18b36737a591e",
    ),
}


@dataclass(frozen=True)
class Dataset:
    """Features and labels, and the rows set aside as queries where the set itself says so."""

    name: str
    X: NDArray[np.float32]
    y: NDArray[np.int64]
    """Label of each row; -1 where it belongs to none (CLINC150's out-of-scope rows)."""
    is_query: NDArray[np.bool_]


def load(name: str) -> Dataset:
    """Read a set by name."""
    if name not in FILES:
        raise UnknownNameError(f"no dataset {name!r}", hint=f"there are {', '.join(sorted(FILES))}")
    with np.load(_checked(name)) as file:
        X = file["q"] * file["scale"] + file["lo"] if "q" in file else file["X"]
        y = file["y"].astype(np.int64)
        is_query = np.zeros(len(y), np.bool_)
        if "is_test" in file:
            is_query = file["is_test"].astype(np.bool_)
        elif "split" in file:
            names = [str(split) for split in file["split_names"]]
            is_query = np.array(["test" in split for split in names])[file["split"]]
    return Dataset(name, X.astype(np.float32), y, is_query)


def _checked(name: str) -> Path:
    file_name, checksum = FILES[name]
    for folder in _folders():
        path = folder / file_name
        if path.is_file():
            with path.open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != checksum:
                    raise ModelFileError(f"{path} is damaged", hint="fetch it again")
            return path
    looked = ", ".join(str(folder) for folder in _folders())
    raise DataMissingError(
        f"{file_name} is not on this machine (looked in {looked})",
        hint="put it into one of these folders, or set EVERHASH_DATA to the folder that has it",
    )


def _folders() -> list[Path]:
    checkout = Path(__file__).resolve().parents[3]
    named = os.environ.get("EVERHASH_DATA")
    return [
        *([Path(named)] if named else []),
        checkout.parent / "shared" / "data",
        Path.home() / ".cache" / "everhash",
    ]
