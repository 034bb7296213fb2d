"""What a child answers is not believed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from workers.headless.ask import MemoryJournal, confined, made_in
from workers.headless.errors import Failure
from workers.sandbox.lock import MeasureLock


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A child's directory, named through a link; outside of it a secret."""
    (tmp_path / "secret").write_text("")
    (tmp_path / "real" / "folder").mkdir(parents=True)
    for name in ("made", "folder/made"):
        (tmp_path / "real" / name).write_text("")
    (tmp_path / "real" / "out").symlink_to(tmp_path / "secret")
    (tmp_path / "real" / "up").symlink_to(tmp_path)
    (tmp_path / "real" / "beside").symlink_to("made")
    work = tmp_path / "work"
    work.symlink_to("real")
    return work


@pytest.mark.parametrize("name", ["made", "folder/made", "folder/../made"])
def test_a_file_of_its_directory_is_taken(work: Path, name: str) -> None:
    assert made_in(work, f"{work}/{name}", "converting") == (work / name).resolve()


@pytest.mark.parametrize(
    "name",
    [
        "out",
        "up/secret",
        "../secret",
        "beside",
        "folder",
        "",
        "missing",
        "made/beneath",
        "n" * 300,
        "nul\0",
        "/etc/passwd",
    ],
)
def test_what_is_no_plain_file_of_its_directory_is_not(work: Path, name: str) -> None:
    named = str(work / name)  # what is absolute stays it
    said = f"the converting process names no file of its directory: {Path(named)}; nothing is taken"
    with pytest.raises(Failure, match=re.escape(said)):
        made_in(work, named, "converting")


@pytest.mark.parametrize("task", ["inspect", "convert", "baseline"])
def test_a_file_is_read_while_nobody_measures(task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What measures or compiles takes the lock itself."""
    given: list[Any] = []
    monkeypatch.setattr("workers.supervision.terms.supervise", lambda order, journal, lock, **terms: given.append(lock))
    spec = '{"network": "net.onnx", "target": {"kind": "llvm"}, "threads": 1}'
    file = tmp_path / "net.pt2"
    file.touch()
    order = {"task": task, "network": str(file), "source": str(file), "spec": spec, "work_dir": str(tmp_path)}
    confined(order, MemoryJournal(), 0.0)
    assert [isinstance(lock, MeasureLock) for lock in given] == [task != "baseline"]
