"""Deep methods to and from their files; see `learn.model_format`.

state     method, params, seed, labels, sides, version, losses
arrays    mean, spread, and the weights of the network under their own names
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from everhash.errors import ModelFileError
from everhash.learn.model_file import read_state, rebuild, restore_labels
from everhash.learn.model_format import (
    MAX_COUNT,
    Arrays,
    array_of,
    count_of,
    list_of,
    pack_model,
    plain,
    read_model,
    require,
)
from everhash.peers.deep.images import LEAST, MOST, STEP
from everhash.peers.deep.registry import METHODS, class_named, names
from everhash.wire.labels import label_to_json

if TYPE_CHECKING:
    from everhash.peers.deep.deep_method import DeepMethod

WEIGHT = "weight:"
"""Names of weights begin with it in a file."""


def read_deep(path: str | os.PathLike[str]) -> DeepMethod:
    """Read a deep method that its `save` wrote."""
    state, arrays = read_state(read_model(path), str(path))
    method = state.get("method", "everhash")
    if not isinstance(method, str) or method not in METHODS:
        raise ModelFileError(
            f"{path} holds no deep method: its method is {method!r:.40}",
            hint=f"there are {', '.join(names())}; {{call load_hasher}} reads a hasher",
        )
    return rebuild(_restore, state, arrays, str(path))


def deep_to_bytes(method: DeepMethod) -> bytes:
    """Return what a method's file holds."""
    from everhash.peers.deep.network import weights_of

    method._require_fitted()
    weights = weights_of(method._network)
    arrays: Arrays = {"mean": method.mean_, "spread": method.spread_}
    arrays |= {f"{WEIGHT}{name}": array for name, array in weights.items()}
    state = {
        "method": method.about.name,
        "params": {name: plain(value) for name, value in method.get_params().items()},
        "seed": method._options["random_state"],
        "labels": [label_to_json(label) for label in method.labels_],
        "sides": list(method.sides_),
        "version": method.version_,
        "losses": method.losses_,
    }
    return pack_model(state, arrays)


def _restore(state: dict[str, Any], arrays: Arrays) -> DeepMethod:
    """Build a method, and check every array against the layout that its options give."""
    from everhash.peers.deep.deep_method import check_labels

    method = class_named(state["method"])(**state["params"])
    seed = count_of(state["seed"], 2**128)
    method._options = method._read_options() | {"random_state": seed}
    labels = restore_labels(state)
    require(None not in labels, "a label has no name")
    check_labels(method.about.name, len(labels))
    method._take_names(labels)
    method.sides_ = _sides(list_of(state["sides"]))
    method.version_ = count_of(state["version"], MAX_COUNT)
    method.losses_ = [float(loss) for loss in list_of(state["losses"])]
    method.mean_ = array_of(arrays, "mean", np.float32, 1, (3,))
    method.spread_ = array_of(arrays, "spread", np.float32, 1, (3,))
    require(bool((method.spread_ > 0).all()), "a colour has no spread")
    _restore_network(method, arrays)
    return method


def _sides(listed: list[Any]) -> tuple[int, int]:
    require(len(listed) == 2, f"{len(listed)} sides")
    height, width = (count_of(side, MOST + 1) for side in listed)
    fits = all(side >= LEAST and side % STEP == 0 for side in (height, width))
    require(fits, f"images of {height} x {width}")
    return height, width


def _restore_network(method: DeepMethod, arrays: Arrays) -> None:
    """Take over weights that have the shapes of the laid-out network, which takes no memory."""
    from everhash.peers.deep.network import with_weights

    network = method._laid_out()
    wanted = {
        name: tuple(value.shape)
        for name, value in network.state_dict().items()
        if value.is_floating_point()
    }
    foreign = set(arrays) - {"mean", "spread"} - {f"{WEIGHT}{name}" for name in wanted}
    require(not foreign, f"arrays that no layer has: {sorted(foreign)!r:.80}")
    weights = {
        name: array_of(arrays, f"{WEIGHT}{name}", np.float32, len(shape), shape)
        for name, shape in wanted.items()
    }
    for name, array in weights.items():
        if name.endswith("running_var"):
            require(bool((array >= 0).all()), f"array {name!r} holds a variance below 0")
    method._network = with_weights(network, weights)
