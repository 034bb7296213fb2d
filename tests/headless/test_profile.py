"""Where the wall clock of a command went, and how much memory it held."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from workers.headless.memory import PACE, Memory
from workers.headless.profile import Profile
from workers.headless.profile_table import profile_lines


def test_the_clock_begins_with_the_process() -> None:
    code = "import time; time.sleep(0.3); from workers.headless.profile import WallClock; print(WallClock().now())"
    began = os.times().elapsed
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert 0.3 < float(told.stdout) <= os.times().elapsed - began + 0.02


def events_of(profile: Profile, base: float, events: list[dict[str, Any]]) -> None:
    with profile.process("tuning", base) as hear:
        for event in events:
            hear(event)


def test_an_attempt_that_broke_off_is_named() -> None:
    profile = Profile()
    events = [{"kind": "phase", "name": "importing", "text": "", "clock": 5.5}, {"kind": "log", "clock": 5.75}]
    events_of(profile, 5.0, events)
    assert profile.accounts.of()["process/imports"] == pytest.approx(0.5)
    assert profile.accounts.of()["broken off"] == pytest.approx(0.25)


def test_the_table_shows_large_accounts_and_every_group() -> None:
    accounts = {"tuning/build": 60.0, "tuning/search/plan": 0.001, "start/load": 30.0, "unaccounted": 10.0}
    figures = {"seconds": 100.0, "accounts": accounts, "compiling": 90.0, "operators": [], "memory": {}}
    lines = profile_lines(figures)
    assert len(lines) == 7
    assert [line.split()[0] for line in lines[1:]] == [
        "tuning",
        "building",
        "start",
        "TVM,",
        "unaccounted",
        "compilers",
    ]
    assert lines[1].endswith("60.0 %  ##############")
    assert lines[-1].endswith("building: 1.50")


def test_growth_counts_from_a_quarter_of_the_run_on() -> None:
    """A process that keeps four mebibytes with every look, from the first on."""
    code = (
        "import sys\nheld = []\nfor line in sys.stdin:\n    held.append(b'x' * int(line))\n"
        "    print(len(held), flush=True)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, "marked"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        memory = Memory("marked", os.getpid())
        for number in range(1, 9):
            process.stdin.write(f"{4 * 2**20}\n")
            process.stdout.readline()
            memory.look("tuning", number * PACE, float(number), 10 * number)
        process.stdin.close()
    found = memory.figures()
    assert found["measurements"] == 60
    assert found["growth"]["child"] == pytest.approx(24 * 2**20, rel=0.1)
    assert found["peak"]["tuning"] > 32 * 2**20


def test_a_slot_says_its_own_trials_a_batch_all_there_were(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[int] = []
    monkeypatch.setattr(Memory, "look", lambda self, stage, now, clock, trials: heard.append(trials))
    profile = Profile(memory=True)
    operators = [{"index": 0, "name": "conv", "weight": 1}]
    slot = {"operator": 0, "began": 0.5, "ended": 1.5, "before": None, "after": 1.0}
    events_of(
        profile,
        0.0,
        [
            {"kind": "operators", "operators": operators, "clock": 0.5},
            {"kind": "batch", "trials": 40, "measurements": [], "slot": 1, "clock": 1.0},
            {"kind": "slot", "trials": 16, "clock": 1.5, **slot},
        ],
    )
    assert heard == [0, 40, 40]
