"""Requests that take too long are given up, and nothing else is."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from everhash.serve.deadlines import Deadlines, LateError


def run(body: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(body, 30))


def test_what_is_in_time_is_returned_and_what_is_late_is_given_up() -> None:
    async def body() -> None:
        deadlines = Deadlines()

        async def ask(seconds: float) -> float:
            await asyncio.sleep(seconds)
            return seconds

        asked = (deadlines.within(0.3, ask(seconds)) for seconds in (0.0, 5.0, 0.01, 9.0))
        ended = await asyncio.gather(*asked, return_exceptions=True)
        assert ended[0::2] == [0.0, 0.01]
        assert all(isinstance(end, LateError) for end in ended[1::2])

    run(body())


def test_a_task_goes_on_after_it_was_late() -> None:
    async def body() -> None:
        deadlines, task = Deadlines(), asyncio.current_task()
        assert task is not None
        for _ in range(2):
            with pytest.raises(LateError):
                await deadlines.within(0.01, asyncio.sleep(5))
            assert task.cancelling() == 0
            assert await deadlines.within(5, asyncio.sleep(0.01, "done")) == "done"
        await asyncio.sleep(0.3)  # nothing of it comes later

    run(body())


def test_errors_and_other_cancellations_pass() -> None:
    async def body() -> None:
        deadlines = Deadlines()

        async def fail() -> None:
            raise KeyError("x")

        with pytest.raises(KeyError):
            await deadlines.within(5, fail())
        task = asyncio.create_task(deadlines.within(5, asyncio.sleep(5)))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(body())


def test_it_looks_only_while_there_is_something_to_look_at() -> None:
    async def body() -> None:
        deadlines = Deadlines()
        await deadlines.within(5, asyncio.sleep(0))
        await asyncio.sleep(0.3)
        assert not deadlines._looking
        with pytest.raises(LateError):
            await deadlines.within(0.01, asyncio.sleep(5))

    run(body())
