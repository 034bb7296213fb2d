"""What a tuning says of its operators that earlier runs measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import helper

from tests import zoo
from tests.tvm_backend.local import spec_of
from workers.child.clock import RunClock
from workers.child.pulse import Pulse
from workers.child.tune import NothingToTune, tune
from workers.messages.channel import ControlReader
from workers.messages.known import Name, Point, encode_known, points_of, records
from workers.messages.spec import COMPUTE, Budget

pytestmark = pytest.mark.tvm


def test_an_operator_tells_how_many_points_are_its_own_and_how_many_others_lend_it_theirs(
    zoo_cache: Path, tmp_path: Path
) -> None:
    order = {"spec": spec_of(zoo.tiny(zoo_cache), budget=Budget(trials=8)).to_json(), "work_dir": str(tmp_path)}

    def attempt(found: dict[Name, list[Point]], measurements: list[dict[str, Any]]) -> list[dict[str, Any]]:
        known, events = tmp_path / "known.json", list[dict[str, Any]]()
        known.write_text(encode_known(records(found)))
        pulse = Pulse(events.append, RunClock(0.0))
        tune({**order, "known": str(known), "measurements": measurements}, ControlReader(), pulse)
        pulse.close()
        return events

    first = attempt({}, [])
    measured = [row for event in first if event["kind"] == "batch" for row in event["measurements"]]
    listed = operators_of(first)
    assert {(one["known"], one["alike"]) for one in listed} == {(0, 0)}
    one = next(
        one for one in listed
        if any(knob["kind"] == "tile" for sketch in one["knobs"] for knob in sketch)
        and any(row["operator"] == one["index"] and row["seconds"] for row in measured)
    )  # fmt: skip
    points = points_of(row for row in measured if row["operator"] == one["index"])
    for names, told in (
        (["another"], (0, 1)),
        (["another", "a third"], (0, 2)),
        ([one["key"], "another"], (len(points), 0)),
    ):
        events = attempt({(name, one["space"]): points for name in names}, measured)  # whose trials are spent
        again = operators_of(events)[one["index"]]
        assert (again["known"], again["alike"]) == told


def test_where_only_products_are_to_be_tuned_and_there_are_none_the_next_step_is_named(tmp_path: Path) -> None:
    onnx.save(
        zoo.model_of([helper.make_node("Softmax", ["x"], ["y"])], {"x": [1, 64]}, {"y": [1, 64]}, []),
        tmp_path / "one.onnx",
    )
    spec = spec_of(tmp_path / "one.onnx", operators=COMPUTE, budget=Budget(trials=8)).to_json()
    pulse = Pulse([].append, RunClock(0.0))
    with pytest.raises(NothingToTune, match="no convolutions and matrix products to tune alone"):
        tune({"spec": spec, "work_dir": str(tmp_path)}, ControlReader(), pulse)
    pulse.close()


def operators_of(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return next(list(event["operators"]) for event in events if event["kind"] == "operators")
