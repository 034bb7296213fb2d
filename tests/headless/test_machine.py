"""What is kept of a measured machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from workers.headless import machine

FOUND = {
    "task": "hardware",
    "hardware": {"cores": 2},
    "peak": {"flops": 1e11, "bandwidth": 1e10},
    "versions": {"tvm": "1"},
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
    assert asked == [True, False], "once, and then looked at"
