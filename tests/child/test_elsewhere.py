"""What is asked of a device."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from workers.child.elsewhere import HELD, LOCKED, TOOK, TURNS, Elsewhere
from workers.child.peers import LONG, ArtifactFailed
from workers.messages.spec import RunSpec
from workers.tvm_backend.remote.line import DeviceRefused


class Slow:
    """A line to a device, on which nothing comes before its time is over."""

    def __init__(self) -> None:
        self.limits: list[float] = []

    def ask(self, verb: str, timeout: float, **given: Any) -> Any:
        if verb == "script":
            self.limits.append(given["seconds"])
            assert given["seconds"] < timeout, "the device says so itself"
        return {"output": '{"seconds": []}', "status": 0, "data": ""}


@pytest.mark.parametrize(("inputs", "seconds"), [(1, TOOK), (3, HELD)])
def test_each_of_the_inputs_has_the_time_that_one_has_while_others_wait(
    inputs: int, seconds: float, tmp_path: Path
) -> None:
    for name in ("model.so", "metadata.json", "run.py", "inputs.npz"):
        (tmp_path / name).touch()
    line = Slow()
    there = Elsewhere(line, tmp_path, print)  # type: ignore[arg-type]
    there.outputs([tmp_path / "inputs.npz"] * inputs, [tmp_path / "outputs.npz"] * inputs, 0)
    assert line.limits == [seconds]
    assert seconds < LOCKED


class Turns(Slow):
    """One that says how long each run took, and what it was asked."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds, self.asked, self.greeting = seconds, list[str](), {"onnxruntime": ""}

    def ask(self, verb: str, timeout: float, **given: Any) -> Any:
        self.asked.append(verb)
        return {**super().ask(verb, timeout, **given), "output": json.dumps({"seconds": [self.seconds] * 3})}


@pytest.mark.parametrize(("seconds", "turns"), [(0.01, TURNS), (LONG, 1)])
def test_a_device_is_held_for_a_turn_at_a_time(seconds: float, turns: int, tmp_path: Path) -> None:
    """Others wait no longer than LOCKED for it; a second turn of what takes that long tells nothing new."""
    for name in ("model.so", "metadata.json", "run.py"):
        (tmp_path / name).touch()
    line, told = Turns(seconds), list[str]()
    there = Elsewhere(line, tmp_path, told.append)  # type: ignore[arg-type]
    line.asked.clear()
    ours, theirs = there.timed(object(), told.append)  # type: ignore[arg-type]
    assert (ours.median, theirs) == (seconds, None)
    assert line.asked == ["hold", "script", "release"] * turns
    assert max(line.limits) * 2 <= HELD
    assert told[0] == f"timing the library, turn 1 of {TURNS}", "a sign of life each turn"


@pytest.mark.parametrize(
    ("asked", "reason"), [("compared", "it did not end within 270 s"), ("put", "[Errno 28] No space left on device")]
)
def test_a_peer_that_takes_too_long_or_finds_no_room_there_costs_no_library(
    tmp_path: Path, asked: str, reason: str
) -> None:
    class Slower(Turns):
        def ask(self, verb: str, timeout: float, **given: Any) -> Any:
            answer = super().ask(verb, timeout, **given)
            if verb == asked and given.get("name", "network.onnx") == "network.onnx" and given.get("data") != "":
                raise DeviceRefused(reason, "")
            return answer

    for name in ("model.so", "metadata.json", "run.py", "network.onnx"):
        (tmp_path / name).write_text(name)
    line = Slower(0.01)
    line.greeting["onnxruntime"] = "1.30"
    there, said = Elsewhere(line, tmp_path, print), list[str]()  # type: ignore[arg-type]
    spec = RunSpec(str(tmp_path / "network.onnx"), {"kind": "llvm"}, 1, 1e11, 1e10)
    ours, theirs = there.timed(spec, said.append)  # type: ignore[arg-type]
    assert (ours.median, theirs) == (0.01, None)
    assert said == [reason]
    assert line.asked.count("hold") == line.asked.count("release") == TURNS


@pytest.mark.parametrize("data", ["!!!!", "====", 5, None])
def test_a_device_that_sends_no_part_of_a_file_is_not_asked_for_ever(data: Any, tmp_path: Path) -> None:
    class Lying(Slow):
        def ask(self, verb: str, timeout: float, **given: Any) -> Any:
            return {**super().ask(verb, timeout, **given), "data": data or [1]}

    for name in ("model.so", "metadata.json", "run.py"):
        (tmp_path / name).touch()
    there = Elsewhere(Lying(), tmp_path, print)  # type: ignore[arg-type]
    with pytest.raises(ArtifactFailed, match=r"the device sent something for outputs\.npz that is no file's"):
        there.outputs([], [tmp_path / "outputs.npz"], 1000)


def test_a_device_that_sends_a_file_without_end_fills_no_disk(tmp_path: Path) -> None:
    class Endless(Slow):
        def ask(self, verb: str, timeout: float, **given: Any) -> Any:
            return {**super().ask(verb, timeout, **given), "data": b64encode(bytes(1000)).decode()}

    for name in ("model.so", "metadata.json", "run.py"):
        (tmp_path / name).touch()
    there, found = Elsewhere(Endless(), tmp_path, print), tmp_path / "outputs.npz"  # type: ignore[arg-type]
    with pytest.raises(ArtifactFailed, match=r"over the 2500 bytes that outputs\.npz can have"):
        there.outputs([], [found], 2500)
    assert found.stat().st_size <= 3000
