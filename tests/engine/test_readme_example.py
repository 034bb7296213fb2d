"""The README's own part works as the README says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conformance import test_scheduler
from tests.engine.test_scheduler import play, progress
from workers.engine.methods import method
from workers.engine.scheduler import SCHEDULERS

README = Path(__file__).resolve().parents[2] / "README.md"


@pytest.fixture
def largest(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The class in the README, registered as it says."""
    code = README.read_text().split("## Adding a part")[1].split("```python\n")[1].split("```")[0]
    names: dict[str, Any] = {}
    exec(code, names)
    monkeypatch.setitem(SCHEDULERS, "largest", lambda setting: names["Largest"]())
    return names["Largest"]()


def test_the_example_is_a_scheduler_that_a_method_takes(largest: Any) -> None:
    decision = largest.choose([progress(0, [1e-3], 1), progress(1, [1e-3], 1, weight=2)], 1.0)
    assert (decision.operator, decision.rule) == (1, "largest")
    assert largest.choose([], 1.0) is None
    lost = largest.choose([progress(0, [1e-3], 1), progress(1, [float("inf")], 0)], 1.0)
    assert (lost.operator, lost.rule) == (1, "rescue")
    assert len(play(largest, range(4), [0] * 4, 6)) == 6
    assert method("auto", {"scheduler": "largest"}).scheduler == "largest"


@pytest.mark.parametrize("owed", [one for name, one in vars(test_scheduler).items() if name.startswith("test_")])
def test_the_example_gives_what_every_scheduler_owes(largest: Any, owed: Callable[[str], None]) -> None:
    owed("largest")


def test_the_example_is_ten_lines() -> None:
    code = README.read_text().split("## Adding a part")[1].split("```python\n")[1].split("```")[0]
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
