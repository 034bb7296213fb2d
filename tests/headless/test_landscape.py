"""Recording landscapes from the command line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import zoo
from tests.command_line import Told
from workers.child.clock import RunClock
from workers.child.pulse import Pulse
from workers.headless import landscape
from workers.headless.errors import UserMistake
from workers.headless.landscape import _alone, _of_this_machine, recording_name
from workers.landscapes import Costs, CurveRecording, SpaceRecording, calibration
from workers.landscapes.calibration import every_part
from workers.messages.channel import ControlReader
from workers.messages.spec import RunSpec
from workers.supervision import Ending, Journal

pytestmark = pytest.mark.tvm


def test_curves_of_a_tiny_network(told: Told, zoo_cache: Path, tmp_path: Path) -> None:
    Costs({}).write(tmp_path / "costs.json")
    arguments = (
        "landscape", "record", zoo.tiny(zoo_cache), "--kind", "curve", "--trials", 6, "--seeds", 1, "--out", tmp_path,
    )  # fmt: skip
    code, said, errors = told(*arguments)
    assert code == 0, errors
    (path,) = tmp_path.glob("tiny-auto-*-threads.curve.npz")
    assert path.name in said
    first = CurveRecording.read(path)
    assert len(first.searches) == len(first.header["operators"]) >= 2
    assert all(len(search) and search.best[-1] < 1 for row in first.searches for search in row)
    assert first.searches[0][0].build.max() > 0
    assert first.header["thrift"] is True
    assert np.nanmax(first.searches[0][0].measure) > 0
    code, _, errors = told(*arguments)  # all is there: nothing is measured again
    assert code == 0, errors
    second = CurveRecording.read(path)
    kept = path.read_bytes()
    code, _, errors = told(*arguments[:5], "--trials", 2, *arguments[7:])
    assert code == 2
    assert f"{path} is another recording" in errors
    assert path.read_bytes() == kept
    assert np.array_equal(second.searches[0][0].seconds, first.searches[0][0].seconds, equal_nan=True)


def test_a_part_of_the_space_of_a_tiny_network(told: Told, zoo_cache: Path, tmp_path: Path) -> None:
    Costs({}).write(tmp_path / "costs.json")
    code, said, errors = told(
        "landscape", "record", zoo.tiny(zoo_cache), "--kind", "space", "--operators", 1, "--configurations", 12,
        "--out", tmp_path,
    )  # fmt: skip
    assert code == 0, errors
    (path,) = tmp_path.glob("tiny-auto-*-threads.space.npz")
    assert path.name in said
    recording = SpaceRecording.read(path)
    part = recording.parts[0]
    assert recording.header["thrift"] is False
    assert 4 <= part.operator.size <= 12
    assert len(part.times) == part.operator.size
    assert (part.true < 1).mean() > 0.5


def test_parts_by_other_code_versions_or_numbers_are_no_parts_of_a_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.child import landscape as recording

    folders: list[Path] = []
    monkeypatch.setattr(recording, "_backends", lambda *_: None)
    monkeypatch.setattr(
        recording, "record_curves", lambda make, chosen, seeds, trials, parts, watch: folders.append(parts)
    )
    monkeypatch.setattr(recording, "WORKERS", tmp_path)
    spec = RunSpec("net.onnx", {"kind": "llvm"}, 2, 1e11, 1e10)
    order = {"kind": "curve", "name": "net", "network": "net", "hardware": {}, "trials": 6, "seeds": [0]}
    order["made"] = "by these words"
    for room in ("engine", "landscapes", "networks", "tvm_backend"):
        (tmp_path / room).mkdir()
    code = tmp_path / "engine" / "search.py"
    pulse = Pulse(lambda event: None, RunClock(0.0))
    try:
        for text, versions, parts in (
            ("one", {}, {}),
            ("one", {}, {}),
            ("another", {}, {}),
            ("another", {"apache-tvm": "0.1.2"}, {}),
            ("another", {"apache-tvm": "0.1.2"}, {"rhythm.plan": "8"}),
        ):
            code.write_text(text)
            monkeypatch.setattr(recording, "_versions", lambda told=versions: {"versions": told})
            asked = {**order, "spec": replace(spec, parts=parts).to_json(), "work_dir": str(tmp_path)}
            recording.record_landscape(asked, ControlReader(), pulse)
    finally:
        pulse.close()
    first, again, *others = folders
    assert first == again
    assert len({first, *others}) == 4


def test_recordings_by_other_methods_or_of_other_machines_have_other_names() -> None:
    assert recording_name("net", "auto", "AMD EPYC 9B45 (x2)", 2) == "net-auto-amd-epyc-9b45-x2-2-threads"
    names = {recording_name("net", method, machine, n) for method in "ab" for machine in ("x", "y") for n in (1, 2)}
    assert len(names) == 8


def test_another_machine_s_directory_is_refused(tmp_path: Path) -> None:
    _of_this_machine(tmp_path, "here")
    Costs({}, "here").write(tmp_path / "costs.json")
    _of_this_machine(tmp_path, "here")
    with pytest.raises(UserMistake, match=r"another machine \(here, not there\); name another"):
        _of_this_machine(tmp_path, "there")


@pytest.mark.parametrize(("kept", "code"), [('{"machine": "there", "seconds": {}, "sources": {}}', 2), ("{", 0)])
def test_prices_of_another_machine_are_not_written_over_and_damaged_ones_are(
    told_here: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: str, code: int
) -> None:
    monkeypatch.setattr(landscape, "ask", lambda order: {"hardware": {"name": "here"}})
    monkeypatch.setattr(landscape, "_calibrate", lambda out, hardware: 0)
    (tmp_path / "costs.json").write_text(kept)
    found, _, errors = told_here("landscape", "calibrate", "--out", tmp_path)
    assert found == code, errors
    assert ("of another machine (there, not here); name another one" in errors) == bool(code)


@pytest.mark.parametrize("words", [("calibrate",), ("record", "nowhere.onnx", "--kind", "curve")])
def test_a_directory_in_use_is_refused(told_here: Told, tmp_path: Path, words: tuple[str, ...]) -> None:
    with _alone(tmp_path):
        code, _, errors = told_here("landscape", *words, "--out", tmp_path)
    assert (code, errors.count("\n")) == (2, 1)
    assert f"--out {tmp_path} is in use by another recording: wait for it, or name another directory" in errors


def test_what_the_parts_cost_is_measured(told_here: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process, where each may be timed for less long than figures that count need."""
    from workers.child.landscape import record_landscape

    def here(order: dict[str, Any], journal: Journal, grace: float) -> Ending:
        pulse = Pulse(lambda event: journal.write([event]), RunClock(0.0))
        record_landscape(order, ControlReader(), pulse)
        pulse.close()
        return Ending("finished")

    monkeypatch.setattr(landscape, "confined", here)
    for name, few in (("LONG", 0.0), ("OPERATORS", (2, 4)), ("ROWS", (16, 48)), ("PREDICTED", (16, 64))):
        monkeypatch.setattr(calibration, name, few)
    code, said, errors = told_here("landscape", "calibrate", "--out", tmp_path)
    assert code == 0, errors
    assert "costs.json" in said
    found = Costs.read(tmp_path / "costs.json")
    assert not found.older
    for one in every_part():
        assert found.of("explorer", one)["step"] > 0


def test_a_network_whose_inputs_have_open_sizes_is_refused(told_here: Told, zoo_cache: Path, tmp_path: Path) -> None:
    code, _, errors = told_here(
        "landscape", "record", zoo.tiny_residual(zoo_cache), "--kind", "curve", "--out", tmp_path
    )
    assert code == 2
    assert "input x has dynamic dimensions ['N', 16, 14, 14]: record a network without" in errors


@pytest.mark.parametrize(
    "words",
    [
        ("record", "nowhere.onnx", "--kind", "curve"),
        ("record", "{tiny}", "--kind", "curve", "--trials", "0"),
        ("record", "{tiny}", "--kind", "space", "--method", "lottery"),
    ],
)
def test_a_mistake_is_one_clear_line(told_here: Told, zoo_cache: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    tiny = str(zoo.tiny(zoo_cache))
    code, _, errors = told_here("landscape", *(word.format(tiny=tiny) for word in words), "--out", tmp_path)
    assert code == 2
    assert "Traceback" not in errors
