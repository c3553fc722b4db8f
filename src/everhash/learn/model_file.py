"""What a file of an `OnlineHasher` holds; see `model_format`.

state     params, seed, labels (null where one is gone), columns, and what the learner adds
arrays    codewords, given_codebook and given_center where the user gave them, and those of the
          learner: `sgd_file`, `exact_file`
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from everhash import limits
from everhash.errors import EverhashError, ModelFileError
from everhash.learn import exact_file, following_file, sgd_file
from everhash.learn.exact import ExactLearner
from everhash.learn.following import FollowingLearner, begin_to_follow
from everhash.learn.hasher import OnlineHasher
from everhash.learn.labelled import Labelled
from everhash.learn.model_format import (
    DAMAGED,
    Arrays,
    array_of,
    count_of,
    list_of,
    pack_model,
    plain,
    require,
    require_shapes,
    unpack_model,
)
from everhash.learn.options import Options, check_weights, without_old_defaults
from everhash.learn.stream_hasher import StreamHasher
from everhash.stream import as_label
from everhash.wire.labels import label_from_json, label_to_json

ARRAY_PARAMS = {"codebook": (np.int8, 2), "center": (np.float32, 1)}
"""Options that may be arrays; the file keeps those beside the learned ones."""

H = TypeVar("H", bound=Labelled)
Ours = TypeVar("Ours", bound=OnlineHasher)


def read_state(content: bytes, path: str) -> tuple[dict[str, Any], Arrays]:
    """Return the state and the arrays that a hasher's file holds; `path` is for messages."""
    text, arrays = unpack_model(content, path)
    with _blaming(path):
        return dict(json.loads(text)), arrays
    raise AssertionError  # not reached: what goes wrong is raised


def rebuild(
    restore: Callable[[dict[str, Any], Arrays], H], state: dict[str, Any], arrays: Arrays, path: str
) -> H:
    """Build a hasher from what its file holds; whatever is wrong is the file's fault."""
    with _blaming(path):
        return restore(state, arrays)
    raise AssertionError  # not reached: what goes wrong is raised


@contextmanager
def _blaming(path: str) -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, ValueError, RecursionError, OverflowError) as error:
        reason = (
            error.message_template
            if isinstance(error, EverhashError)
            else f"bad state: {error!r:.200}"
        )
        raise ModelFileError(f"{path}: {reason}", hint=DAMAGED) from None


def hasher_to_bytes(hasher: OnlineHasher) -> bytes:
    """Return what a hasher's file holds."""
    hasher._require_fitted()
    hasher._read_options(hasher.n_features_in_, first=False)
    begun, learner = hasher._begun, hasher._learner
    given = {
        name: value
        for name in ARRAY_PARAMS
        if isinstance(value := getattr(begun, name), np.ndarray)
    }
    params = {name: plain(value) for name, value in hasher.get_params().items()}
    state = {
        "params": {name: value for name, value in params.items() if name not in given},
        "seed": begun.seed,
        "labels": [None if name is None else label_to_json(name) for name in hasher._names],
        "columns": [str(name) for name in getattr(hasher, "feature_names_in_", [])],
    }
    arrays: Arrays = {f"given_{name}": value for name, value in given.items()}
    arrays["codewords"] = hasher._words.rows
    if isinstance(learner, FollowingLearner):
        arrays |= following_file.write(hasher, learner, state)
    elif isinstance(learner, ExactLearner):
        exact_file.write(learner, state, arrays)
    else:
        sgd_file.write(learner, state, arrays)
    return pack_model(state, arrays)


def restore_hasher(state: dict[str, Any], arrays: Arrays, make: type[Ours]) -> Ours:
    """Build the hasher, holding every size and index in the file against the others first."""
    params: dict[str, Any] = {"learner": "sgd", **state["params"]}  # the only one of version 1
    for name, (dtype, ndim) in ARRAY_PARAMS.items():
        if f"given_{name}" in arrays:
            params[name] = array_of(arrays, f"given_{name}", dtype, ndim)
    hasher = make(**without_old_defaults(params))
    d = len(array_of(arrays, "center", np.float32, 1))
    require(1 <= d <= limits.DIMS, f"{d} features")
    options = hasher._read_options(d, first=True)._replace(seed=count_of(state["seed"], 2**128))
    names = restore_labels(state)
    restore_columns(hasher, state, d)
    follows = "follows" in state
    require(options.learner == "exact" or not follows, "only the exact learner follows")
    _require_sizes(options, d, len(names), state, arrays)
    (begin_to_follow if follows else OnlineHasher._begin)(hasher, options)
    hasher._take_names(names)
    _restore_codewords(hasher, arrays, len(names))
    opened = options.cycles_of(len(names))
    if follows:
        following_file.read(hasher, state, arrays)
    elif isinstance(hasher._learner, ExactLearner):
        exact_file.read(hasher._learner, state, arrays, opened)
        _check_gone(names, hasher._learner)
    else:
        require(None not in names, "a label has no name")
        sgd_file.read(hasher._learner, state, arrays, opened)
    return hasher


def _require_sizes(options: Options, d: int, n: int, state: dict[str, Any], arrays: Arrays) -> None:
    """Hold every size that the state claims against the arrays, before anything is built by it."""
    require(n <= limits.LABELS, f"more than {limits.LABELS} labels")
    require(options.width_of(n) <= limits.WIDTH, f"more than {limits.WIDTH} bits")
    check_weights(options, d, n)
    if "follows" in state:
        shapes = following_file.shapes(options, d, n, state)
    elif options.learner == "exact":
        shapes = exact_file.shapes(options, d, n, state, arrays)
    else:
        shapes = sgd_file.shapes(options, d, n)
    require_shapes(arrays, {"codewords": (n, options.bits), **shapes})


def restore_labels(state: dict[str, Any]) -> list[Hashable]:
    """Return the label of each number; None where it is gone."""
    listed = list_of(state["labels"])
    names = [None if label is None else as_label(label_from_json(label)) for label in listed]
    named = [name for name in names if name is not None]
    require(len(set(named)) == len(named), "a label is listed twice")
    return names


def _check_gone(names: list[Hashable], learner: ExactLearner) -> None:
    """Refuse labels without a name that something was learned of."""
    gone = np.array([name is None for name in names], np.bool_)
    learned = learner.memory.counts.rows[gone].any() or learner.served.known.rows[gone].any()
    require(not learned, "rows have a label without a name")


def restore_columns(hasher: StreamHasher, state: dict[str, Any], n_features: int) -> None:
    """Set how many features a row has, and their names if they had any."""
    hasher.n_features_in_ = n_features
    if columns := list_of(state["columns"]):
        fit = len(columns) == n_features and all(isinstance(name, str) for name in columns)
        require(fit, "column names do not fit the features")
        hasher.feature_names_in_ = np.array(columns, dtype=object)


def _restore_codewords(hasher: OnlineHasher, arrays: Arrays, n_labels: int) -> None:
    words = array_of(arrays, "codewords", np.int8, 2, (n_labels, hasher.bits))
    require(bool(np.isin(words, (-1, 1)).all()), "codewords hold values other than -1 and +1")
    hasher._words.replace(words)
    in_cycle = (n_labels - 1) % hasher._begun.labels_per_cycle + 1 if n_labels else 0
    hasher._book.start_cycle(words[n_labels - in_cycle :])
