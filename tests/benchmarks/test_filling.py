"""What becomes of a cell whose work breaks off, and what of it is not done twice."""

from __future__ import annotations

import io
import threading
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.processes import eventually
from workers.benchmarks.cells import DONE, FAILED, VOID, Cell, Cells, Key
from workers.benchmarks.filling import attempt, fill, in_turn, tuned_once, verdict
from workers.benchmarks.latency import Part as LatencyPart
from workers.benchmarks.machine import Network
from workers.benchmarks.ours import Amount, Incomplete
from workers.benchmarks.progress import Progress
from workers.messages.spec import RunSpec

KEY = Key("speed", "ab" * 32, "stock", 0, "same", "20 trials an operator", "A CPU", 2, "0.1.0")
NETWORK = Network(Path("tiny.onnx"), "tiny", "ab" * 32, {"x": [1, 3]})


@dataclass(frozen=True)
class Part:
    key: Key
    name: str = "tiny"
    label: str = "tiny stock"


def test_cells_are_kept_one_by_one_and_only_those_that_broke_off_leave_their_work(tmp_path: Path) -> None:
    def make(part: Part, work: Path, progress: Progress) -> Cell:
        (work / "made").write_text("")
        if part.key.seed == 1:
            raise OSError("the network is gone")
        if part.key.seed == 2:
            raise Incomplete("the budget was too small")
        return {"state": DONE, "reason": ""}

    cells, parts = Cells(tmp_path / "cells"), [Part(replace(KEY, seed=seed)) for seed in range(4)]
    progress, said = Progress([1.0] * 4, io.StringIO()), list[str]()
    assert fill(parts, cells, tmp_path, progress, make, lambda cell: said.append(cell["state"]) or "told") == 1
    assert said == [DONE, FAILED, VOID, DONE]
    found = {cell["key"]["seed"]: cell for cell in cells.all("speed")}
    assert found[1]["reason"].startswith("the network is gone (see ")
    assert found[2]["reason"] == "the budget was too small"
    assert all(cell["wall"] >= 0 for cell in found.values())
    assert [path.name for path in (tmp_path / "work").iterdir()] == [parts[1].key.digest]
    assert "OSError" in (tmp_path / "work" / parts[1].key.digest / "failure").read_text()


def test_a_cell_that_another_process_is_at_is_left_to_it(tmp_path: Path) -> None:
    """Its work would be deleted beneath it."""
    cells, part, said, made = Cells(tmp_path / "cells"), Part(KEY), io.StringIO(), list[Part]()

    def make(part: Part, work: Path, progress: Progress) -> Cell:
        made.append(part)
        inner = fill([part], cells, tmp_path, Progress([1.0], said), make, lambda cell: "told", timed=False)
        assert inner == 0
        return {"state": DONE, "reason": ""}

    assert fill([part], cells, tmp_path, Progress([1.0], said), make, lambda cell: "told", timed=False) == 0
    assert len(made) == 1
    assert "left to another process" in said.getvalue()


def test_what_is_timed_waits_for_what_another_process_times(tmp_path: Path) -> None:
    """Two at once would each have half of the machine."""
    path, said, order = tmp_path / "begun" / "machine", io.StringIO(), list[str]()
    ticks = count(0, 20)
    progress = Progress([1.0], said, lambda: float(next(ticks)))
    progress.begin("second")

    def second() -> None:
        with in_turn(path, progress):
            order.append("second")

    with in_turn(path, progress):
        other = threading.Thread(target=second)
        other.start()
        eventually(lambda: "waiting for another process" in said.getvalue(), 20)
        order.append("first")
    other.join(20)
    assert order == ["first", "second"]


def test_an_interrupt_is_no_failed_cell(tmp_path: Path) -> None:
    def make() -> Cell:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        attempt(tmp_path / "work", make)


@pytest.mark.parametrize(
    ("tuning", "library", "times"),
    [({"seconds": 1.0}, True, 1), ({"seconds": 1.0}, False, 2), ({"seconds": 1.0, "missing": ["conv"]}, False, 1)],
    ids=["whole", "without its library", "without records"],
)
def test_a_tuning_that_ended_is_not_repeated(tmp_path: Path, tuning: Cell, library: bool, times: int) -> None:
    made = []

    def tune() -> dict[str, Any]:
        made.append(tuning)
        (tmp_path / "library").mkdir(exist_ok=True)
        if library:
            (tmp_path / "library" / "model.so").write_text("")
        return tuning

    assert tuned_once(tmp_path, tune) == tuned_once(tmp_path, tune) == tuning
    assert len(made) == times


def test_what_computes_something_else_does_not_count() -> None:
    assert verdict("")["state"] == DONE
    assert verdict("seed 1: far off") == {
        "state": VOID,
        "reason": "it computes something else than ONNX Runtime: seed 1: far off",
    }


def test_a_latency_beside_another_module_is_measured_again(tmp_path: Path) -> None:
    cells, spec = Cells(tmp_path), RunSpec("tiny.onnx", {}, 2, peak_flops=1e11, bandwidth=1e10)
    part = LatencyPart(NETWORK, KEY, spec, Amount(1.0), "net.py:small")
    assert part.is_open(cells, again_void=False)
    cells.keep(KEY, "tiny", {"state": DONE, "reason": "", "torch": {"factory": "net.py:small"}})
    assert not part.is_open(cells, again_void=False)
    assert not replace(part, factory=None).is_open(cells, again_void=False)
    assert replace(part, factory="net.py:large").is_open(cells, again_void=False)
    failed = {"state": DONE, "reason": "", "torch": {"factory": "net.py:small"}, "errors": {"PyTorch": "no such file"}}
    cells.keep(KEY, "tiny", failed)
    assert not part.is_open(cells, again_void=False)
    assert part.is_open(cells, again_void=True)
    cells.keep(KEY, "tiny", {"state": VOID, "reason": "the budget was too small"})
    assert not part.is_open(cells, again_void=False)
    assert part.is_open(cells, again_void=True)
