"""A tuning that goes on from what its journal holds."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests import zoo
from tests.tvm_backend.local import spec_of
from workers.child.clock import RunClock
from workers.child.pulse import Pulse
from workers.child.tune import consumed, tune
from workers.engine.errors import IllegalMethod
from workers.engine.methods import method
from workers.engine.thrift import Thrift
from workers.messages.channel import ControlReader
from workers.messages.orders import SLOT_TOLD, slot_taken_up
from workers.messages.spec import Budget

pytestmark = pytest.mark.tvm


def test_the_code_of_the_fastest_programs_is_counted_anew(
    zoo_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = spec_of(zoo.tiny(zoo_cache), budget=Budget(trials=4)).to_json()
    events: list[dict[str, Any]] = []

    def attempt(measurements: list[dict[str, Any]]) -> None:
        pulse = Pulse(events.append, RunClock(0.0))
        tune({"spec": spec, "work_dir": str(tmp_path), "measurements": measurements}, ControlReader(), pulse)
        pulse.close()

    attempt([])
    rows = [row for event in events if event["kind"] == "batch" for row in event["measurements"]]
    counted: dict[int, float] = {}
    monkeypatch.setattr(Thrift, "fastest", lambda self, operator, size: counted.update({operator: size}))
    attempt([*rows])  # whose trials are spent: nothing more is measured
    assert set(counted) == {row["operator"] for row in rows if row["seconds"]} != set()
    assert all(size > 0 for size in counted.values())


def test_a_run_that_is_stopped_while_many_slots_are_taken_up_tells_none_of_its_figures(
    zoo_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.pipeline.loop.MANY", 1)
    spec = spec_of(zoo.tiny(zoo_cache), budget=Budget(trials=24)).to_json()
    events: list[dict[str, Any]] = []

    def attempt(wanted: str, **found: Any) -> list[str]:
        """What it told behind the operators."""
        control, pulse = ControlReader(), Pulse(events.append, RunClock(0.0))
        monkeypatch.setattr(control, "wanted", lambda: wanted)
        tune({"spec": spec, "work_dir": str(tmp_path), **found}, control, pulse)
        pulse.close()
        kinds = [event["kind"] for event in events]
        return kinds[len(kinds) - kinds[::-1].index("operators") :]

    assert attempt("continue")[-1] == "finished"
    rows = [{**row, "slot": e["slot"]} for e in events if e["kind"] == "batch" for row in e["measurements"]]
    slots = [slot_taken_up(*(e[name] for name in SLOT_TOLD)) for e in events if e["kind"] == "slot"]
    assert slots
    assert attempt("stop", measurements=rows, slots=slots) == ["phase"]


def test_what_it_takes_to_go_on_is_not_on_the_clock(zoo_cache: Path, tmp_path: Path) -> None:
    """A minute of which most was over would be used up by loading TVM again."""
    spec = spec_of(zoo.tiny(zoo_cache), budget=Budget(seconds=60.0)).to_json()
    events: list[dict[str, Any]] = []
    pulse = Pulse(events.append, RunClock(58.0))
    began = time.monotonic()
    tune({"spec": spec, "work_dir": str(tmp_path), "spent": {"start/backend": 58.0}}, ControlReader(), pulse)
    pulse.close()
    assert next(event["clock"] for event in events if event["kind"] == "operators") == 58.0
    assert (events[-1]["kind"], events[-1]["reason"]) == ("finished", "seconds")
    assert any(event["kind"] == "batch" and event["measurements"] for event in events)
    last = events[-1]
    assert 60.0 <= last["clock"] < 58.0 + time.monotonic() - began
    assert sum(last["report"]["spent"].values()) == pytest.approx(last["clock"], abs=0.1)


def test_a_run_goes_on_with_parts_that_are_refused_now(zoo_cache: Path, tmp_path: Path) -> None:
    """An earlier version made it; TVM's own search asks neither the sampler nor its pool."""
    parts = {"explorer": "metaschedule", "explorer.population": "24", "explorer.generations": "2"}
    with pytest.raises(IllegalMethod, match="would not ask sampler 'adaptive'"):
        method("chameleon", parts)
    spec = spec_of(zoo.tiny(zoo_cache), method="chameleon", parts=parts, budget=Budget(trials=4)).to_json()
    events: list[dict[str, Any]] = []
    pulse = Pulse(events.append, RunClock(0.0))
    tune({"spec": spec, "work_dir": str(tmp_path)}, ControlReader(), pulse)
    pulse.close()
    assert (events[-1]["kind"], events[-1]["reason"]) == ("finished", "trials")


def test_what_a_run_that_goes_on_was_told_is_not_kept_beside_what_it_makes_of_it() -> None:
    rows = [{"seq": number} for number in range(3)]
    assert [(row["seq"], len(rows)) for row in consumed(rows)] == [(0, 2), (1, 1), (2, 0)]
