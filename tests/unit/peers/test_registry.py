"""Methods by name."""

from __future__ import annotations

import pytest

import everhash
from everhash import peers
from everhash.errors import OptionError, UnknownNameError
from everhash.peers.batch_method import BatchMethod


def test_names_gives_ours_first_and_every_online_peer() -> None:
    ours, online = (
        ["everhash", "everhash-sgd", "paper"],
        "okh osh adapthash sketchhash mihash hcoh hmoh bsodh lemon oasis",
    )
    assert peers.names()[:3] == ours
    assert set(peers.names()) >= {*ours, *online.split(), "smarthash", "onehot"}


@pytest.mark.parametrize("name", peers.names())
def test_get_makes_and_describe_explains_every_method(name: str) -> None:
    hasher = peers.get(name, bits=8, random_state=3)
    assert hasher.get_params()["random_state"] == 3
    if name != "onehot":
        assert hasher.get_params()["bits"] == hasher.bits == 8
    about = peers.describe(name)
    assert about.name == name
    assert about.online != isinstance(hasher, BatchMethod)
    assert str(about.year) in about.citation or name.startswith("everhash")
    assert about.needs in ("labels", "pairs", "nothing")
    assert about.supervised == (about.needs != "nothing")
    assert about.codewords == hasher.assigns_codewords
    assert hasher.method == ("everhash-sgd" if name == "paper" else name)
    assert about.batch == hasher.get_params().get("batch", 1)
    assert about.needs_class_count == ("classes" in hasher.get_params())


def test_paper_is_the_papers_setting() -> None:
    assert peers.get("paper", 16).get_params() == everhash.OnlineHasher.paper(16).get_params()


def test_unknown_names_and_options_are_typed_errors() -> None:
    with pytest.raises(UnknownNameError, match=r"no method 'simhash'.*okh"):
        peers.get("simhash")
    with pytest.raises(UnknownNameError):
        peers.describe("simhash")
    with pytest.raises(OptionError, match=r"osh has no option 'rho'.*step"):
        peers.get("osh", rho=3)
    with pytest.raises(OptionError, match="paper has no option 'replay'"):
        peers.get("paper", replay=3)
