"""What is asked of a device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from workers.child.elsewhere import TOOK, Elsewhere


class Slow:
    """A line to a device, on which nothing comes before its time is over."""

    def __init__(self) -> None:
        self.limits: list[float] = []

    def ask(self, verb: str, timeout: float, **given: Any) -> Any:
        if verb == "script":
            self.limits.append(given["seconds"])
            assert given["seconds"] < timeout, "the device says so itself"
        return {"output": '{"seconds": []}', "status": 0, "data": ""}


def test_each_of_the_inputs_has_the_time_that_one_has(tmp_path: Path) -> None:
    for name in ("model.so", "metadata.json", "run.py", "inputs.npz"):
        (tmp_path / name).touch()
    line = Slow()
    there = Elsewhere(line, tmp_path)  # type: ignore[arg-type]
    there.outputs([tmp_path / "inputs.npz"] * 3, [tmp_path / "outputs.npz"] * 3)
    assert line.limits == [3 * TOOK]
