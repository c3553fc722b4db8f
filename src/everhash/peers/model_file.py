"""Hashers of every method to and from their files; see `learn.model_format`.

state     method, params, seed, labels, columns, center_count, lessons
arrays    words, center, center_total, given_center where the user gave one, and the arrays that
          the method lays out, under their own names
"""

from __future__ import annotations

import os
from typing import Any, TypeVar

import numpy as np

from everhash import limits
from everhash.errors import ModelFileError
from everhash.learn.hasher import OnlineHasher
from everhash.learn.model_file import (
    read_state,
    rebuild,
    restore_columns,
    restore_hasher,
    restore_labels,
)
from everhash.learn.model_format import (
    MAX_COUNT,
    Arrays,
    array_of,
    count_of,
    pack_model,
    plain,
    read_model,
    require,
)
from everhash.learn.sgd_file import read_center
from everhash.learn.stream_hasher import StreamHasher
from everhash.peers.deep.registry import names as deep_names
from everhash.peers.method import Method
from everhash.peers.registry import method_named
from everhash.wire.labels import label_to_json

M = TypeVar("M", bound=Method)


def load_hasher(path: str | os.PathLike[str]) -> StreamHasher:
    """Read a hasher that its `save` wrote; it goes on as if it had never stopped."""
    return hasher_from_bytes(read_model(path), str(path))


def hasher_from_bytes(content: bytes, path: str) -> StreamHasher:
    """Build a hasher from what its file holds; `path` is for messages."""
    state, arrays = read_state(content, path)
    return rebuild(_restore, state, arrays, path)


def _restore(state: dict[str, Any], arrays: Arrays) -> StreamHasher:
    if "method" not in state:
        return restore_hasher(state, arrays, OnlineHasher)
    if state["method"] in deep_names():
        raise ModelFileError(f"{state['method']} takes images: everhash.peers.deep.load reads it")
    return restore_method(state, arrays, method_named(state["method"]))


def method_to_bytes(method: Method) -> bytes:
    """Return what a method's file holds."""
    method._require_fitted()
    method._read_options(method.n_features_in_, first=False)
    center = method._center
    arrays: Arrays = {name: getattr(method, name) for name in method._whole_layout()}
    arrays |= {"words": method.words_, "center": center.point, "center_total": center.total}
    params = {name: plain(value) for name, value in method.get_params().items()}
    if isinstance(given := method._begun.get("center"), np.ndarray):
        arrays["given_center"] = given
        del params["center"]
    state = {
        "method": method.method,
        "params": params,
        "seed": method._begun["random_state"],
        "labels": [label_to_json(label) for label in method.labels_],
        "columns": [str(name) for name in getattr(method, "feature_names_in_", [])],
        "center_count": center.count,
        "lessons": method.lessons_,
    }
    return pack_model(state, arrays)


def restore_method(state: dict[str, Any], arrays: Arrays, make: type[M]) -> M:
    """Build a method, and check every array against the layout that its options give."""
    params: dict[str, Any] = dict(state["params"])
    if "given_center" in arrays:
        params["center"] = array_of(arrays, "given_center", np.float32, 1)
    d = len(array_of(arrays, "center", np.float32, 1))
    require(1 <= d <= limits.DIMS, f"{d} features")
    method = make(**params)
    options = method._read_options(d, first=True)
    restore_columns(method, state, d)
    method._prepare({**options, "random_state": count_of(state["seed"], 2**128)})
    method._take_names(restore_labels(state))
    method._lessons = count_of(state["lessons"], MAX_COUNT)
    n_labels = len(method._names)
    require(n_labels == len(method._numbers), "a label has no name")
    require(n_labels <= method._room(options), f"{n_labels} labels")
    words = array_of(arrays, "words", np.int8, 2, (n_labels, method._word_bits))
    expected = (-1, 1) if method.assigns_codewords else (0,)
    require(bool(np.isin(words, expected).all()), f"words hold values other than {expected}")
    method._words.replace(words)
    read_center(method._center, arrays, state)
    for name, (dtype, shape) in method._whole_layout().items():
        setattr(method, name, array_of(arrays, name, dtype, len(shape), shape).copy())
    method._check_state()
    return method
