"""A child's tasks through the supervisor that starts it: what goes in is an order, what comes out are events."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests import zoo
from tests.tvm_backend.local import THREADS, spec_of, target
from workers.child.clock import RunClock
from workers.child.pulse import Pulse
from workers.child.tasks import Task
from workers.headless.ask import MemoryJournal, ask
from workers.headless.errors import Failure, UserMistake
from workers.messages.causes import UNBUILT
from workers.messages.channel import ControlReader
from workers.messages.orders import best_of, compile_order
from workers.messages.spec import AUTO, COMPUTE, Budget, RunSpec
from workers.messages.tuning_log import FILE
from workers.supervision import DirectoryJournal, supervise

pytestmark = pytest.mark.tvm


@pytest.fixture(scope="module")
def tuned(zoo_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A journal of a finished run of twelve trials, and its spec."""
    work = tmp_path_factory.mktemp("tuned")
    spec = spec_of(zoo.tiny(zoo_cache), budget=Budget(trials=12)).to_json()
    with DirectoryJournal(work) as journal:
        ending = supervise({"task": "tune", "spec": spec, "work_dir": str(work)}, journal)
    assert ending.kind == "finished", f"{ending.detail}\n{ending.log}"
    return work, spec


def test_inspect_tells_inputs_and_outputs(zoo_cache: Path) -> None:
    found = ask({"task": "inspect", "network": str(zoo.tiny(zoo_cache))})["inspection"]
    assert [(port["name"], port["shape"]) for port in found["inputs"]] == [("x", [1, 16, 14, 14])]
    assert [port["name"] for port in found["outputs"]] == ["y"]


def test_inspect_refuses_what_is_no_network(tmp_path: Path) -> None:
    (tmp_path / "bad.onnx").write_bytes(b"\x08\x07 not a network")
    with pytest.raises(UserMistake):
        ask({"task": "inspect", "network": str(tmp_path / "bad.onnx")})


def test_hardware_names_the_target_and_versions() -> None:
    found = ask({"task": "hardware", "peak": False})
    assert found["peak"] is None
    assert found["hardware"]["target"]["num-cores"] == found["hardware"]["cores"] >= 1
    assert found["hardware"]["target"]["mcpu"]
    assert found["versions"]["apache-tvm"]


def test_an_unknown_task_fails_and_says_so() -> None:
    journal = MemoryJournal()
    assert supervise({"task": "dance"}, journal).kind == "failed"
    assert "dance" in journal.events[-1]["reason"]


def test_tune_tells_operators_measurements_and_an_end(tuned: tuple[Path, str]) -> None:
    with DirectoryJournal(tuned[0]) as journal:
        events = list(journal.events())
        history = journal.history()
    kinds = [event["kind"] for event in events]
    assert kinds.count("started") == kinds.count("operators") == kinds.count("finished") == 1
    assert kinds[-1] == "finished"
    assert events[-1]["reason"] == "trials"
    assert events[-1]["trials"] == sum(row["cause"] not in UNBUILT for row in history.measurements) >= 12
    assert history.checkpoint is not None
    assert events[-1]["latency"] > 0


def test_a_run_that_goes_on_does_not_measure_its_layout_again(zoo_cache: Path, tmp_path: Path) -> None:
    spec = spec_of(zoo.tiny(zoo_cache), layout="measured", budget=Budget(trials=2)).to_json()
    journal = MemoryJournal()
    order = {"task": "tune", "spec": spec, "work_dir": str(tmp_path), "layout": "NCHW"}
    assert supervise(order, journal).kind == "finished"
    started = next(event for event in journal.events if event["kind"] == "started")
    assert started["layout"] == "NCHW"
    assert [note for note in started["notes"] if "layout" in note] == ["layout NCHW: as this run began"]


def test_tvm_s_own_search_goes_through_the_loop(zoo_cache: Path, tmp_path: Path) -> None:
    small = {"rhythm.plan": "4", "explorer.population": "24", "explorer.generations": "1"}
    spec = spec_of(zoo.tiny(zoo_cache), method="metaschedule", parts=small, budget=Budget(trials=12)).to_json()
    journal = MemoryJournal()
    ending = supervise({"task": "tune", "spec": spec, "work_dir": str(tmp_path)}, journal)
    assert ending.kind == "finished", f"{ending.detail}\n{ending.log}"
    origins = {row["origin"] for event in journal.events if event["kind"] == "batch" for row in event["measurements"]}
    assert "explorer" in origins


def test_tune_refuses_a_method_that_does_not_exist(zoo_cache: Path, tmp_path: Path) -> None:
    spec = spec_of(zoo.tiny(zoo_cache), method="lottery").to_json()
    journal = MemoryJournal()
    ending = supervise({"task": "tune", "spec": spec, "work_dir": str(tmp_path)}, journal)
    assert ending.kind == "failed"
    assert "lottery" in journal.events[-1]["reason"]


