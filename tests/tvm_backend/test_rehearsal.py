"""Operators heard while they run in their network."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from tests.tvm_backend.local import mixed
from tests.tvm_backend.test_configurations import Compiled, drawn_input

pytestmark = pytest.mark.tvm


@pytest.fixture(scope="module")
def compiled(zoo_cache: Path) -> Compiled:
    return Compiled(mixed(zoo_cache))


def test_every_operator_is_heard_in_every_build_and_round(compiled: Compiled, monkeypatch: pytest.MonkeyPatch) -> None:
    from workers.tvm_backend import rehearsal

    random = np.random.default_rng(0)
    machines = [rehearsal.machine(compiled.network.compiled(compiled.drawn(random))) for _ in range(2)]
    inputs = rehearsal.tensors([drawn_input(compiled.shape)])
    turns: list[bool] = []

    @contextmanager
    def alone() -> Iterator[None]:
        turns.append(True)
        yield

    heard = rehearsal.operator_seconds(machines, compiled.network.indices, inputs, alone=alone)
    assert len(turns) == 1 + rehearsal.ROUNDS, "others have the machine between them"
    assert [len(rounds) for rounds in heard] == [rehearsal.ROUNDS] * 2
    everyone = set(range(len(compiled.extracted)))
    assert all(set(told) == everyone for rounds in heard for told in rounds)
    assert all(0 < seconds < 1 for rounds in heard for told in rounds for seconds in told.values())
    listened: list[object] = []
    monkeypatch.setattr(rehearsal._Ear, "__call__", lambda *told: listened.append(told))
    whole = rehearsal.inference_seconds(machines, inputs)
    assert not listened, "whole inferences are timed without an ear"
    assert len(whole) == 2
    assert all(0 < seconds < 1 for seconds in whole)


def test_an_operator_of_another_name_is_left_out(compiled: Compiled) -> None:
    from workers.tvm_backend import rehearsal

    machine = rehearsal.machine(compiled.network.compiled(compiled.drawn(np.random.default_rng(1))))
    inputs = rehearsal.tensors([drawn_input(compiled.shape)])
    ((told, *_rest),) = rehearsal.operator_seconds([machine], {"somebody else": 0}, inputs)
    assert told == {}
