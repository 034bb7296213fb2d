"""Killing a run at any moment loses at most the batch in flight."""

from __future__ import annotations

import json
import os
import resource
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests import zoo
from tests.command_line import Start, starter
from tests.processes import alive, eventually
from workers.messages.causes import UNBUILT
from workers.supervision.directory import DirectoryBusy, DirectoryJournal

pytestmark = [pytest.mark.tvm, pytest.mark.faults, pytest.mark.timeout(900)]

MEASURES, ENDS = 180.0, 30.0
"""s until a process that is started has measured, and until one that is told to is gone: other tests run beside."""


def events(out: Path) -> list[dict[str, Any]]:
    """Of the journal, without a line that is being written."""
    path = out / "run" / "journal.jsonl"
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]


def measured(out: Path) -> list[tuple[int, str]]:
    """Programs that were tried, duplicates left out."""
    return [
        (m["operator"], m["identity"])
        for event in events(out)
        if event["kind"] == "batch"
        for m in event["measurements"]
        if m["identity"] and m["cause"] not in UNBUILT
    ]


def descendants(pid: int) -> list[int]:
    found = []
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (thread / "children").read_text().split()):
                found += [child, *descendants(child)]
    return found


def tuning_child(pid: int) -> int | None:
    for child in descendants(pid):
        with suppress(OSError):
            if Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")[1:3] == [b"-m", b"workers.child"]:
                return child
    return None


def test_a_killed_child_is_started_again_without_measuring_twice_and_an_interrupt_makes_the_archive_with_the_directory_held(
    command: Start, zoo_cache: Path, tmp_path: Path
) -> None:
    with command("tune", zoo.tiny(zoo_cache), "--trials", 500, "--out", tmp_path) as process:
        before = eventually(lambda: measured(tmp_path), MEASURES)
        os.kill(eventually(lambda: tuning_child(process.pid), MEASURES), signal.SIGKILL)
        eventually(lambda: len(measured(tmp_path)) > len(before), MEASURES)
        family = descendants(process.pid)
        process.send_signal(signal.SIGINT)
        eventually((tmp_path / "run" / "child" / "artifact").exists, MEASURES)
        with pytest.raises(DirectoryBusy):  # another command would take away what is being compiled
            DirectoryJournal(tmp_path / "run")
        with command("control", tmp_path, "stop") as control:
            _, errors = control.communicate(timeout=60)
        assert control.returncode == 2
        assert "its archive is being made" in errors
        _, errors = process.communicate(timeout=280)
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    assert [event["kind"] for event in events(tmp_path)].count("started") == 2
    after = measured(tmp_path)
    assert after[: len(before)] == before
    assert len(set(after)) == len(after)
    clocks = [event["clock"] for event in events(tmp_path) if event["kind"] == "batch"]
    assert clocks == sorted(clocks)
    assert events(tmp_path)[-1]["reason"] == "stopped"
    assert (tmp_path / "tiny.zip").is_file()
    eventually(lambda: not any(map(alive, family)), ENDS)


def goes_on(command: Start, out: Path, *arguments: object) -> None:
    """A resumed run measures more and nothing twice; then it is paused, as an archive would take as long again."""
    before = measured(out)
    assert before
    with command(*arguments, "--resume") as process:
        eventually(lambda: len(measured(out)) > len(before), MEASURES)
        (out / "run" / "control").write_text("pause")
        said, errors = process.communicate(timeout=280)
    assert process.returncode == 0, errors
    assert "go on with --resume" in said
    after = measured(out)
    assert after[: len(before)] == before
    assert len(set(after)) == len(after)


def test_a_killed_command_leaves_no_process_and_is_resumed(command: Start, zoo_cache: Path, tmp_path: Path) -> None:
    arguments = ("tune", zoo.tiny(zoo_cache), "--trials", 500, "--out", tmp_path)
    with command(*arguments) as process:
        eventually(lambda: measured(tmp_path), MEASURES)
        family = descendants(process.pid)
        assert family
        process.kill()
        process.wait()
        eventually(lambda: not any(map(alive, family)), ENDS)
    goes_on(command, tmp_path, *arguments)


IMPATIENT = "import sys; from workers.headless import __main__, tune; tune.GRACE = 2.0; sys.exit(__main__.main())"
"""The command, which waits less long for a child that was told to stop."""


def test_a_child_that_does_not_hear_the_word_is_ended_and_the_archive_is_made(
    command: Start, machine_cache: Path, zoo_cache: Path, tmp_path: Path
) -> None:
    """Frozen after its first batch, as one is in a plan that takes longer than it has."""
    impatient = starter(["-c", IMPATIENT], machine_cache)
    with impatient("tune", zoo.tiny(zoo_cache), "--trials", 500, "--out", tmp_path) as process:
        eventually(lambda: complete(tmp_path), MEASURES)
        os.kill(eventually(lambda: tuning_child(process.pid), MEASURES), signal.SIGSTOP)
        family = descendants(process.pid)
        with command("control", tmp_path, "stop") as control:
            control.communicate(timeout=60)
        _, errors = process.communicate(timeout=280)
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    assert (tmp_path / "tiny.zip").is_file()
    summary = json.loads((tmp_path / "summary.json").read_text())
    batches = [event for event in events(tmp_path) if event["kind"] == "batch"]
    assert (summary["reason"], summary["trials"]) == ("stopped", batches[-1]["trials"])
    eventually(lambda: not any(map(alive, family)), ENDS)


@pytest.mark.parametrize(
    ("word", "code", "said"),
    [("stop", 1, "stopped before the network's operators were known"), ("pause", 0, "go on with --resume")],
)
def test_a_run_that_is_stopped_or_paused_while_it_is_compared_untuned_ends_at_once(
    command: Start, zoo_cache: Path, tmp_path: Path, word: str, code: int, said: str
) -> None:
    with command("tune", zoo.tiny(zoo_cache), "--minutes", 20, "--out", tmp_path) as process:
        eventually(lambda: (tmp_path / "run" / "spec.json").exists() and descendants(process.pid), MEASURES)
        family, began = descendants(process.pid), time.monotonic()
        with command("control", tmp_path, word) as control:
            _, errors = control.communicate(timeout=60)
        assert control.returncode == 0, errors
        told, errors = process.communicate(timeout=60)
    assert process.returncode == code, errors
    assert said in told + errors
    assert time.monotonic() - began < 60  # of twenty minutes
    eventually(lambda: not any(map(alive, family)), ENDS)


def complete(out: Path) -> bool:
    """Whether every operator was measured."""
    return any(event["kind"] == "batch" and event["latency"] for event in events(out))


def test_a_disk_that_fills_up_is_one_clear_line_and_the_run_goes_on_when_there_is_room(
    command: Start, zoo_cache: Path, tmp_path: Path
) -> None:
    """Here the file may not grow; its children may write, as they can where only --out is full."""
    arguments = ("tune", zoo.tiny(zoo_cache), "--trials", 500, "--out", tmp_path)
    with command(*arguments) as process:
        eventually(lambda: measured(tmp_path), MEASURES)
        size = (tmp_path / "run" / "journal.jsonl").stat().st_size
        _, most = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size, most))
        family = descendants(process.pid)
        _, errors = process.communicate(timeout=280)
    assert process.returncode == 1, errors
    assert "Traceback" not in errors
    assert errors.splitlines()[-1].startswith(f"{tmp_path}: File too large; make room")
    assert "--resume" in errors.splitlines()[-1]
    eventually(lambda: not any(map(alive, family)), ENDS)
    goes_on(command, tmp_path, *arguments)
