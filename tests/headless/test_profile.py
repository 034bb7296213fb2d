"""Where the wall clock of a command went, and how much memory it held."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import zoo
from workers.headless import tune
from workers.headless.memory import PACE, Memory
from workers.headless.profile import Profile
from workers.headless.profile_table import WORDS, profile_lines
from workers.pipeline.accounts import Accounts, grouped

TOLERANCE = 0.02
LEFT_OUT = "command/start"
"""In a test's own process that is the whole session so far."""


def complete(figures: dict[str, Any]) -> bool:
    """Whether the accounts explain the wall clock within the tolerance."""
    accounts = figures["accounts"]
    wall = figures["seconds"] - accounts[LEFT_OUT]
    named = sum(seconds for name, seconds in accounts.items() if name not in (LEFT_OUT, "unaccounted"))
    return bool(abs(wall - named) <= TOLERANCE * wall)


@pytest.fixture(scope="module")
def profiled(zoo_cache: Path, machine_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Runs a profile of the tiny network in this process; its --out directory."""

    def run() -> Path:
        out = tmp_path_factory.mktemp("profiled")
        parser = argparse.ArgumentParser()
        tune.add_arguments(parser)
        words = [str(zoo.tiny(zoo_cache)), "--trials", "60", "--profile", "--out", str(out)]
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_CACHE_HOME", str(machine_cache))
            assert tune.run(parser.parse_args(words)) == 0
        return out

    return run


def read(out: Path) -> dict[str, Any]:
    return dict(json.loads((out / "profile.json").read_text()))


@pytest.mark.tvm
def test_the_accounts_of_a_real_run_explain_its_wall_clock(
    profiled: Callable[[], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    out = profiled()
    found, said = read(out), capsys.readouterr().out
    assert complete(found), found["accounts"]
    assert sum(found["accounts"].values()) == pytest.approx(found["seconds"], abs=1e-3)
    groups = grouped(found["accounts"])
    assert {"command", "process", "start", "warm-up", "tuning", "artifact"} <= set(groups)
    assert min(groups[name] for name in ("start", "tuning", "artifact")) > 0.1
    known = set(WORDS)
    assert {n for n in found["accounts"] if n not in known and n.partition("/")[2] not in known} == set()
    summary = json.loads((out / "summary.json").read_text())
    assert sum(row["configurations"] for row in found["operators"]) == summary["trials"]
    assert sum(row["gain_ms"] for row in found["operators"]) >= 0
    assert 100 < found["memory"]["peak"]["tuning"] / 2**20 < 2048
    assert "unaccounted" in said
    assert "memory at its peak" in said


@pytest.mark.tvm
@pytest.mark.mutation
def test_an_account_that_is_dropped_is_noticed(profiled: Callable[[], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    of = Accounts.of
    monkeypatch.setattr(Accounts, "of", lambda self: {k: v for k, v in of(self).items() if k != "artifact/verify"})
    assert not complete(read(profiled()))


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
