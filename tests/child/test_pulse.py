"""Signs of life: while the work goes on or waits for its turn, and not for ever beside a thread that hangs."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from workers.child import artifact, baseline, hardware, landscape
from workers.child.clock import RunClock
from workers.child.pulse import Pulse
from workers.child.tasks import Task
from workers.child.tune import PATIENCE
from workers.child.turn import TurnLock
from workers.landscapes import SimulatedClock
from workers.messages.channel import ControlReader
from workers.messages.events import Event
from workers.messages.orders import compile_order
from workers.messages.spec import AUTO, RunSpec
from workers.messages.tuning_log import FILE
from workers.sandbox.lock import MeasureLock

BEAT = 10.0  # s between beats


@pytest.fixture
def events() -> list[Event]:
    return []


@pytest.fixture
def clock() -> SimulatedClock:
    return SimulatedClock()


@pytest.fixture
def pulse(events: list[Event], clock: SimulatedClock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pulse]:
    """Its own thread is asleep: the tests beat."""
    monkeypatch.setattr("workers.child.pulse.INTERVAL", 3600.0)
    pulse = Pulse(events.append, RunClock(0.0, clock.now))
    pulse.patience = PATIENCE
    yield pulse
    pulse.close()


def beats(pulse: Pulse, events: list[Event], clock: SimulatedClock, seconds: float) -> int:
    """Signs of life in so many seconds without an event."""
    before = len(events)
    for _ in range(round(seconds / BEAT)):
        clock.advance(BEAT)
        pulse.beat()
    return len(events) - before


def test_a_quiet_work_gives_signs_of_life_and_an_event_is_one(
    pulse: Pulse, events: list[Event], clock: SimulatedClock
) -> None:
    pulse.tell("phase", name="importing", text="loading TVM")
    assert beats(pulse, events, clock, 60.0) == 5
    assert events[-1]["text"] == "still loading TVM"


def test_one_that_hangs_falls_silent_and_one_that_goes_on_speaks_again(
    pulse: Pulse, events: list[Event], clock: SimulatedClock
) -> None:
    assert beats(pulse, events, clock, PATIENCE) == round(PATIENCE / BEAT) - 1
    assert beats(pulse, events, clock, 3600.0) == 0
    pulse.tell("batch", measurements=[])
    assert beats(pulse, events, clock, 60.0) == 5


def test_one_that_hangs_before_its_clock_goes_on_falls_silent_too(events: list[Event], clock: SimulatedClock) -> None:
    pulse = Pulse(events.append, RunClock(50.0, clock.now))
    pulse.patience = PATIENCE
    assert beats(pulse, events, clock, PATIENCE) == round(PATIENCE / BEAT) - 1
    assert beats(pulse, events, clock, 3600.0) == 0
    assert {event["clock"] for event in events} == {50.0}
    pulse.close()


def test_a_task_with_a_deadline_of_its_own_is_not_given_up(
    pulse: Pulse, events: list[Event], clock: SimulatedClock
) -> None:
    pulse.patience = float("inf")
    assert beats(pulse, events, clock, 3600.0) == 360


def test_waiting_for_a_turn_is_no_hang_and_a_turn_that_hangs_is_one(
    pulse: Pulse, events: list[Event], clock: SimulatedClock, tmp_path: Path
) -> None:
    lock, entered = TurnLock(pulse, tmp_path / "own" / "lock"), threading.Event()

    def turn() -> None:
        with lock.exclusive():
            entered.set()
            leave.wait()

    leave = threading.Event()
    with MeasureLock(lock.path).exclusive():
        other = threading.Thread(target=turn, daemon=True)
        other.start()
        while not lock._held:
            pass
        assert beats(pulse, events, clock, 7200.0) == 720
        assert not entered.is_set()
    assert entered.wait(10)
    assert beats(pulse, events, clock, PATIENCE) < PATIENCE / BEAT
    assert beats(pulse, events, clock, 3600.0) == 0
    leave.set()
    other.join(10)
    assert beats(pulse, events, clock, 60.0) == 6


class Reached(Exception):
    """What the lock is taken for; here that is all."""


def reached(*_: Any) -> Any:
    raise Reached


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """TVM's part of measuring this machine, without a change to the tests' own process."""
    from workers.tvm_backend import runtime

    runtime.load()
    from workers.tvm_backend import peak

    monkeypatch.setattr(peak, "measure_peak", reached)
    monkeypatch.setattr(runtime, "environment", lambda threads: {})
    monkeypatch.setattr(runtime, "spread_threads", lambda: [0])
    monkeypatch.setattr(runtime, "on_core", lambda cores: nullcontext())


def compiling(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Task:
    def verified(*_: Any, turn: Callable[[], AbstractContextManager[Any]]) -> Any:
        with turn():
            return SimpleNamespace(passed=True)

    monkeypatch.setattr(artifact, "_build", lambda *_: None)
    monkeypatch.setattr(artifact, "verified", verified)
    monkeypatch.setattr(artifact, "_timed", reached)
    return artifact.compile_artifact


def comparing(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Task:
    monkeypatch.setattr(baseline, "onnxruntime", reached)
    return baseline.measure_baselines


def describing(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Task:
    request.getfixturevalue("machine")
    return hardware.describe_hardware


def recording(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Task:
    monkeypatch.setattr(landscape, "calibrate", reached)
    return landscape.record_landscape


@pytest.mark.parametrize("prepared", [compiling, comparing, recording, pytest.param(describing, marks=pytest.mark.tvm)])
def test_no_task_is_given_up_while_others_measure(
    prepared: Callable[..., Task], pulse: Pulse, events: list[Event], clock: SimulatedClock, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest,
) -> None:  # fmt: skip
    task, ended = prepared(monkeypatch, request), list[type[BaseException]]()
    spec = RunSpec("net.onnx", {"kind": "llvm"}, 1, 1e11, 1e10).to_json()
    order = compile_order(spec, tmp_path, "net", AUTO, {}, None, tmp_path / FILE, 0.0, None, "")
    order |= {"kind": "costs", "hardware": {"name": "a machine"}}  # of a recording
    pulse.patience = math.inf

    def work() -> None:
        try:
            task(order, ControlReader(), pulse)
        except Exception as error:
            ended.append(type(error))

    with MeasureLock().exclusive():
        worker = threading.Thread(target=work, daemon=True)
        worker.start()
        deadline = time.monotonic() + 30
        while not pulse._waits and not ended and time.monotonic() < deadline:
            time.sleep(0.01)
        pulse.beat()  # of the phase that it told
        assert beats(pulse, events, clock, 7200.0) == 720
        assert events[-1]["text"] == "still waiting for its turn"
        assert not ended
    worker.join(30)
    assert ended == [Reached]
    # With its turn begins its patience.
    spared = int(pulse.patience / BEAT)
    assert spared - 1 <= beats(pulse, events, clock, pulse.patience) <= spared
    assert beats(pulse, events, clock, 3600.0) == 0
