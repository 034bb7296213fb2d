"""Signs of life: while the work goes on or waits for its turn, and not for ever beside a thread that hangs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from workers.child.pulse import Pulse
from workers.child.tune import PATIENCE, TurnLock
from workers.landscapes import SimulatedClock
from workers.messages.events import Event
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
    pulse = Pulse(events.append, clock)
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
