"""Runs of other minutes are compared by one clock, and only those that it timed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from tests import zoo
from tests.command_line import Told
from workers.benchmarks.cells import Cells, Key
from workers.benchmarks.machine import Machine, Network
from workers.benchmarks.methods import one_clock
from workers.benchmarks.methods.one_clock import LIVE, Clock, asked_of, by_one_clock, content_of, untimed
from workers.benchmarks.process import PartFailed
from workers.benchmarks.progress import Progress

KEY = Key("methods", "sha", "auto", 0, LIVE, "60 s", "cpu", 2, "1")
NETWORK = Network(Path("net.onnx"), "net", "sha", {"x": [1]})
MACHINE = Machine("cpu", 2, {"kind": "llvm"}, 1e11, 1e10)
TRUE = {"0 1": 4.0, "0 2": 3.0, "0 3": 2.0, "0 4": 5.0}
"""Seconds of programs, by one clock."""


def live(arm: str, seed: int, *told: tuple[float, str, float], **key: Any) -> dict[str, Any]:
    """A cell of one operator of weight 2: (clock, program, its figure in that run's minutes)."""
    held = [[clock, place, clock, 0, program] for place, (clock, program, _) in enumerate(told)]
    series = [[place, clock, 0, figure] for place, (clock, _, figure) in enumerate(told)]
    operator = {"name": "a", "weight": 2, "key": "k", "bests": held, "series": series, "best": told[-1][-1]}
    return {
        "key": vars(replace(KEY, arm=arm, seed=seed, **key)), "name": "net", "state": "done", "ended": "2026-01-01",
        "operators": [operator], "curve": [[clock, 2 * figure] for clock, _, figure in told],
        "latency": 2 * told[-1][-1], "seconds": 60.0,
    }  # fmt: skip


QUIET = live("auto", 0, (1.0, "0 1", 2.0), (9.0, "0 2", 1.5))
BUSY = live("random", 0, (1.0, "0 1", 8.0), (5.0, "0 4", 7.5), (7.0, "0 3", 6.0))
"""Ends with the better program, by figures of a minute in which all takes twice as long."""


def timed(order: dict[str, Any], hear: Callable[[dict[str, Any]], None]) -> None:
    for operator, one in order["asked"].items():
        hear({"kind": "operator", "operator": operator, "seconds": [TRUE[program] for program in one["programs"]]})


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The process that times, which says what is TRUE; the orders that it had."""
    orders: list[dict[str, Any]] = []

    def answered(module: str, order: dict[str, Any], env: Any, log: Path, hear: Any, tick: Any) -> dict[str, Any]:
        orders.append(order)
        timed(order, hear)
        return {}

    monkeypatch.setattr(one_clock, "result_of", answered)
    return orders


def clocked(cells: Cells, work: Path) -> Clock:
    clock = Clock(NETWORK, MACHINE, "1", cells, "methods")
    if clock.missing:
        clock.run(work, Progress([clock.estimate]))
    return clock


def kept(cells: Cells, *every: dict[str, Any]) -> None:
    for cell in every:
        cells.keep(Key(**cell["key"]), "net", cell)


def compared(cells: Cells) -> dict[str, Any]:
    return {cell["key"]["arm"]: cell for cell in parted(cells)[0]}


def parted(cells: Cells) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    return by_one_clock(cells.all("methods"), cells.all("clock"))


def test_what_a_busy_minute_told_is_told_anew(judge: list[dict[str, Any]], tmp_path: Path) -> None:
    cells = Cells(tmp_path / "cells")
    kept(cells, QUIET, BUSY)
    clocked(cells, tmp_path)
    found = compared(cells)
    assert found["auto"]["curve"] == [[1.0, 8.0], [9.0, 6.0]]
    # "0 4", slower than what it replaced, was luck: what came before it does not count.
    assert found["random"]["curve"] == [[1.0, 10.0], [7.0, 4.0]]
    assert found["random"]["latency"] == 4.0 < found["auto"]["latency"] == 6.0
    assert [row["best"] for row in found["random"]["operators"]] == [2.0]


@pytest.mark.mutation
def test_figures_of_other_minutes_name_the_wrong_one(
    judge: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = Cells(tmp_path / "cells")
    kept(cells, QUIET, BUSY)
    clocked(cells, tmp_path)
    monkeypatch.setattr(one_clock, "retold", lambda cell, truths: cell)
    found = compared(cells)
    assert found["auto"]["latency"] < found["random"]["latency"]


def test_each_program_is_asked_once_and_a_clock_is_kept(judge: list[dict[str, Any]], tmp_path: Path) -> None:
    cells = Cells(tmp_path / "cells")
    kept(cells, QUIET, BUSY)
    assert asked_of([QUIET, BUSY]) == {"0": {"key": "k", "programs": ["0 1", "0 2", "0 3", "0 4"]}}
    clocked(cells, tmp_path)
    assert not clocked(cells, tmp_path).missing
    assert len(judge) == 1
    assert not list(tmp_path.glob("*.json"))


def test_another_run_is_another_clock_and_until_then_left_out(judge: list[dict[str, Any]], tmp_path: Path) -> None:
    cells = Cells(tmp_path / "cells")
    kept(cells, QUIET, BUSY)
    clocked(cells, tmp_path)
    kept(cells, live("random", 1, (2.0, "0 1", 9.0)))
    timed_ones, apart = parted(cells)
    assert (len(timed_ones), len(apart)) == (2, 1)
    assert "net (live): 1 runs" in untimed(apart)
    clocked(cells, tmp_path)
    assert len(judge) == 2
    timed_ones, apart = parted(cells)
    assert (len(timed_ones), untimed(apart)) == (3, "")


def test_a_run_made_again_is_not_given_the_time_of_what_it_was(judge: list[dict[str, Any]], tmp_path: Path) -> None:
    cells = Cells(tmp_path / "cells")
    kept(cells, QUIET, BUSY)
    clocked(cells, tmp_path)
    kept(cells, live("random", 0, (1.0, "0 1", 8.0), (5.0, "0 3", 7.5), (7.0, "0 2", 6.0)))
    assert len(parted(cells)[1]) == 1
    clocked(cells, tmp_path)
    assert compared(cells)["random"]["latency"] == 6.0


@pytest.mark.parametrize("other", [{"version": "0"}, {"cpu": "another"}, {"cores": 1}], ids=str)
def test_a_clock_is_of_one_machine_and_one_version(
    other: dict[str, Any], judge: list[dict[str, Any]], tmp_path: Path
) -> None:
    """What was made by others keeps its own figures, and `versions_apart` says so of versions."""
    cells = Cells(tmp_path / "cells")
    kept(cells, live("auto", 3, (1.0, "0 9", 2.0), **other), live("random", 3, (1.0, "0 9", 1.0), **other))
    assert not clocked(cells, tmp_path).missing
    assert not judge
    kept(cells, QUIET, BUSY)
    clocked(cells, tmp_path)
    assert sorted(one["latency"] for one in parted(cells)[0]) == [2.0, 4.0, 4.0, 6.0]


def test_a_replay_has_a_clock_of_its_own(judge: list[dict[str, Any]], tmp_path: Path) -> None:
    cells = Cells(tmp_path / "cells")
    replay = {**live("auto", 0, (1.0, "0 1", 2.0)), "key": vars(replace(KEY, layout="curve"))}
    kept(cells, QUIET, BUSY, replay)
    clocked(cells, tmp_path)
    found = sorted((one["key"]["layout"], one["latency"]) for one in parted(cells)[0])
    assert found == [("curve", 4.0), ("live", 4.0), ("live", 6.0)]


def test_runs_of_other_operators_are_not_compared() -> None:
    other = {**BUSY, "operators": [{**BUSY["operators"][0], "key": "another"}]}
    with pytest.raises(PartFailed, match="another than that of the others"):
        asked_of([QUIET, other])


def test_a_clock_that_broke_off_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    two = [{**cell, "operators": cell["operators"] * 2} for cell in (QUIET, BUSY)]
    cells, asked = Cells(tmp_path / "cells"), []
    kept(cells, *two)

    def breaks(module: str, order: dict[str, Any], env: Any, log: Path, hear: Any, tick: Any) -> dict[str, Any]:
        asked.append(sorted(order["asked"]))
        timed({"asked": {"0": order["asked"]["0"]}} if len(asked) == 1 else order, hear)
        if len(asked) == 1:
            raise PartFailed("killed")
        return {}

    monkeypatch.setattr(one_clock, "result_of", breaks)
    with pytest.raises(PartFailed):
        clocked(cells, tmp_path)
    clocked(cells, tmp_path)
    assert asked == [["0", "1"], ["1"]]
    assert compared(cells)["random"]["latency"] == 8.0
    assert content_of(two[0]) in cells.all("clock")[0]["cells"]


@pytest.mark.tvm
@pytest.mark.timeout(600)
def test_live_runs_of_a_product_are_timed_in_turns(told: Told, tmp_path: Path) -> None:
    network = tmp_path / "product.onnx"
    weights = zoo.constant("w", np.random.default_rng(0).standard_normal((64, 96)).astype(np.float32))
    model = zoo.model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": [48, 64]}, {"y": [48, 96]}, [weights])
    network.write_bytes(model.SerializeToString())
    arguments = ("--live", "--networks", network, "--methods", "auto,random", "--seeds", "0", "--seconds", 30)
    code, said, errors = told("methods", *arguments, "--out", tmp_path / "out")
    assert code == 0, errors + said
    assert "one clock for 2 runs" in errors
    cells = {path.name.split("-")[0]: json.loads(path.read_text()) for path in (tmp_path / "out" / "cells").iterdir()}
    truths = [seconds for every in cells["clock"]["cells"].values() for row in every for seconds in row]
    assert truths
    assert all(0 < seconds < 1e-2 for seconds in truths)
    summary = json.loads((tmp_path / "out" / "report.json").read_text())["summary"]
    ends = {row["arm"]: row["latency_ms"]["median"] for row in summary}
    assert set(ends) == {"auto", "random"}
    assert all(min(abs(end - 1e3 * seconds) for seconds in truths) < 1e-9 for end in ends.values())
    code, said, errors = told("methods", *arguments, "--out", tmp_path / "out")
    assert code == 0, errors + said
    assert "one clock" not in errors
