"""Whatever configuration an operator gets, the network computes what it computed before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests import zoo
from tests.tvm_backend.local import mixed, reference, spec_of, target
from workers.baselines.verify import compare
from workers.networks.clean import cleaned

pytestmark = pytest.mark.tvm

SAMPLES, FEW = 20, 8


class Compiled:
    """An imported network, its operators and their workloads."""

    def __init__(self, path: Path, model: onnx.ModelProto | None = None) -> None:
        target()
        import tvm

        from workers.tvm_backend.importer import import_network
        from workers.tvm_backend.library import Network

        spec = spec_of(path)
        self.shape = spec.inputs["x"]
        self.target = tvm.target.Target(spec.target)
        model = model or cleaned(spec.network, spec.inputs)
        self.imported = import_network(model, spec.inputs, self.target, balance=spec.balance)
        self.network = Network.of(self.imported, self.target)
        self.extracted, self.workloads = self.network.extracted, self.network.workloads

    def drawn(self, rng: np.random.Generator) -> dict[int, tuple[int, tuple[int, ...], float]]:
        """A random valid configuration of every operator."""
        from workers.tvm_backend.programs import Invalid

        found: dict[int, tuple[int, tuple[int, ...], float]] = {}
        for index, workload in enumerate(self.workloads):
            for _ in range(50):
                sketch = int(rng.integers(len(workload.sketches)))
                choices = tuple(workload.sketches[sketch].random(rng, 1)[0].tolist())
                try:
                    workload.schedule(sketch, choices)
                except Invalid:
                    continue
                found[index] = (sketch, choices, 1e-6)
                break
            else:  # it would be compiled as plain loops, which always compute what they should
                raise AssertionError(f"none of 50 configurations of operator {index} is valid")
        return found

    def run(
        self, best: dict[int, tuple[int, tuple[int, ...], float]] | None, x: np.ndarray[Any, Any]
    ) -> np.ndarray[Any, Any]:
        """The network's output on x, compiled with these configurations; None: untuned."""
        import tvm
        from tvm import relax

        from workers.tvm_backend.library import compile_network

        built = self.network.compiled(best) if best is not None else compile_network(self.imported, None, self.target)
        machine = relax.VirtualMachine(built, tvm.cpu())
        output = machine["main"](tvm.runtime.tensor(x))
        return np.asarray((output if hasattr(output, "numpy") else output[0]).numpy())


def compiled(model: onnx.ModelProto, folder: Path) -> Compiled:
    """Of a model that is no file yet; cleaned as files are."""
    path = folder / "network.onnx"
    path.write_bytes(model.SerializeToString())
    return Compiled(path)


def compiled_right(model: onnx.ModelProto, folder: Path, seeds: int = 2, tolerance: float = 1e-4) -> Compiled:
    """The same; untuned and with configurations of so many `seeds` it computes what ONNX Runtime does."""
    one = compiled(model, folder)
    x = drawn_input(one.shape)
    wanted = reference(folder / "network.onnx", x)
    for best in (None, *(one.drawn(np.random.default_rng(seed)) for seed in range(seeds))):
        np.testing.assert_allclose(one.run(best, x), wanted, rtol=tolerance, atol=tolerance)
    return one


@pytest.fixture(scope="module", params=["tiny", "mixed"])
def network(request: pytest.FixtureRequest, zoo_cache: Path) -> tuple[Path, Compiled]:
    make: Callable[[Path], Path] = {"tiny": zoo.tiny, "mixed": mixed}[request.param]
    path = make(zoo_cache)
    return path, Compiled(path)


