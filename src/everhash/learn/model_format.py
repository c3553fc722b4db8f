"""A hasher in one safetensors file: arrays, and a JSON text that says what they are.

    header            safetensors' own: names, dtypes, shapes and offsets of the arrays; in its
                      metadata, under "everhash", a JSON object:
      format          "everhash-hasher"
      version         "2"; files of version 1 know one learner only
      state           JSON: options, labels, counters; "method" where it is not an OnlineHasher
      sha256          of the state and of every array, name, dtype and shape included
    arrays            what was learned

Nothing in a file names code: a method is looked up among those everhash has. Every number read from
it is checked against the others before use.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.disk import take_place
from everhash.errors import DataMissingError, ModelFileError

FORMAT, VERSION, READABLE = "everhash-hasher", "2", ("1", "2")
DAMAGED = "the file is damaged or was not written by everhash; restore it from a copy"
NEWER = "it may come from a newer everhash; upgrade to read it"
MAX_COUNT = 2**62
"""Counts in a file stay below this, so that counting on cannot overflow."""
Arrays = dict[str, NDArray[Any]]
Shape = tuple[int | None, ...]
"""Of an array in a file; None stands for any length."""


def pack_model(state: dict[str, Any], arrays: Arrays) -> bytes:
    """Return what a file holds."""
    from safetensors.numpy import save

    ready = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    text = json.dumps(state, default=float)  # a step may be a Fraction
    about = {"format": FORMAT, "version": VERSION, "state": text, "sha256": _digest(text, ready)}
    # one entry only: safetensors writes several in any order, and no two files would be alike
    return bytes(save(ready, {"everhash": json.dumps(about)}))


def write_model(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a model's file. It appears whole or not at all."""
    target = Path(path)
    partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(content)
        take_place(partial, target)
    finally:
        partial.unlink(missing_ok=True)


def read_model(path: str | os.PathLike[str]) -> bytes:
    """Return a model's file as it is."""
    file = Path(path)
    if not file.is_file():
        raise DataMissingError(f"no model file at {path}", hint="a hasher's save writes one")
    try:
        return file.read_bytes()
    except OSError as error:
        raise ModelFileError(f"{path}: {error}", hint="make the file readable") from None


def unpack_model(content: bytes, path: str) -> tuple[str, Arrays]:
    """Read the parts of a file and check that they are what was written."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        arrays = load(content)
        # safetensors has checked the header by now; only its metadata it does not hand out
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        about = _about(path, header.get("__metadata__") or {})
        version = about.get("version")
        require(version in READABLE, f"{path}: version {version!r:.20} is unknown", NEWER)
    except ModelFileError:
        raise
    except (
        SafetensorError,
        AttributeError,
        KeyError,
        TypeError,
        ValueError,
        RecursionError,
    ) as error:
        raise ModelFileError(f"{path}: {error!s:.200}", hint=DAMAGED) from None
    state = str(about.get("state", ""))
    require(about.get("sha256") == _digest(state, arrays), f"{path}: checksum does not match")
    return state, arrays


def _about(path: str, metadata: dict[str, str]) -> dict[str, Any]:
    try:
        about = json.loads(metadata.get("everhash", "null"))
    except RecursionError:
        about = None
    ours = isinstance(about, dict) and about.get("format") == FORMAT
    require(ours, f"{path}: not a hasher's file")
    return dict(about)


def _digest(state: str, arrays: Arrays) -> str:
    total = hashlib.sha256(state.encode())
    for name in sorted(arrays):
        array = arrays[name]
        total.update(f"|{name}|{array.dtype.str}|{array.shape}|".encode())
        total.update(np.ascontiguousarray(array).data)
    return total.hexdigest()


def array_of(arrays: Arrays, name: str, dtype: type, ndim: int, shape: Shape = ()) -> NDArray[Any]:
    """Return an array of the file, if it has the type and shape it should have."""
    require(name in arrays, f"array {name!r} is missing")
    array = arrays[name]
    fits = array.dtype == dtype and array.ndim == ndim
    fits = fits and all(s in (None, g) for s, g in zip(shape, array.shape, strict=bool(shape)))
    require(fits, f"array {name!r} is {array.dtype} {array.shape}")
    if array.dtype.kind == "f":
        require(bool(np.isfinite(array).all()), f"array {name!r} holds NaN or infinity")
    elif array.dtype == np.int64:
        counts = array.min(initial=0) >= 0 and array.max(initial=0) < MAX_COUNT
        require(bool(counts), f"array {name!r} holds a count below 0 or too large to go on from")
    return array


def require_shapes(arrays: Arrays, shapes: dict[str, Shape]) -> None:
    """Check that arrays have the lengths that a state claims, before anything is built by it."""
    for name, shape in shapes.items():
        require(name in arrays, f"array {name!r} is missing")
        array = arrays[name]
        fits = array.ndim == len(shape)
        fits = fits and all(s in (None, g) for s, g in zip(shape, array.shape, strict=True))
        require(fits, f"array {name!r} is {array.dtype} {array.shape}")


def count_of(value: Any, below: int) -> int:
    """Return a count from the state, checked."""
    ok = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < below
    require(ok, f"expected a count below {below}, got {value!r:.40}")
    return int(value)


def list_of(value: Any) -> list[Any]:
    """Return a list from the state, checked."""
    require(isinstance(value, list), f"expected a list, got a {type(value).__name__}")
    return list(value)


def plain(value: Any) -> Any:
    """Return an option as JSON can write it."""
    return value.item() if isinstance(value, np.generic) else value


def require(condition: bool, problem: str, hint: str = "") -> None:
    """Refuse a file that cannot have been written by us."""
    if not condition:
        raise ModelFileError(problem, hint=hint or DAMAGED)
