"""What a replay is charged, what is said of its landscape, and what its version is of."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import pytest

from tests.landscapes.recorded import HEADER, costs, curve_recording, space_recording
from workers.benchmarks import ours, stock
from workers.benchmarks.identity import FOLDING, IMPORT, ROOT, STOCK, TUNED
from workers.benchmarks.methods import live, probes, replayed, retime
from workers.benchmarks.methods.arms import arm_named
from workers.benchmarks.methods.compare import older_prices, summary
from workers.benchmarks.methods.one_clock import TIMING
from workers.benchmarks.methods.parts import PLAYED, PROBING, REPLAYED
from workers.benchmarks.methods.replayed import SPACE, Source, run_cell, sources
from workers.engine.methods import METHODS
from workers.landscapes import Costs
from workers.landscapes.parameters import walking
from workers.landscapes.sources import digests


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("landscapes")
    curve_recording(found / "parts", 1, 48).write(found / "synthetic.curve.npz")
    costs().write(found / "costs.json")
    return found


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Source:
    recording = space_recording(tmp_path_factory.mktemp("space") / "parts", 2, 300)
    return Source(Path("synthetic.space.npz"), SPACE, recording, costs())


ARMS = ("round_robin", "round_robin+explorer=evolutionary", "chameleon")


def walked(source: Source, arm: str) -> list[tuple[int, int]]:
    """Calls of each operator's explorers, and the steps that they walked."""
    rows = run_cell(source, arm_named(arm), 0, source.trials(48))["operators"]
    return [(row["calls"], row["steps"]) for row in rows]


@pytest.mark.parametrize("arm", ARMS)
def test_explorers_walk_in_parts_that_are_small_enough_to_be_scored_whole(space: Source, arm: str) -> None:
    found = walked(space, arm)
    assert all(steps > calls for calls, steps in found if calls)
    assert any(calls for calls, _ in found)


@pytest.mark.mutation
@pytest.mark.parametrize("arm", ARMS)
def test_explorers_that_score_parts_whole_are_noticed(space: Source, arm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replayed, "walking", lambda method: method)
    found = walked(space, arm)
    assert all(steps == calls for calls, steps in found)
    assert any(calls for calls, _ in found)


def test_who_scores_nothing_whole_is_left_as_it_is() -> None:
    assert walking(METHODS["random"]) is METHODS["random"]
    assert walking(METHODS["autotvm"]) == METHODS["autotvm"]


def outdated(folder: Path, tmp_path: Path) -> Path:
    """Landscapes whose schedulers were timed before their code changed."""
    shutil.copytree(folder, tmp_path / "older")
    changed = dict.fromkeys(("scheduler", "explorer"), "0" * 16)  # a replay of curves pays for the scheduler alone
    Costs(costs().seconds, "none", {**digests(), **changed}).write(tmp_path / "older" / "costs.json")
    return tmp_path / "older"


