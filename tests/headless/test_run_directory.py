"""What a run takes over from what is in its directory."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from workers.headless import control
from workers.headless.errors import UserMistake
from workers.headless.run_directory import DEFAULT_MINUTES, RunDirectory
from workers.messages.device import Address
from workers.messages.events import Event
from workers.messages.spec import Budget, RunSpec
from workers.supervision import DirectoryJournal

SPEC = RunSpec("a.onnx", {"kind": "llvm"}, 2, peak_flops=1e11, bandwidth=1e10, budget=Budget(trials=40))
ROW = {"operator": 0, "sketch": 0, "choices": [1], "seconds": 0.1, "identity": "i", "cause": "", "round": 0}


def told(*rows: dict[str, Any]) -> list[dict[str, Any]]:
    """An attempt at another network that measured these, and was stopped."""
    return [
        {"kind": "operators", "clock": 50.0, "operators": [{"index": 0, "key": "another network's"}]},
        {"kind": "batch", "clock": 60.0, "measurements": list(rows), "checkpoint": {"proposers": ["another's"]}},
    ]


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunDirectory]:
    """Where networks lie."""
    monkeypatch.chdir(tmp_path)
    for name in ("a.onnx", "b.onnx"):
        Path(name).write_text(f"the content of {name}")
    with RunDirectory.opened(tmp_path) as directory:
        yield directory


@pytest.mark.parametrize("resume", [False, True])
def test_an_attempt_that_measured_nothing_binds_no_later_run(directory: RunDirectory, resume: bool) -> None:
    journal = directory.journal
    journal.write(told())
    spec = directory.begin(SPEC, (), resume)
    order = directory.order(spec, journal.history())
    assert (order["operators"], order["clock"], order["checkpoint"]) == ([], 0.0, None)
    journal.write(told(ROW))
    assert journal.trials == 1
    assert directory.order(spec, journal.history())["operators"] == [("another network's", "")]


def test_records_stay_with_the_run_that_was_given_them(directory: RunDirectory) -> None:
    directory.known.write_text("of a run that died")
    directory.begin(SPEC, (), resume=True)
    assert directory.known.read_text() == "of a run that died"
    directory.begin(SPEC, (), resume=False)
    assert directory.known.read_text() != "of a run that died"


def test_a_run_goes_on_with_the_peaks_that_it_began_with(directory: RunDirectory) -> None:
    """They decide which convolutions are transformed, and so what the operators are."""
    directory.begin(SPEC, (), resume=False)
    directory.journal.write(told(ROW))
    now = replace(SPEC, peak_flops=3e11, bandwidth=0.5e10, budget=Budget(trials=80))
    spec = directory.begin(now, (), resume=True)
    assert spec == replace(SPEC, budget=Budget(trials=80))
    assert RunSpec.from_json((directory.path / "spec.json").read_text()) == spec


def test_a_run_goes_on_with_its_budget_unless_another_is_given(directory: RunDirectory) -> None:
    unlimited = replace(SPEC, budget=Budget())
    assert directory.begin(unlimited, (), resume=False).budget == Budget(seconds=60 * DEFAULT_MINUTES)
    for measured in (False, True):
        directory.begin(SPEC, (), resume=True)
        if measured:
            directory.journal.write(told(ROW))
        assert directory.begin(unlimited, (), resume=True).budget == SPEC.budget
    later = replace(SPEC, budget=Budget(min_gain=0.01))
    assert directory.begin(later, (), resume=True).budget == Budget(min_gain=0.01)


def test_records_that_come_too_late_are_refused(directory: RunDirectory, tmp_path: Path) -> None:
    directory.begin(SPEC, (), resume=False)
    directory.journal.write(told(ROW))
    with pytest.raises(UserMistake, match=f"--records there: the run in {tmp_path} goes on with what it began with"):
        directory.begin(SPEC, ["there"], resume=True)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seed": 5}, "seed 0, not 5: give --seed 0"),
        (
            {"method": "auto", "layout": "NCHW"},
            "layout auto, not NCHW; method dynatune, not auto: give --layout auto --method dynatune",
        ),
        ({"network": "b.onnx"}, "network a.onnx, not b.onnx: give a.onnx"),
        ({"parts": {"scheduler": "largest"}}, "parts none, not scheduler=largest: give no --part"),
        ({"inputs": {"x": [2, 3]}}, "inputs x=[1, 3], not x=[2, 3]: give --shape x=1,3"),
        ({"threads": 4}, "threads 2, not 4: go on where it began, on that machine"),
    ],
)
def test_a_run_goes_on_as_nothing_else(directory: RunDirectory, change: dict[str, Any], said: str) -> None:
    began = replace(SPEC, inputs={"x": [1, 3]})
    directory.begin(began, (), resume=False)
    directory.journal.write(told(ROW))
    with pytest.raises(UserMistake, match=f"was begun with {re.escape(said)}.*, or name another directory"):
        directory.begin(replace(began, **change), (), resume=True)
    assert json.loads((directory.path / "spec.json").read_text()) == asdict(began)


def test_a_network_that_was_moved_and_renamed_is_the_same(directory: RunDirectory) -> None:
    directory.begin(SPEC, (), resume=False)
    directory.journal.write(told(ROW))
    Path("a.onnx").rename("moved.onnx")
    spec = directory.begin(replace(SPEC, network="moved.onnx"), (), resume=True)
    assert spec == replace(SPEC, network="moved.onnx")


def test_control_is_told_that_nobody_hears_while_the_archive_is_made(directory: RunDirectory, tmp_path: Path) -> None:
    words = argparse.Namespace(out=str(tmp_path), word="stop")
    with directory.archiving():
        with pytest.raises(UserMistake, match="its archive is being made; Ctrl-C where it runs ends that"):
            control.run(words)
        assert directory.journal.heartbeat() == "continue"
    assert control.run(words) == 0
    assert directory.journal.heartbeat() == "stop"


def test_a_second_run_is_refused_unless_it_says_that_it_goes_on(directory: RunDirectory, tmp_path: Path) -> None:
    directory.begin(SPEC, (), resume=False)
    directory.journal.write(told(ROW))
    with pytest.raises(UserMistake, match=f"{tmp_path} holds a run already.*--resume"):
        directory.begin(SPEC, (), resume=False)


def test_a_run_goes_on_with_the_device_that_it_began_with(directory: RunDirectory) -> None:
    """Two cards of one architecture have one target."""
    device = Address("127.0.0.1", 9190, "k" * 32)
    began = replace(directory, device=device, machine="NVIDIA H100")
    began.begin(SPEC, (), resume=False)
    directory.journal.write(told(ROW))
    assert began.begin(SPEC, (), resume=True) == SPEC
    assert began.order(SPEC, directory.journal.history())["machine"] == "NVIDIA H100"
    assert directory.order(SPEC, directory.journal.history())["machine"] == ""
    with pytest.raises(UserMistake, match="was begun on NVIDIA H100, and the device is NVIDIA H200"):
        replace(began, machine="NVIDIA H200").begin(SPEC, (), resume=True)


def test_a_run_of_a_device_and_one_of_this_machine_go_on_as_what_they_are(directory: RunDirectory) -> None:
    """Both may be of one kind, with one target."""
    there = replace(directory, device=Address("127.0.0.1", 9190, "k" * 32), machine="AMD EPYC")
    there.begin(SPEC, (), resume=False)
    directory.journal.write(told(ROW))
    with pytest.raises(UserMistake, match=r"was begun on AMD EPYC, a device, and no --device is given: .*; give its"):
        directory.begin(SPEC, (), resume=True)
    directory.journal.clear()
    assert directory.begin(SPEC, (), resume=True) == SPEC, "what measured nothing binds nobody"
    directory.journal.write(told(ROW))
    with pytest.raises(
        UserMistake, match=r"--device 127\.0\.0\.1:9190: the run in .* was begun without a device: .*; leave"
    ):
        there.begin(SPEC, (), resume=True)
    assert directory.begin(SPEC, (), resume=True) == SPEC


def test_a_directory_in_use_is_the_users_mistake(directory: RunDirectory, tmp_path: Path) -> None:
    with pytest.raises(UserMistake, match="in use"), RunDirectory.opened(tmp_path):
        pass


def test_the_facts_are_those_told_last(directory: RunDirectory) -> None:
    before = directory.journal.history()
    assert (before.operators, before.layout) == ([], "auto")
    directory.journal.write([{"kind": "started", "clock": 1.0, "layout": "NHWC"}, *told()])
    history = directory.journal.history()
    assert (history.operators, history.layout) == ([{"index": 0, "key": "another network's"}], "NHWC")
    assert directory.order(SPEC, history)["layout"] == "NHWC"


def test_a_run_that_goes_on_reads_its_journal_twice(
    directory: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of days has a hundred thousand measurements, which take seconds each time."""
    directory.begin(SPEC, (), resume=False)
    directory.journal.write(told(ROW))
    directory.journal.close()
    read, events = [], DirectoryJournal.events

    def counted(journal: DirectoryJournal) -> Iterator[Event]:
        read.append(journal)
        return events(journal)

    monkeypatch.setattr(DirectoryJournal, "events", counted)
    with RunDirectory.opened(tmp_path) as again:
        assert again.under_way()
        spec = again.begin(SPEC, (), resume=True)
        assert len(again.order(spec, again.journal.history())["measurements"]) == 1
    assert len(read) == 2


def test_the_log_has_a_line_for_every_measurement_and_no_checkpoint(directory: RunDirectory) -> None:
    batch = {"kind": "batch", "clock": 60.0, "slot": 3, "measurements": [ROW, ROW], "checkpoint": {"proposers": []}}
    directory.journal.write([batch, {"kind": "finished", "clock": 61.0}])
    lines = [json.loads(line) for line in directory.tuning_log().read_text().splitlines()]
    measured = {**ROW, "kind": "measurement", "clock": 60.0, "slot": 3}
    assert lines == [
        measured,
        measured,
        {"kind": "batch", "clock": 60.0, "slot": 3},
        {"kind": "finished", "clock": 61.0},
    ]


@pytest.mark.parametrize("content", ["", "{", "[1]"])
def test_a_damaged_spec_is_named(directory: RunDirectory, content: str) -> None:
    spec = directory.begin(SPEC, (), resume=False)
    directory.journal.write(told(ROW))
    path = directory.path / "spec.json"
    path.write_text(content)
    with pytest.raises(UserMistake, match=r"spec\.json"):
        directory.begin(spec, (), resume=True)
    assert path.read_text() == content
