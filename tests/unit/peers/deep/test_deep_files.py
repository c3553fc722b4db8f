"""Files of deep methods: the same bits again, and nothing harmful."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from everhash import OnlineHasher, load_hasher
from everhash.errors import DataMissingError, ModelFileError
from everhash.learn.model_file import read_state
from everhash.learn.model_format import Arrays, pack_model
from everhash.peers import deep
from everhash.peers.deep.deep_method import DeepMethod
from tests.unit.peers.deep.pictures import NAMES, pictures

State = dict[str, Any]
Change = Callable[[State, Arrays], object]
BITS, FIRST = "weight:bits.weight", "weight:body.0.weight"


@pytest.mark.parametrize("name", NAMES)
def test_a_loaded_method_equals_the_saved_one(
    name: str, learned: dict[str, DeepMethod], tmp_path: Path
) -> None:
    path, method, new = tmp_path / "a.safetensors", learned[name], pictures(30, seed=1).images
    method.save(path)
    loaded = deep.load(path)
    np.testing.assert_array_equal(loaded.margins(new), method.margins(new))
    assert loaded.get_params() == method.get_params()
    assert loaded.labels_ == method.labels_
    assert loaded.losses_ == method.losses_
    again = tmp_path / "b.safetensors"
    loaded.save(again)
    assert again.read_bytes() == path.read_bytes()


def _set(path: str, value: Any) -> Change:
    """Return a change of a value in the state."""

    def change(state: State, _arrays: Arrays) -> None:
        *above, last = path.split(".")
        for name in above:
            state = state[name]
        state[last] = value

    return change


def _put(name: str, array: Any) -> Change:
    """Return a change of an array, by the array there was."""

    def change(_state: State, arrays: Arrays) -> None:
        arrays[name] = array(arrays[name])

    return change


HOSTILE: dict[str, Change] = {
    "another method": _set("method", "mihash"),
    "no method": lambda state, _: state.pop("method"),
    "a method that is no name": _set("method", ["latent"]),
    "an unknown option": _set("params.size", 3),
    "options that are no table": _set("params", 7),
    "more bits than weights": _set("params.bits", 4096),
    "a huge network": _set("params.width", 512),
    "too huge a network": _set("params.width", 10**9),
    "a seed below 0": _set("seed", -1),
    "a label twice": _set("labels", ["red", "red", "blue"]),
    "a label without a name": _set("labels", ["red", None, "blue"]),
    "more labels than units": _set("labels", ["red", "green", "blue", "grey"]),
    "one label": _set("labels", ["red"]),
    "a million labels": _set("labels", list(range(20_000))),
    "sides that cannot be halved": _set("sides", [16, 17]),
    "huge sides": _set("sides", [16, 2**40]),
    "three sides": _set("sides", [16, 16, 16]),
    "a version that is no count": _set("version", "1"),
    "losses that are no numbers": _set("losses", ["low"]),
    "a missing array": lambda _, arrays: arrays.pop(BITS),
    "an array too many": lambda _, arrays: arrays.update(more=np.zeros(3, np.float32)),
    "a wrong shape": _put(BITS, lambda array: array[:-1]),
    "a wrong type": _put(BITS, lambda array: array.astype(np.float64)),
    "weights that are not finite": _put(FIRST, lambda array: array * np.float32(np.nan)),
    "a variance below 0": _put("weight:body.1.running_var", lambda array: -1 - array),
    "a colour without spread": _put("spread", lambda array: array * 0),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_file_is_refused(
    kind: str, learned: dict[str, DeepMethod], tmp_path: Path
) -> None:
    path = tmp_path / "a.safetensors"
    learned["latent"].save(path)
    state, arrays = read_state(path.read_bytes(), "a")
    HOSTILE[kind](state, arrays)
    path.write_bytes(pack_model(json.loads(json.dumps(state)), arrays))
    with pytest.raises(ModelFileError):
        deep.load(path)


def test_a_torn_or_changed_file_is_refused(learned: dict[str, DeepMethod], tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    learned["latent"].save(path)
    content = path.read_bytes()
    for bad in (content[:-1], content[:100], b"", content[:-1] + bytes([content[-1] ^ 1])):
        path.write_bytes(bad)
        with pytest.raises(ModelFileError):
            deep.load(path)
    with pytest.raises(DataMissingError):
        deep.load(tmp_path / "none.safetensors")


def test_files_of_hashers_and_of_deep_methods_name_who_reads_them(
    learned: dict[str, DeepMethod], tmp_path: Path
) -> None:
    learned["latent"].save(tmp_path / "deep")
    with pytest.raises(ModelFileError, match=r"everhash\.peers\.deep\.load reads it"):
        load_hasher(tmp_path / "deep")
    OnlineHasher(8).fit(np.eye(4), [0, 1, 0, 1]).save(tmp_path / "ours")
    with pytest.raises(ModelFileError, match="holds no deep method: its method is 'everhash'"):
        deep.load(tmp_path / "ours")