def drawn_input(shape: list[int], seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_random_configurations_of_all_operators_compute_what_the_reference_computes(
    network: tuple[Path, Compiled],
) -> None:
    path, compiled = network
    x = drawn_input(compiled.shape)
    wanted, rng = reference(path, x), np.random.default_rng(5)
    for number in range(FEW):
        best = compiled.drawn(rng)
        assert len(best) == len(compiled.workloads)
        verdict = compare({"y": compiled.run(best, x)}, {"y": wanted})
        assert verdict.passed, f"sample {number}, {best}: {verdict.reason}"


def test_every_operator_is_scheduled_by_its_record(network: tuple[Path, Compiled]) -> None:
    from tvm import relax, tirx

    _, compiled = network
    records = compiled.network.database(compiled.drawn(np.random.default_rng(1)))
    with compiled.target, records:
        mod = relax.transform.MetaScheduleApplyDatabase()(compiled.imported.mod)
    functions = [function for function in mod.functions.values() if isinstance(function, tirx.PrimFunc)]
    assert functions
    assert all(any("is_scheduled" in str(name) for name in function.attrs.keys()) for function in functions)


def test_what_was_asked_is_read_back_and_reads_back_as_itself(network: tuple[Path, Compiled]) -> None:
    _, compiled = network
    from workers.tvm_backend.programs import key_of

    rng = np.random.default_rng(2)
    for _ in range(SAMPLES):
        for index, (sketch, choices, _seconds) in compiled.drawn(rng).items():
            workload = compiled.workloads[index]
            first = workload.schedule(sketch, choices)
            made = workload.read_back(first, sketch, choices)
            assert made is not None
            knobs = workload.sketches[sketch].knobs
            assert all(a == b for a, b, knob in zip(choices, made, knobs, strict=True) if knob.kind != "location")
            second = workload.schedule(sketch, made)
            assert workload.read_back(second, sketch, made) == made
            assert key_of(second.mod) == key_of(first.mod)


def test_annotations_are_knobs_that_change_the_program(network: tuple[Path, Compiled]) -> None:
    _, compiled = network
    from workers.tvm_backend.programs import key_of

    changed = 0
    for index, (sketch, choices, _seconds) in compiled.drawn(np.random.default_rng(3)).items():
        workload = compiled.workloads[index]
        for place, knob in enumerate(workload.sketches[sketch].knobs):
            if knob.name in ("parallel", "vectorize"):
                keys = {
                    key_of(workload.schedule(sketch, (*choices[:place], option, *choices[place + 1 :])).mod)
                    for option in range(len(knob.options))
                }
                changed += len(keys) > 1
    assert changed > 0


def test_workloads_survive_their_file(network: tuple[Path, Compiled], tmp_path: Path) -> None:
    _, compiled = network
    from workers.tvm_backend.programs import key_of, load_workloads, save_workloads

    save_workloads(compiled.workloads, tmp_path / "workloads.json")
    loaded = load_workloads(tmp_path / "workloads.json", compiled.target)
    assert [w.sketches for w in loaded] == [w.sketches for w in compiled.workloads]
    for index, (sketch, choices, _seconds) in compiled.drawn(np.random.default_rng(4)).items():
        keys = {key_of(w.schedule(sketch, choices).mod) for w in (loaded[index], compiled.workloads[index])}
        assert len(keys) == 1


def test_operators_and_starts_are_equal_in_every_process_and_valid(network: tuple[Path, Compiled]) -> None:
    path, compiled = network
    from workers.engine.machine import Machine
    from workers.tvm_backend.operators import operators

    again = Compiled(path)
    one, two = (operators(c.extracted, c.workloads, 1e11, 1e10, Machine(cores=2)) for c in (compiled, again))
    assert one == two
    for operator, workload in zip(one, compiled.workloads, strict=True):
        assert operator.start
        for start in operator.start:
            workload.schedule(start.sketch, start.choices)


@pytest.mark.mutation
def test_swapped_weight_axes_are_noticed_unless_the_weights_are_constant(zoo_cache: Path, tmp_path: Path) -> None:
    for constant in (False, True):
        model = onnx.load(zoo.tiny(zoo_cache))
        weight = next(w for w in model.graph.initializer if w.name == "w")
        values = np.full((16, 16, 3, 3), 0.1, np.float32) if constant else numpy_helper.to_array(weight)
        weight.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(values), "w"))
        path = tmp_path / f"{constant}.onnx"
        path.write_bytes(model.SerializeToString())
        weight.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(values.transpose(0, 1, 3, 2)), "w"))
        compiled = Compiled(path, model)
        x = drawn_input(compiled.shape)
        verdict = compare({"y": compiled.run({}, x)}, {"y": reference(path, x)})
        assert verdict.passed is constant
