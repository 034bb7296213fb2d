"""Libraries that a benchmark times in turns."""

from __future__ import annotations

import sys
from functools import partial

import pytest

from workers.benchmarks import turns as timing
from workers.benchmarks.turns import OURS, in_turns, turns
from workers.child.peers import LEAST, TURNS, Peer
from workers.messages.baselines import ONNX_RUNTIME


def test_libraries_take_turns_and_one_that_fails_is_left_out() -> None:
    again = "import itertools, sys\nfor _ in itertools.chain([0], sys.stdin): print('loud'); print({}, flush=True)"
    said = {
        OURS: '{"seconds": [2.0, 2.0]}',
        ONNX_RUNTIME: '{"seconds": [1.0, 1.0], "version": "1"}',
        "torch.compile": '{"error": "no C++ compiler"}',
    }
    ticks: list[str] = []
    libraries = {
        name: partial(Peer, name, [sys.executable, "-c", again.format(repr(line))]) for name, line in said.items()
    }
    found = in_turns(libraries, ticks.append)
    assert ticks[3:7] == [f"turn {turn} of {TURNS}: {name}" for turn in (1, 2) for name in (OURS, ONNX_RUNTIME)]
    assert found.ratios(OURS, ONNX_RUNTIME) == [2.0] * TURNS
    told = found.to_json()
    assert told["latencies"][OURS]["runs"] == 2 * TURNS
    assert set(told["latencies"]) == {OURS, ONNX_RUNTIME}
    assert told["errors"] == {"torch.compile": "torch.compile: no C++ compiler"}
    assert found.notes(ONNX_RUNTIME) == {"version": "1"}


def test_a_slow_network_has_fewer_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(turns()) == list(range(TURNS))
    monkeypatch.setattr(timing, "LONGEST", -1.0)
    assert list(turns()) == list(range(LEAST))
