"""The first day of four people goes as they would expect."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import slowly
from tests.first_day.roles import ROLES
from tests.first_day.steps import Day


@pytest.mark.parametrize(
    "role", ["web developer", *slowly(*sorted(set(ROLES) - {"web developer"}))]
)
def test_first_day_without_a_surprise(role: str, tmp_path: Path) -> None:
    with Day(tmp_path) as day:
        for answer in day.run(ROLES[role]):
            assert not answer.problem, f"{answer.problem}:\n{answer.step.command}\n{answer.text}"
