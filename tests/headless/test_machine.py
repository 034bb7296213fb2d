"""What is kept of a measured machine."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from workers.headless import machine
from workers.messages.cores import usable_cores
from workers.messages.machine import fingerprint, memory

FOUND: dict[str, Any] = {
    "task": "hardware",
    "hardware": {"cores": usable_cores(), "memory": memory()},
    "peak": {"flops": 1e11, "bandwidth": 1e10},
    "versions": {"numpy": version("numpy")},
}


@pytest.mark.parametrize("content", ["", "{", "null", "[1]", "{}", '{"hardware": {}, "peak": 3, "versions": {}}'])
def test_what_cannot_be_read_is_measured_anew(content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(machine, "ask", lambda order: asked.append(order["peak"]) or FOUND)
    machine.cache().parent.mkdir()
    machine.cache().write_text(content)
    wanted = {name: FOUND[name] for name in machine.FIELDS}
    assert machine.this_machine() == wanted
    assert machine.this_machine() == wanted
    assert asked == [True], "once"


@pytest.mark.parametrize(
    "other",
    [
        {"hardware": {**FOUND["hardware"], "memory": 1}},
        {"hardware": {**FOUND["hardware"], "cores": 77}},
        {"versions": {"numpy": "1.0"}},
        {"versions": {"no-such": "1"}},
        {"fingerprint": {**fingerprint(), "flags": "fpu"}},
        {"fingerprint": None},
        {},
    ],
)
def test_what_was_measured_of_another_machine_is_measured_anew(
    other: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(machine, "ask", lambda order: asked.append(order["peak"]) or FOUND)
    machine.this_machine()
    machine.cache().write_text(json.dumps({**json.loads(machine.cache().read_text()), **other}))
    machine.this_machine()
    assert asked == ([True, True] if other else [True])


@pytest.mark.parametrize("home", ["a file", "none"])
def test_where_nothing_can_be_kept_a_run_begins_all_the_same(
    home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(machine, "ask", lambda order: FOUND)
    if home == "none":
        monkeypatch.setattr(Path, "home", homeless)
    else:
        (tmp_path / "file").touch()
        monkeypatch.setenv("HOME", str(tmp_path / "file"))
    assert machine.this_machine() == {name: FOUND[name] for name in machine.FIELDS}
    said = capsys.readouterr().err
    assert "cannot be kept" in said
    assert said.endswith("name a directory of yours in XDG_CACHE_HOME\n")
    assert said.count("\n") == 1


def homeless() -> Path:
    raise RuntimeError("Could not determine home directory.")