def test_a_network_without_products_has_nothing_to_tune_alone(tmp_path: Path) -> None:
    path = tmp_path / "sum.onnx"
    model = zoo.model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": [4, 16]}, {"y": [4, 16]}, [])
    path.write_bytes(model.SerializeToString())
    order = {"task": "tune", "spec": spec_of(path, operators=COMPUTE).to_json(), "work_dir": str(tmp_path)}
    with pytest.raises(UserMistake, match="products to tune alone; tune all its operators"):
        ask(order)


def compiling(tuned: tuple[Path, str], work: Path, clock: float = 0.0) -> dict[str, Any]:
    with DirectoryJournal(tuned[0]) as journal:
        operators = next(event["operators"] for event in journal.events() if event["kind"] == "operators")
        measurements = journal.history().measurements
    log = work / FILE
    log.write_text("".join(json.dumps({"kind": "measurement", **row}) + "\n" for row in measurements))
    return compile_order(tuned[1], work, "tiny", AUTO, best_of(measurements, operators), 1e-5, log, clock, None, "")


@dataclass(frozen=True)
class Compiled:
    """What a child was told to compile, what it said, and its result."""

    order: dict[str, Any]
    heard: list[dict[str, Any]]
    result: dict[str, Any]


@pytest.fixture(scope="module")
def compiled(tuned: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    """After an hour of tuning that found all configurations of an operator equally fast: the network decides."""
    order = compiling(tuned, tmp_path_factory.mktemp("compiled"), 3600.0)
    log = Path(order["log"])
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    equals = [{**row, "seconds": row["seconds"] and order["best"][str(row["operator"])]["seconds"]} for row in rows]
    log.write_text("".join(json.dumps(row) + "\n" for row in equals))
    heard: list[dict[str, Any]] = []
    return Compiled(order, heard, ask(order, heard.append))


def test_compile_verifies_and_packs(compiled: Compiled) -> None:
    heard, result = compiled.heard, compiled.result
    assert result["passed"]
    assert Path(result["archive"]).is_file()
    assert result["latency"]["median"] > 0
    end_to_end = next(event for event in heard if event["kind"] == "end_to_end")
    assert end_to_end["verified"]
    packing = next(place for place, event in enumerate(heard) if event.get("name") == "packing")
    assert any(event.get("text", "").startswith("the library is ready: ") for event in heard[packing:])
    baseline = next(event for event in heard if event["kind"] == "baseline")
    assert (baseline["name"], baseline["threads"]) == ("ONNX Runtime", THREADS)


def test_what_is_packed_is_what_was_chosen_in_the_network(compiled: Compiled) -> None:
    order, result = compiled.order, compiled.result
    with zipfile.ZipFile(result["archive"]) as packed:
        metadata = json.loads(packed.read("metadata.json"))
        records = packed.read("database_tuning_record.json").decode().splitlines()
    rehearsal, shipped = metadata["rehearsal"], metadata["operators"]
    assert result["rehearsal"] == rehearsal
    assert rehearsal["operators"] > 0
    others = [i for i, kept in shipped.items() if kept["choices"] != order["best"][i]["choices"]]
    assert len(others) == rehearsal["changed"]
    script = [sys.executable, str(Path(result["archive"]).parent / "artifact" / "run.py"), "--json", "--seconds", "0"]
    said = subprocess.run(script, capture_output=True, text=True, check=True).stdout
    assert len(json.loads(said)["seconds"]) == 1
    assert sorted(json.loads(record)[1][1][0] for record in records) == sorted(k["seconds"] for k in shipped.values())


def here(task: Task, order: dict[str, Any]) -> list[dict[str, Any]]:
    """What a task tells that is done in this process."""
    heard: list[dict[str, Any]] = []
    pulse = Pulse(heard.append, RunClock(0.0))
    try:
        task(order, ControlReader(), pulse)
    finally:
        pulse.close()
    return heard


def test_a_network_with_a_scalar_for_input_and_names_of_savez_is_tuned_verified_and_run(tmp_path: Path) -> None:
    from workers.child.artifact import compile_artifact

    nodes = [helper.make_node("Mul", ["x", "file"], ["m"]), helper.make_node("Relu", ["m"], ["allow_pickle"])]
    model = zoo.model_of(nodes, {"x": [4, 16], "file": []}, {"allow_pickle": [4, 16]}, [])
    path = tmp_path / "scaled.onnx"
    path.write_bytes(model.SerializeToString())
    spec = spec_of(path, budget=Budget(trials=2)).to_json()
    (tmp_path / "run").mkdir()
    with DirectoryJournal(tmp_path / "run") as journal:
        supervise({"task": "tune", "spec": spec, "work_dir": str(tmp_path / "run")}, journal)
    assert here(compile_artifact, compiling((tmp_path / "run", spec), tmp_path / "run"))[-1]["passed"]


def test_what_times_kernels_while_it_compiles_spins_no_longer_than_from_one_to_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The peer's turn comes then, on the core that a thread of TVM's would still yield on."""
    from workers.child import artifact
    from workers.tvm_backend.hardware import OtherProcessor

    env: dict[str, str] = {}
    monkeypatch.setattr(artifact, "os", SimpleNamespace(environ=env))
    spec = RunSpec("moved.onnx", {**target(), "mcpu": "x86-64"}, THREADS, 1e11, 1e10).to_json()
    with pytest.raises(OtherProcessor):
        here(artifact.compile_artifact, {"spec": spec, "work_dir": str(tmp_path), "device": None})
    assert (env["TVM_NUM_THREADS"], env["TVM_THREAD_POOL_SPIN_COUNT"]) == (str(THREADS), "2000")


@pytest.mark.parametrize(
    ("what", "said"),
    [("key", "operator 0 is not the one that was tuned"), ("space", "operator 0 are another version's")],
)
def test_compile_refuses_configurations_of_another_operator_or_version(
    tuned: tuple[Path, str], tmp_path: Path, what: str, said: str
) -> None:
    order = compiling(tuned, tmp_path)
    assert len(order["best"]["0"][what]) == 16
    order["best"]["0"][what] = "0" * 16
    with pytest.raises(Failure, match=said):
        ask(order)
    assert not (tmp_path / "artifact.zip").exists()


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (None, ""),
        (("0" * 16, ""), "operators are not those this run was started with"),
        ((None, "0" * 16), "made by another version, which would read their choices otherwise"),
    ],
)
def test_a_run_goes_on_with_the_operators_and_choices_it_began_with(
    tuned: tuple[Path, str], tmp_path: Path, other: tuple[str | None, str] | None, said: str
) -> None:
    with DirectoryJournal(tuned[0]) as journal:
        operators = next(event["operators"] for event in journal.events() if event["kind"] == "operators")
        measurements = journal.history().measurements
    began = [(operator["key"], operator["space"]) for operator in operators]
    if other is not None:
        began[0] = (other[0] or began[0][0], other[1])
    spec = replace(RunSpec.from_json(tuned[1]), budget=Budget(trials=len(measurements))).to_json()
    order = {"task": "tune", "spec": spec, "work_dir": str(tmp_path), "operators": began, "measurements": measurements}
    journal = MemoryJournal()
    ending = supervise(order, journal)
    assert ending.kind == ("failed" if said else "finished"), ending.detail
    assert said in journal.events[-1].get("reason", "")
    assert ("start another run" in journal.events[-1].get("next_step", "")) == bool(said)


def test_baselines_are_taken_without_any_tuning(tuned: tuple[Path, str], tmp_path: Path) -> None:
    heard: list[dict[str, Any]] = []
    ask({"task": "baseline", "spec": tuned[1], "name": "tiny", "work_dir": str(tmp_path)}, heard.append)
    told = [(event["name"], event["seconds"]) for event in heard if event["kind"] == "baseline"]
    assert [name for name, _ in told] == ["ONNX Runtime", "ONNX Runtime", "TVM untuned"]
    assert all(seconds > 0 for _, seconds in told)
    assert not [event for event in heard if event["kind"] == "log"]
    assert told[1][1] <= told[0][1], "the line that stays is the quickest turns'"


def test_baselines_leave_a_run_its_head_start(tuned: tuple[Path, str], tmp_path: Path) -> None:
    """ONNX Runtime, which was timed beside what the run loads, is timed again when it is over."""
    order = {"task": "baseline", "spec": tuned[1], "name": "tiny", "work_dir": str(tmp_path), "head_start": 0.7}
    told: list[tuple[str, float]] = []
    ask(order, lambda event: told.append((event.get("name", event["kind"]), event["clock"])))
    names = [name for name, _ in told]
    first, second, compiling = names.index("ONNX Runtime"), names.index("ONNX Runtime", 2), names.index("baseline", 2)
    assert first < second < compiling
    assert told[second][1] - told[first][1] >= 0.7


def test_an_import_that_computes_something_else_is_told_before_the_tuning_is_over(
    tuned: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.baselines.verify import compare
    from workers.child import baseline

    wrong = compare({"y": np.zeros(3, np.float32)}, {"y": np.ones(3, np.float32)})
    monkeypatch.setattr(baseline, "verified", lambda *_, **__: wrong)
    heard = here(baseline.measure_baselines, {"spec": tuned[1], "name": "tiny", "work_dir": str(tmp_path)})
    (said,) = [event for event in heard if event["kind"] == "log"]
    assert said["level"] == "error"
    assert "y: it differs by 1" in said["text"]
    assert heard[-1]["kind"] == "result"
    assert {event["name"] for event in heard if event["kind"] == "baseline"} == {"ONNX Runtime"}, (
        "what is wrong may be fast"
    )


@pytest.mark.parametrize(
    ("ir", "opset", "kind", "said"),
    [
        (14, 18, TensorProto.FLOAT, "does not take it: Unsupported model IR version: 14, max supported IR version: 13"),
        (10, 27, TensorProto.FLOAT, "does not take it: ONNX Runtime only .*guarantees.* support"),
        (10, 18, TensorProto.DOUBLE, r"does not take it: Could not find an implementation for GlobalAveragePool\(1\)"),
    ],
)
def test_inspect_refuses_what_no_library_could_be_compared_for(
    ir: int, opset: int, kind: int, said: str, tmp_path: Path
) -> None:
    """It would be told after the tuning."""
    ports = [helper.make_tensor_value_info(name, kind, [1, 3, size, size]) for name, size in (("x", 8), ("y", 1))]
    graph = helper.make_graph([helper.make_node("GlobalAveragePool", ["x"], ["y"])], "g", ports[:1], ports[1:])
    path = tmp_path / "network.onnx"
    opsets = [helper.make_opsetid("", opset)]
    path.write_bytes(helper.make_model(graph, ir_version=ir, opset_imports=opsets).SerializeToString())
    with pytest.raises(UserMistake, match=said):
        ask({"task": "inspect", "network": str(path)})


def test_inspect_names_operators_that_tvm_cannot_import(tmp_path: Path) -> None:
    graph = helper.make_graph(
        [helper.make_node("Det", ["x"], ["y"])],
        "odd",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [])],
    )
    path = tmp_path / "odd.onnx"
    path.write_bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8).SerializeToString()
    )
    with pytest.raises(UserMistake, match="Det"):
        ask({"task": "inspect", "network": str(path)})


def test_inspect_takes_what_cleaning_takes_out_and_sees_what_stands_in_branches(tmp_path: Path) -> None:
    """Celu is defined by others, the places of a constant are one, and a recurrent operator is written out."""
    celu = helper.make_node("Celu", ["x"], ["e"])
    recurrent = helper.make_node("RNN", ["e", "w", "r"], ["y"], hidden_size=4)
    weights = [zoo.constant("w", np.ones((1, 4, 3), np.float32)), zoo.constant("r", np.ones((1, 4, 4), np.float32))]
    path = tmp_path / "network.onnx"
    model = zoo.model_of([celu, recurrent], {"x": ["steps", "N", 3]}, {"y": ["steps", 1, "N", 4]}, weights)
    path.write_bytes(model.SerializeToString())
    assert ask({"task": "inspect", "network": str(path)})["inspection"]["operators"] == {"Celu": 1, "RNN": 1}
    value = helper.make_tensor_value_info("b", TensorProto.FLOAT, None)
    graphs = [helper.make_graph([helper.make_node("Det", ["x"], ["b"])], name, [], [value]) for name in ("yes", "no")]
    branching = helper.make_node("If", ["c"], ["y"], then_branch=graphs[0], else_branch=graphs[1])
    model = zoo.model_of([branching], {"x": [2, 2]}, {"y": None}, [zoo.constant("c", np.asarray(True))])
    path.write_bytes(model.SerializeToString())
    with pytest.raises(UserMistake, match="Det"):
        ask({"task": "inspect", "network": str(path)})


@pytest.mark.parametrize("task", ["compile", "baseline"])
def test_the_network_is_cleaned_once_for_library_and_description_and_need_not_be_tuned_whole(
    tuned: tuple[Path, str], task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.child import artifact, baseline, network
    from workers.networks.clean import cleaned

    runs = {"compile": artifact.compile_artifact, "baseline": baseline.measure_baselines}
    seen: list[str] = []

    def watched(path: str, shapes: dict[str, list[int]]) -> Any:
        seen.append(path)
        return cleaned(path, shapes)

    monkeypatch.setattr(network, "cleaned", watched)
    order = compiling(tuned, tmp_path)
    del order["best"]["0"]
    heard = here(runs[task], order)
    assert len(seen) == 1
    assert [event["passed"] for event in heard if event.get("task") == "compile"] == [True] * (task == "compile")
    (metadata,) = tmp_path.glob("*/metadata.json")
    ports = json.loads(metadata.read_text())
    assert [(port["name"], port["shape"]) for port in ports["inputs"]] == [("x", [1, 16, 14, 14])]
    assert [(port["name"], port["shape"]) for port in ports["outputs"]] == [("y", [1, 10])]
