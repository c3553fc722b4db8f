"""What every test shares: compiled kernels, a Hypothesis profile, and a small real stream."""

from __future__ import annotations

import os
import signal
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
from numpy.typing import NDArray

from everhash import kernels
from tests.sentinel import pytest_runtest_setup  # noqa: F401 - a hook: see there

settings.register_profile(
    "everhash",
    settings.get_profile("default"),  # where CI is set, Hypothesis would start from another one
    deadline=None,  # nor too_slow: other work on the machine is no failure of a test
    derandomize=True,  # the same cases for everybody; `make fuzz` draws fresh ones
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.load_profile("everhash")
# Hypothesis mixes in constants of all modules that are loaded, so what ran before would matter
vars(providers)["_get_local_constants"] = Constants

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # a script's background job: Ctrl-C stays without effect on the tests, but what they start must
    # not inherit that, and a handler, unlike SIG_IGN, does not pass to other programs
    signal.signal(signal.SIGINT, lambda *_: None)

PUT = "put the file into a folder that `docs/bench.md` names to run this test"


def missing(what: str, how: str = PUT) -> NoReturn:
    """End a test that needs what this machine does not have: a public data set, a browser.

    Only a user's machine may lack it: where `CI` is set the test fails instead.
    """
    if os.environ.get("CI"):
        pytest.fail(f"{what}, and in CI everything must be there: {how}")
    pytest.skip(f"{what}: {how}")


def slowly(*values: object) -> list[Any]:
    """Return parameters that are tried by the slow tests only."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]


LONG = (
    "crash/test_faults.py",
    "crash/test_kill.py",
    "docs/test_blocks.py",
    "unit/test_estimator.py",
)
"""Files that take long; each goes to one process as a whole."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have the long files come first: the last process to end would be waited for by the others."""
    items.sort(key=lambda item: not item.path.as_posix().endswith(LONG))


class Stream(NamedTuple):
    X: NDArray[np.float32]
    y: NDArray[np.int64]


@pytest.fixture(scope="session", autouse=True)
def warm_kernels() -> None:
    """Compile once, outside any test's time."""
    kernels.load_all()


@pytest.fixture(params=["some", *slowly("all")])
def thorough(request: pytest.FixtureRequest) -> bool:
    """Whether to try all cases; a test with many runs once with some, and once slowly with all."""
    return bool(request.param == "all")


@pytest.fixture
def drawn_seed(request: pytest.FixtureRequest) -> int:
    """What a test draws its own cases from: always 0, except in `make fuzz`."""
    return int(request.config.getoption("drawn_seed", 0))


@pytest.fixture(scope="session")
def digits() -> Stream:
    """scikit-learn's digits in an order that mixes labels."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    return Stream(X[order].astype(np.float32), y[order])
