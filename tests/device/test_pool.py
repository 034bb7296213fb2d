"""What a pool asks of a device, as far as one that only answers can tell."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.tvm_backend.local import lock_in
from workers.engine.machine import Machine

pytestmark = pytest.mark.tvm

HARDWARE: dict[str, Any] = {"name": "A board", "cores": 4, "target": {"kind": "llvm", "num-cores": 4}}


class Answering:
    """A line to a device that does whatever it is told."""

    def __init__(self, asked: list[str], cache: int | None = None) -> None:
        self.asked, self.greeting = asked, {"cache": cache}
        self.connection = SimpleNamespace(close=lambda: None)

    def ask(self, verb: str, timeout: float, **arguments: Any) -> dict[str, Any]:
        self.asked.append(verb)
        return {"hardware": HARDWARE}

    def send(self, verb: str, timeout: float) -> None:
        self.asked.append(verb)

    def receive(self) -> dict[str, Any]:
        return {}

    def close(self) -> None:
        self.asked.append("closed")


@pytest.fixture
def asked() -> list[str]:
    return []


@pytest.fixture
def pool(asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    from workers.tvm_backend import pool
    from workers.tvm_backend.remote.pool import DevicePool

    def waiting(turn: AbstractContextManager[float]) -> AbstractContextManager[float]:
        asked.append("waits")
        return turn

    def made(cache: int | None = None) -> DevicePool:
        call: Any = partial(Answering, asked, cache)
        return DevicePool(call, HARDWARE["target"], 4, lock_in(tmp_path), waiting=waiting)

    monkeypatch.setattr(pool, "Nursery", lambda *given: None)
    return made


def test_a_device_is_readied_while_nobody_times_on_it(pool: Any, asked: list[str]) -> None:
    pool()._loaded({"name": "fixed", "parameters": {}}, 0)
    assert asked == ["closed", "waits", "hold", "hardware", "begin", "drop", "release"]


def test_a_device_that_is_refused_is_held_no_longer(pool: Any, asked: list[str]) -> None:
    from workers.tvm_backend.remote.line import DeviceRefused

    made = pool()
    made._name = "Another board"
    with pytest.raises(DeviceRefused, match="it is A board, not Another board"):
        made._loaded({"name": "fixed", "parameters": {}}, 0)
    assert asked == ["closed", "waits", "hold", "hardware", "closed"]


@pytest.mark.parametrize(("told", "taken"), [(49152, 49152), (None, Machine.cache)])
def test_the_cache_of_a_device_that_tells_none_is_not_this_machines(pool: Any, told: int | None, taken: int) -> None:
    assert pool(told).first_cache == taken
