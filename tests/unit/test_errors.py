"""Errors name the values they carry, so that a service can send them and a client restore them."""

from __future__ import annotations

import inspect

import pytest

from everhash import errors
from everhash.errors import EverhashError
from everhash.places import PLACES

RAISED: list[EverhashError] = [
    errors.DimensionError(expected=3, got=4),
    errors.NotFiniteError(row=7),
    errors.DuplicateIdError("cat"),
    errors.StaleCodesError(expected=2, got=1),
    errors.LabelConflictError(5, has={"ant"}, expected=()),
    errors.UnknownIdError(5),
    errors.NotFittedError(),
    errors.NotOnlineError("ksh"),
]


@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
def test_carries_names_every_value_of_an_error(error: EverhashError) -> None:
    assert set(vars(error)) == {"message_template", "hint_template", *error.carries}


@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
def test_every_error_can_be_told_in_every_place(error: EverhashError) -> None:
    for place in PLACES:
        there = error.told(place)
        assert type(there) is type(error)
        assert "{" not in str(there)
        assert [getattr(there, name) for name in error.carries] == [
            getattr(error, name) for name in error.carries
        ]


def test_errors_with_a_constructor_of_their_own_are_all_tried_above() -> None:
    classes = [kind for _, kind in inspect.getmembers(errors, inspect.isclass)]
    own = {kind for kind in classes if issubclass(kind, EverhashError) and "__init__" in vars(kind)}
    assert own - {EverhashError} == {type(error) for error in RAISED}


def test_an_error_without_values_carries_none() -> None:
    assert errors.LabelError("no label").carries == ()


def test_an_error_is_told_in_the_words_of_the_place_where_it_is_read() -> None:
    error = errors.DuplicateIdError("cat")
    assert str(error).endswith(
        "(upsert() replaces an entry, remove() frees its id; nothing was added)"
    )
    there = error.told("http")
    assert isinstance(there, errors.DuplicateIdError)
    assert there.id == "cat"
    assert there.hint.startswith("POST /upsert replaces an entry")
    assert error.told("cli").hint.startswith("`everhash remove` frees it")
    assert error.hint_template.startswith("{say taken}")  # the error itself is as it was
