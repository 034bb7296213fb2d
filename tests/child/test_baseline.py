"""Both libraries in turns, and who else measures meanwhile."""

from __future__ import annotations

import fcntl
import json
import subprocess
import sys
from collections.abc import Iterator
from contextvars import copy_context
from pathlib import Path
from typing import Any

import pytest

from tests.networks.forms import topk
from tests.tvm_backend.local import spec_of
from tests.zoo import tiny
from workers.child import baseline
from workers.child.__main__ import passing
from workers.child.baseline import LOOK, TURNS, measure_baselines
from workers.child.clock import RunClock
from workers.child.peers import LONG, ArtifactFailed, Peer, in_turns
from workers.child.pulse import Pulse
from workers.child.turn import TurnLock
from workers.messages.baselines import BASELINES
from workers.messages.channel import ControlReader

# Says what it is told that a run takes, and then 1 where nobody else could time anything at that moment, else 0.
TIMED = """
import fcntl, sys
for _ in sys.stdin:
    with open(sys.argv[1]) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            alone = 0
        except BlockingIOError:
            alone = 1
    print('{"seconds": [%s, %d]}' % (sys.argv[2], alone), flush=True)
"""


@pytest.fixture
def lock(tmp_path: Path) -> Iterator[TurnLock]:
    pulse = Pulse(lambda event: None, RunClock(0.0))
    lock = TurnLock(pulse, tmp_path / "own" / "lock")
    lock.files()
    yield lock
    pulse.close()


def peer(lock: TurnLock, seconds: float) -> Peer:
    return Peer("a library", [sys.executable, "-c", TIMED, str(lock.path), str(seconds)], order="{}")


def test_others_measure_between_two_turns_and_nobody_in_one(lock: TurnLock) -> None:
    pairs = []
    with peer(lock, 0.25) as ours, peer(lock, 0.5) as theirs:
        for pair in in_turns(ours, theirs, lock, TURNS):
            with lock.path.open() as other:
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            pairs.append(pair)
    started, *later = pairs
    assert started == ([0.25, 0.0], [0.5, 0.0])
    assert later == (TURNS - 1) * [([0.25, 1.0], [0.5, 1.0])]


@pytest.mark.parametrize("seconds", [(2 * LONG, 0.25), (0.25, 2 * LONG)])
def test_a_library_whose_first_turn_takes_long_has_no_second(lock: TurnLock, seconds: tuple[float, float]) -> None:
    with peer(lock, seconds[0]) as ours, peer(lock, seconds[1]) as theirs:
        assert len(list(in_turns(ours, theirs, lock))) == 1


def test_a_library_that_takes_long_untuned_is_looked_at_once_and_the_other_goes_on(lock: TurnLock) -> None:
    """ResNet-50's plain loops took 98 s of a run's clock, ten inferences nobody needs for "170 times as long"."""
    with peer(lock, 2 * LOOK) as ours, peer(lock, 0.5) as theirs:
        pairs = list(in_turns(ours, theirs, lock, TURNS, LOOK))
    assert [bool(mine) for mine, _ in pairs] == [True] + (TURNS - 1) * [False]
    assert [other for _, other in pairs[1:]] == (TURNS - 1) * [[0.5, 1.0]]


def test_a_library_that_is_paced_is_timed_first_when_its_turn_comes(lock: TurnLock) -> None:
    script = f"print('{{\"done\": null}}', flush=True)\n{TIMED}"
    with (
        Peer("a library", [sys.executable, "-c", script, str(lock.path), "0.25"]) as ours,
        peer(lock, 0.5) as theirs,
    ):
        assert next(in_turns(ours, theirs, lock)) == ([0.25, 1.0], [0.5, 0.0])


def test_onnx_runtime_has_its_turns_where_the_import_is_wrong(lock: TurnLock) -> None:
    with peer(lock, 0.5) as theirs:
        assert list(in_turns(None, theirs, lock, TURNS))[1:] == (TURNS - 1) * [([], [0.5, 1.0])]


@pytest.mark.tvm
def test_a_network_that_sorts_runs_by_its_archive_s_script(tmp_path: Path) -> None:
    """What sorts is in a library of TVM's that its runtime does not load."""
    network = tmp_path / "sorting.onnx"
    network.write_bytes(topk().SerializeToString())
    events: list[dict[str, Any]] = []
    pulse = Pulse(events.append, RunClock(0.0))
    order = {"spec": spec_of(network).to_json(), "name": "sorting", "work_dir": str(tmp_path)}
    try:
        measure_baselines(order, ControlReader(), pulse)
    finally:
        pulse.close()
    assert [event["text"] for event in events if event["kind"] == "log" and event["level"] == "error"] == []
    assert {event["name"] for event in events if event["kind"] == "baseline"} == set(BASELINES)
    given = ("--inputs", *(str(tmp_path / f"inputs-{n}.npz") for n in range(2)))
    outputs = [str(tmp_path / f"{n}.npz") for n in range(2)]
    argv = [
        sys.executable,
        str(tmp_path / "untuned" / "run.py"),
        *given,
        "--outputs",
        *outputs,
        "--json",
        "--runs",
        "0",
    ]

    def lines(*more: str) -> list[str]:
        return subprocess.run(
            [*argv, *more], input="\n\n", capture_output=True, text=True, check=True
        ).stdout.splitlines()

    assert lines() == ['{"seconds": []}']
    assert [json.loads(line) for line in lines("--paced")] == [*({"done": path} for path in outputs), {"seconds": []}]


@pytest.mark.parametrize("beside", [True, False])
def test_a_network_is_given_up_soon_where_another_accounts_run_has_the_machine(
    beside: bool, tmp_path: Path, zoo_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Answered(Exception):
        pass

    def told(*_: object) -> None:
        raise Answered

    monkeypatch.setattr(baseline, "BRIEF", 0.01)
    monkeypatch.setattr(baseline, "tell_baseline", told)
    spec = spec_of(tiny(zoo_cache)).to_json()
    order = {"spec": spec, "name": "tiny", "work_dir": str(tmp_path), "beside": beside}
    pulse = Pulse(lambda event: None, RunClock(0.0))
    try:
        with pytest.raises(ArtifactFailed if beside else Answered) as ended:
            copy_context().run(measure_baselines, order, ControlReader(), pulse)
    finally:
        pulse.close()
    if beside:
        assert "did not answer within 0.01 s" in str(ended.value)
        assert passing(ended.value, "baseline"), "it is asked again in the turn of its own run"
