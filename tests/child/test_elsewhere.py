"""What is asked of a device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from workers.child.elsewhere import HELD, LOCKED, TOOK, Elsewhere


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
    there = Elsewhere(line, tmp_path)  # type: ignore[arg-type]
    there.outputs([tmp_path / "inputs.npz"] * inputs, [tmp_path / "outputs.npz"] * inputs)
    assert line.limits == [seconds]
    assert seconds < LOCKED
