"""Turns are had one after the other, each key for itself."""

from __future__ import annotations

import asyncio

import pytest

from apps.core.turns import Turns


async def test_who_came_first_goes_first_and_other_keys_wait_for_nobody() -> None:
    turns, order, leave = Turns(1), [], asyncio.Event()

    async def one(key: str, name: str) -> None:
        async with turns.of(key, 60.0):
            order.append(name)
            await leave.wait()

    async with asyncio.TaskGroup() as group:
        for key, name in (("a", "first"), ("a", "second"), ("a", "third"), ("b", "another's")):
            group.create_task(one(key, name))
        while len(order) < 2:
            await asyncio.sleep(0)
        assert order == ["first", "another's"]
        leave.set()
    assert order == ["first", "another's", "second", "third"]


async def test_who_waits_in_vain_is_told_and_takes_no_turn() -> None:
    turns = Turns(1)
    async with turns.of("a", 60.0):
        with pytest.raises(TimeoutError):
            async with turns.of("a", 0.0):
                pass
    async with turns.of("a", 0.0):
        pass


async def test_a_turn_ends_with_whatever_broke_off_and_nobody_is_remembered() -> None:
    turns = Turns(1)
    with pytest.raises(KeyError):
        async with turns.of("a", 0.0):
            raise KeyError
    assert not turns._taken
