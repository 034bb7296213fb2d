"""What a run tells at its end, however it ended."""

from __future__ import annotations

import argparse
import signal
from types import SimpleNamespace
from typing import Any

import pytest

from workers.headless.display import Display, human
from workers.headless.entry import run_command
from workers.headless.errors import Failure, UserMistake
from workers.headless.summary import summary
from workers.messages.spec import Budget
from workers.supervision import Ending

RESULT = {
    "passed": True,
    "latency": {"median": 0.002, "lower_quartile": 0.0019, "upper_quartile": 0.0021},
    "onnxruntime": {"median": 0.003},
    "ratio": 2 / 3,
    "rehearsal": None,
    "verdict": {"sentence": "equal"},
}


BEFORE = {"ONNX Runtime": 0.003, "TVM untuned": 0.05}


def batch(clock: float, trials: int, latency: float | None, **spent: float) -> dict[str, Any]:
    return {"kind": "batch", "clock": clock, "trials": trials, "latency": latency, "measurements": [], "spent": spent}


def finished(clock: float, trials: int, reason: str, **spent: float) -> dict[str, Any]:
    report = {"spent": spent, "search": {"fits": trials}, "differs_from_round_robin": 0}
    return {
        "kind": "finished", "clock": clock, "trials": trials, "latency": 0.004, "reason": reason, "report": report,
    }  # fmt: skip


SLOT = {"kind": "slot", "clock": 3.0, "trials": 16, "decision": {"differs_from_round_robin": True}}
STILL = {"kind": "log", "clock": 44.0, "level": "info", "text": "still tuning"}


def told(events: list[dict[str, Any]], ending: Ending) -> dict[str, Any]:
    return dict(summary(events, ending, RESULT, [{"known": 0, "alike": 1}, {"known": 3}])["figures"])


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-3.0, "0 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (200, "3 min 20 s"), (4800, "1 h 20 min")],
)
def test_times_are_told_in_the_units_they_fill(seconds: float, text: str) -> None:
    assert human(seconds) == text


def test_a_run_that_said_its_reason_tells_what_it_said() -> None:
    events = [batch(2.0, 8, None, build=1.0), SLOT, batch(4.0, 24, 0.004, build=3.0)]
    last = finished(8.0, 24, "trials", build=4.0, search=4.0)
    found = told([*events, last], Ending("finished", last=last))
    assert (found["seconds"], found["trials"], found["reason"]) == (8.0, 24, "trials")
    assert found["share"] == {"build": 0.5, "search": 0.5}
    assert (found["complete_after"], found["search"], found["slots"]) == (4.0, {"fits": 24}, 1)
    assert (found["operators"], found["operators_known"], found["operators_alike"]) == (2, 1, 1)


def test_a_run_that_was_compared_before_it_began_says_how_much_faster_than_untuned_it_is() -> None:
    before = [{"kind": "baseline", "name": name, "seconds": seconds, "clock": 0.0} for name, seconds in BEFORE.items()]
    last = finished(8.0, 24, "trials", build=4.0)
    events = [batch(4.0, 24, 0.004), last]
    found = summary([*before, *events], Ending("finished", last=last), RESULT, [])
    assert found["figures"]["untuned"] == 0.05
    assert found["lines"][1].endswith("ONNX Runtime 3.000 ms: 0.67 x, TVM untuned 50 ms: 25 times as long")
    assert told(events, Ending("finished", last=last))["untuned"] is None


@pytest.mark.parametrize("paused", [False, True], ids=["in its first attempt", "after a pause"])
def test_a_child_that_was_killed_when_stopped_leaves_the_figures_of_what_it_saved(paused: bool) -> None:
    before = [finished(5.0, 24, "paused", build=4.0, search=1.0)] if paused else []
    events = [batch(4.0, 24, 0.004, build=4.0), *before, SLOT, batch(40.0, 60, 0.002, build=30.0, search=10.0), STILL]
    ending = Ending("stopped", exit_code=-signal.SIGKILL)
    found = told(events, ending)
    assert (found["seconds"], found["trials"], found["sum_of_operators"]) == (40.0, 60, 0.002)
    assert found["share"] == {"build": 0.75, "search": 0.25}
    assert (found["reason"], found["search"]) == ("stopped", {})
    assert summary(events, ending, RESULT, [])["lines"][-1].endswith("1 unlike round-robin")


