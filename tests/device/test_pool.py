"""What a pool asks of a device, as far as one that only answers can tell."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from multiprocessing import Pipe
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

from tests.tvm_backend.local import lock_in
from workers.engine.machine import Machine
from workers.engine.ports import Candidate
from workers.engine.space import Configuration
from workers.messages.effects import ENDS
from workers.tvm_backend.members import Task
from workers.tvm_backend.remote.line import DeviceRefused, Line
from workers.tvm_backend.remote.timing import check_timing

pytestmark = pytest.mark.tvm

TIMED = {
    "seconds": 0.5, "spread": 0.1, "runs": 3, "stopped": "complete", "taken": 2.0,
    "rested": 0.0, "waited": 0.0, "looks": [], "times": [0.5],
}  # fmt: skip
CACHES = [49152, None]
HARDWARE: dict[str, Any] = {"name": "A board", "cores": 4, "target": {"kind": "llvm", "num-cores": 4}}


class Answering:
    """A line to a device that does whatever it is told."""

    def __init__(self, asked: list[str]) -> None:
        self.asked, self.greeting = asked, {"caches": CACHES}
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

    def made() -> DevicePool:
        call: Any = partial(Answering, asked)
        return DevicePool(call, HARDWARE["target"], 4, lock_in(tmp_path), waiting=waiting)

    monkeypatch.setattr(pool, "Nursery", lambda *given: None)
    return made


def test_a_device_is_readied_while_nobody_times_on_it(pool: Any, asked: list[str]) -> None:
    pool()._loaded({"name": "fixed", "parameters": {}}, 0)
    assert asked == ["closed", "waits", "hold", "hardware", "begin", "drop", "release"]


def test_a_device_that_is_refused_is_held_no_longer(pool: Any, asked: list[str]) -> None:
    made = pool()
    made._name = "Another board"
    with pytest.raises(DeviceRefused, match="it is A board, not Another board"):
        made._loaded({"name": "fixed", "parameters": {}}, 0)
    assert asked == ["closed", "waits", "hold", "hardware", "closed"]


def ran(pool: Any, path: Path, answers: Sequence[dict[str, Any]]) -> tuple[list[Any], list[Task]]:
    """What is sent to a device that answers so, and what became of as many programs of one library."""
    path.write_bytes(b"code")
    candidate = Candidate(0, Configuration(0, (0,)), "random")
    made, told, (ours, theirs) = pool(), list[Any](), Pipe()
    made.tasks = [Task(number, candidate, library=str(path), program={"id": number}) for number in range(len(answers))]
    made._due.extend(made.tasks)
    made._line = Line(0, ours, lambda: 0)

    def answer() -> None:
        for one in answers:
            told.append(json.loads(theirs.recv_bytes())["library"])
            theirs.send_bytes(json.dumps(one).encode())

    with ours, theirs:
        thread = Thread(target=answer, daemon=True)
        thread.start()
        made._run(made.tasks, {})
        thread.join(5.0)
    return told, made.tasks


def test_after_an_error_a_device_is_sent_what_is_left_of_a_library_again(pool: Any, tmp_path: Path) -> None:
    """It may not have loaded it."""
    told, tasks = ran(pool, tmp_path / "programs.so", [{"error": "no"}, TIMED, TIMED])
    sent = [library and [program["id"] for program in library["programs"]] for library in told]
    assert sent == [[0, 1, 2], [1, 2], None]
    assert [task.outcome.cause for task in tasks if task.outcome] == ["run", "", ""]


ODD: list[dict[str, Any]] = [
    *({name: value} for name in ("seconds", "spread", "taken") for value in (math.nan, math.inf, -1.0, 10**400, "1", None)),
    *({"runs": value} for value in (0, 2**70, 1.5, "3")),
    *({"stopped": value} for value in ("x" * 1000, "another", ["late"], None)),
    *({"times": value} for value in ([0.5] * 21, [math.nan], ["x"], 5)),
    {"seconds": 0.0},
]  # fmt: skip
FAILED: list[dict[str, Any]] = [{"error": "no", "taken": value} for value in (math.nan, math.inf, -1.0, "1", None)]


def test_what_a_timer_says_of_a_program_is_taken() -> None:
    check_timing(TIMED)
    for stopped in ENDS:
        check_timing(TIMED | {"stopped": stopped, "rested": 1, "times": [0.5] * 20})


@pytest.mark.parametrize("odd", ODD, ids=str)
def test_a_device_that_says_of_a_program_what_no_machine_would_is_refused(
    pool: Any, tmp_path: Path, odd: dict[str, Any]
) -> None:
    """Words of its own would be kept, each, and counted in the run's report."""
    with pytest.raises(DeviceRefused, match="it says of a program's time what no machine would"):
        ran(pool, tmp_path / "programs.so", [TIMED | odd])
    for name in odd.keys() - {"seconds"}:
        with pytest.raises(DeviceRefused):
            check_timing({kept: value for kept, value in TIMED.items() if kept != name})


@pytest.mark.parametrize("odd", FAILED, ids=str)
def test_what_a_program_took_that_failed_is_held_to_the_same(pool: Any, tmp_path: Path, odd: dict[str, Any]) -> None:
    with pytest.raises(DeviceRefused, match="it says of a program's time what no machine would"):
        ran(pool, tmp_path / "programs.so", [odd])


def test_the_caches_of_a_device_are_its_own_also_those_it_does_not_tell(pool: Any) -> None:
    from workers.tvm_backend.backend import machine_of

    there = machine_of({"kind": "llvm", "mcpu": "haswell"}, 2, pool().caches)
    assert isinstance(there, Machine)
    assert (there.cache, there.second) == (49152, Machine.second)
