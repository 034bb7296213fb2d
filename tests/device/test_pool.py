"""What a pool asks of a device, as far as one that only answers can tell."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.tvm_backend.local import lock_in

pytestmark = pytest.mark.tvm

HARDWARE = {"name": "A board", "cores": 4, "target": {"kind": "llvm", "num-cores": 4}}


class Answering:
    """A line to a device that does whatever it is told."""

    def __init__(self, asked: list[str]) -> None:
        self.asked, self.greeting = asked, {"cache": None}
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

    monkeypatch.setattr(pool, "Nursery", lambda *given: None)
    call: Any = lambda: Answering(asked)  # noqa: E731
    return DevicePool(call, HARDWARE["target"], 4, lock_in(tmp_path), waiting=waiting)


def test_a_device_is_readied_while_nobody_times_on_it(pool: Any, asked: list[str]) -> None:
    pool._loaded({"name": "fixed", "parameters": {}}, 0)
    assert asked == ["closed", "waits", "hold", "hardware", "begin", "drop", "release"]


def test_a_device_that_is_refused_is_held_no_longer(pool: Any, asked: list[str]) -> None:
    from workers.tvm_backend.remote.line import DeviceRefused

    pool._name = "Another board"
    with pytest.raises(DeviceRefused, match="it is A board, not Another board"):
        pool._loaded({"name": "fixed", "parameters": {}}, 0)
    assert asked == ["closed", "waits", "hold", "hardware", "closed"]