def test_the_last_lines_say_what_each_part_changed_and_which_changed_nothing() -> None:
    search = {"reached": 610, "enumerated": 0, "evaluations": 5000, "explorer": 640, "not_greedy": 0}
    last = finished(8.0, 24, "trials", build=4.0)
    last["report"] |= {"search": search, "parts": {"scheduler": "dynatune", "explorer": "ppo", "sampler": "adaptive"}}
    lines = summary([batch(4.0, 24, 0.004), SLOT, last], Ending("finished", last=last), RESULT, [])["lines"]
    assert lines[-3:] == [
        "slots: 1, 0 decided by the belief (0 of them unlike round-robin), 1 unlike round-robin. "
        "The belief changed nothing: no slot was decided by it.",
        "explorer: 610 of 640 candidates reached by walking",
        "sampler: 0 of 640 candidates chosen against greedy. The sampler changed nothing: it chose as greedy would have.",
    ]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{}, {"known": 0, "alike": 0}], ""),
        ([{"known": 9, "alike": 0}, {}], "1 of 2 operators known from earlier runs\n"),
        ([{"known": 9}, {"alike": 2}, {"alike": 1}], "1 of 3 operators known from earlier runs, 2 like some of them\n"),
        ([{"known": 0, "alike": 4}, {}], "1 of 2 operators like some of earlier runs\n"),
    ],
)
def test_a_run_says_how_many_operators_earlier_runs_tell_something_of(
    capsys: pytest.CaptureFixture[str], rows: list[dict[str, int]], words: str
) -> None:
    Display(Budget()).hear({"kind": "operators", "operators": rows, "clock": 1.0})
    assert capsys.readouterr().err == words


@pytest.mark.parametrize("level", ["info", "warning", "error"])
def test_what_a_run_says_is_said_on(capsys: pytest.CaptureFixture[str], level: str) -> None:
    Display(Budget()).hear({"kind": "log", "level": level, "text": "3 workers were ended", "clock": 1.0})
    assert "3 workers were ended" in capsys.readouterr().err


CODES = "conv\x1b[2J\x1b]0;title\x07\r\x9b1A\u202e, é\udc9b\n\tend"
SEEN = r"conv\x1b[2J\x1b]0;title\x07\r\x9b1A\u202e, é\udc9b" + "\n\tend"
"""Codes of a terminal are spelled out; letters, line ends and tabs are not."""


def test_codes_in_what_a_child_says_do_not_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    Display(Budget()).hear({"kind": "log", "level": "info", "text": CODES, "clock": 1.0})
    Display.say(CODES)
    assert capsys.readouterr() == (f"{SEEN}\n", f"{SEEN}\n")


@pytest.mark.parametrize("error", [UserMistake, Failure])
def test_codes_in_why_a_command_ends_do_not_reach_the_terminal(
    capsys: pytest.CaptureFixture[str], error: type[Exception]
) -> None:
    def run(arguments: argparse.Namespace) -> int:
        raise error(CODES)

    command = SimpleNamespace(add_arguments=lambda parser: None, run=run)
    assert run_command(argparse.ArgumentParser(), [("end", lambda: command, "ends")], "all is kept", ["end"])
    assert capsys.readouterr().err == f"{SEEN}\n"


@pytest.mark.parametrize(
    ("gain", "unknown", "least", "words"),
    [
        (0.012, 0.001, None, "expected of 1 min 12 s more: 1.2 % less\n"),
        (0.012, 0.001, 0.005, "expected of 1 min 12 s more: 1.2 % less (ends under 0.5 %)\n"),
        (0.012, 0.011, None, "expected of 1 min 12 s more: perhaps 1.2 % less\n"),
        (0.6, 0.4, None, "expected of 1 min 12 s more: too early to say\n"),
        (0.6, 0.1, None, "expected of 1 min 12 s more: 60.0 % less\n"),
    ],
)
def test_a_run_says_what_more_time_should_bring(
    capsys: pytest.CaptureFixture[str], gain: float, unknown: float, least: float | None, words: str
) -> None:
    display = Display(Budget(min_gain=least))
    expected = {"gain": gain, "unknown": unknown, "seconds": 72.0}
    display.hear({**SLOT, "decision": {**SLOT["decision"], "expected": expected}})
    display.hear(SLOT)
    display.hear(batch(4.0, 24, 0.004, build=3.0) | {"failures": 0})
    assert capsys.readouterr().err.endswith(words)