def test_prices_of_older_code_are_named_and_not_timed_in_passing(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arm = arm_named("round_robin")
    for path, older in ((folder, list[str]()), (outdated(folder, tmp_path), ["scheduler"])):
        (source,) = sources(str(path), None, [arm], tmp_path)
        said = capsys.readouterr().err.splitlines()
        assert ["older than the code of" in line for line in said] == [True] * len(older)
        cell = run_cell(source, arm, 0, 20)
        assert cell["older_prices"] == older
        key = {"layout": "curve", "arm": arm.name, "seed": 0}
        rows = summary([{**cell, "state": "done", "name": "synthetic", "key": key}])
        assert ("older than the code of" in older_prices(rows)) == bool(older)
    assert not list(tmp_path.glob("costs-*"))


def test_what_was_timed_beside_its_like_is_timed_again_by_other_code(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arm = arm_named("round_robin+explorer.chains=8+explorer.steps=4")
    for count, code in ((1, "one"), (1, "one"), (2, "another")):
        monkeypatch.setattr(replayed, "digests", lambda code=code: {"explorer": code})
        sources(str(folder), None, [arm], tmp_path)
        assert len(list(tmp_path.glob("costs-*.json"))) == count


@pytest.mark.parametrize(("theirs", "said"), [("0.1.2", True), (version("apache-tvm"), False), (None, False)])
def test_a_landscape_of_another_tvm_says_so_in_one_line(
    folder: Path, tmp_path: Path, theirs: str | None, said: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    (source,) = sources(str(folder), None, [], tmp_path)
    header = HEADER if theirs is None else {**HEADER, "versions": {"apache-tvm": theirs}}
    replace(source.recording, header={**source.recording.header, **header}).write(tmp_path / "other.curve.npz")
    costs().write(tmp_path / "costs.json")
    capsys.readouterr()
    sources(str(tmp_path), None, [], tmp_path)
    lines = capsys.readouterr().err.splitlines()
    assert ["recorded with apache-tvm 0.1.2" in line for line in lines] == [True] * said


HARMLESS = (
    "workers/benchmarks/identity.py",  # names what is compared
    "workers/benchmarks/machine.py",
    "workers/benchmarks/methods/arms.py",  # the definition that it comes to is in the cell's budget
    "workers/benchmarks/part.py",  # what a process says
    "workers/benchmarks/process.py",  # starts and reads a process
    "workers/child/archive.py",  # names a library
    "workers/child/network.py",  # calls the importer, and refuses operators that are others
    "workers/benchmarks/progress.py",  # shows how far it is
    "workers/headless/display.py",
    "workers/headless/errors.py",
    "workers/headless/machine.py",  # the machine is in the cell's key
    "workers/engine/gpu.py",  # of programs of ours, as the next ones: what others left is scheduled as it was recorded
    "workers/engine/space.py",
    "workers/engine/start.py",
    *(f"workers/tvm_backend/{part}.py" for part in ("groups", "nvrtc", "repetition", "soundness", "traces")),
    "workers/messages/effects.py",  # what a page says of parts
    "workers/messages/events.py",  # names
    "workers/messages/linker.py",  # which there is
    "workers/messages/machine.py",  # in the cell's key, and how much memory there is
    "workers/messages/orders.py",  # what a run goes on from
    "workers/messages/sources.py",  # makes versions
    "workers/messages/spec.py",
    "workers/messages/whole.py",
    "workers/sandbox/lock.py",  # who waits for whom
    "workers/sandbox/spawn.py",
    "workers/supervision/directory.py",  # reads a journal
    "workers/without.py",  # imports less
)
"""What a cell's module imports and what decides none of its figures."""


def unversioned(module: ModuleType, rooms: Sequence[str]) -> set[str]:
    """Files of the product that `module` imports, itself and by others of the benchmarks and of `rooms`, and that lie in none
    of these."""
    waiting, found = [Path(str(module.__file__))], set[Path]()
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        followed = any(path.is_relative_to(ROOT / room) for room in ("workers/benchmarks", *rooms))
        if followed and str(path.relative_to(ROOT)) not in HARMLESS:
            waiting += _imported(path)
    outside = {str(path.relative_to(ROOT)) for path in found if not any(path.is_relative_to(ROOT / r) for r in rooms)}
    return {name for name in outside if not name.endswith("__init__.py")} - set(HARMLESS)


def _imported(path: Path) -> list[Path]:
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("workers"):
            continue
        place = ROOT / (node.module or "").replace(".", "/")
        files = [place / f"{name.name}.py" for name in node.names]
        files += [place.with_suffix(".py"), place / "__init__.py"]
        found += [file for file in files if file.exists()]
    return found


TIMED = (*TIMING, *PLAYED)
"""What a clock tells is of runs of a version of theirs, whose cells are in its key."""


@pytest.mark.parametrize(
    ("module", "rooms"),
    [
        (replayed, REPLAYED),
        (probes, PROBING),
        (live, PLAYED),
        (retime, TIMED),
        (ours, TUNED),
        (stock, (*STOCK, *IMPORT)),
    ],
)
def test_the_version_of_a_cell_is_of_all_that_computes_it(module: ModuleType, rooms: Sequence[str]) -> None:
    assert not unversioned(module, rooms)


def test_the_version_of_tvms_arms_is_of_all_that_makes_their_module() -> None:
    waiting, found = [ROOT / "workers/tvm_backend/importer.py"], set[Path]()
    while waiting:
        path = waiting.pop()
        if path not in found and path.is_relative_to(ROOT / "workers/tvm_backend"):
            found.add(path)
            waiting += _imported(path)
    outside = {str(path.relative_to(ROOT)) for path in found if not any(path.is_relative_to(ROOT / r) for r in IMPORT)}
    assert {name for name in outside if not name.endswith("__init__.py")} == set()


@pytest.mark.mutation
def test_code_that_a_version_leaves_out_is_noticed() -> None:
    rooms = [room for room in REPLAYED if room not in FOLDING]
    assert unversioned(replayed, rooms) == set(FOLDING)
