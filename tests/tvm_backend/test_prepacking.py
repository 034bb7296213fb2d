"""Weights come out as TVM packs them, by programs that are compiled together and are not in the library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.tvm_backend.local import mixed, target
from tests.tvm_backend.test_configurations import Compiled
from tests.tvm_backend.test_constants import compiled

pytestmark = pytest.mark.tvm

SHAPE = (4, 6)
ONE, OTHER = np.random.default_rng(0).standard_normal((2, *SHAPE)).astype(np.float32)


@pytest.fixture(scope="module", autouse=True)
def _runtime() -> None:
    target()


@pytest.fixture(scope="module")
def network(zoo_cache: Path) -> Compiled:
    return Compiled(mixed(zoo_cache))


@pytest.fixture(scope="module")
def lifted(network: Compiled) -> Any:
    """The network with a drawn configuration of every operator, before its constants are folded."""
    import tvm
    from tvm import relax

    records = network.network.database(network.drawn(np.random.default_rng(1)))
    with network.target, records:
        mod = relax.transform.MetaScheduleApplyDatabase()(network.imported.mod)
    passes = [relax.transform.SplitLayoutRewritePreproc(), relax.transform.LiftTransformParams()]
    return tvm.transform.Sequential(passes)(mod)


def read(mod: Any) -> list[tuple[str, list[bytes]]]:
    """What main calls, with the constants that each reads."""
    import tvm
    from tvm import relax

    values = relax.analysis.get_var2val(mod["main"])

    def settled(expr: Any) -> Any:
        while isinstance(expr, relax.Var) and expr in values:
            expr = values[expr]
        return settled(settled(expr.tuple_value).fields[expr.index]) if isinstance(expr, relax.TupleGetItem) else expr

    found = []
    for call in values.values():
        if isinstance(call, relax.Call):
            program = call.op.name == "relax.call_tir"
            name, arguments = (call.args[0].name_hint, call.args[1].fields) if program else (call.op.name, call.args)
            constants = [one for one in map(settled, arguments) if isinstance(one, tvm.ir.GenericConst)]
            found.append((name, [one.value.numpy().tobytes() for one in constants]))
    return sorted(found)


def of_constants(doubled: bool = False, threads: bool = False) -> Any:
    """x + (ONE - OTHER), and doubled a program that computes OTHER - ONE too; with a GPU's `threads`."""
    import tvm
    from tvm import relax, te

    builder = relax.BlockBuilder()
    one, other = (te.placeholder(SHAPE, "float32", name) for name in "ab")
    results = [te.compute(SHAPE, lambda i, j: one[i, j] - other[i, j], "difference")]
    if doubled:
        results.append(te.compute(SHAPE, lambda i, j: other[i, j] - one[i, j], "opposite"))
    program = te.create_prim_func([one, other, *results]).without_attr("global_symbol")
    if threads:
        schedule = tvm.s_tir.Schedule(program)
        schedule.bind(schedule.get_loops(schedule.get_sblock("difference"))[0], "threadIdx.x")
        program = schedule.mod["main"].without_attr("global_symbol")
    kind = relax.TensorType(SHAPE, "float32")
    x = relax.Var("x", kind)
    with builder.function("main", [x]):
        with builder.dataflow():
            called = builder.add_func(program, "difference")
            packed = relax.op.call_tir(called, (relax.const(ONE), relax.const(OTHER)), [kind] * len(results))
            value = builder.emit(packed)
            if doubled:
                value = builder.emit(relax.op.add(builder.emit(value[0]), builder.emit(value[1])))
            result = builder.emit_output(relax.op.add(x, value))
        builder.emit_func_output(result)
    return builder.get()


def test_weights_are_packed_to_the_bits_that_tvm_packs_them_to(lifted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import tvm
    from tvm import relax

    from workers.tvm_backend.prepacking import Prepack

    fold, build, builds = relax.transform.FoldConstant(), tvm.tirx.build, list[Any]()
    monkeypatch.setattr(
        "tvm.tirx.build", lambda mod, *args, **kwargs: builds.append(mod) or build(mod, *args, **kwargs)
    )
    with compiled() as programs:
        packed = fold(Prepack()(lifted))
    assert not programs, "FoldConstant found nothing left"
    assert len(builds) == 1
    with compiled() as programs:
        wanted = fold(lifted)
    assert len(programs) == len(builds[0].functions) >= 3, "TVM has another way by now: is this pass still needed?"
    alike = read(packed) == read(wanted)
    assert alike, "of other values or another layout, in megabytes that nobody wants to be shown"
    assert any(len(constants) == 2 for _, constants in read(packed)), "a program that packs two"


def test_what_packed_the_weights_is_not_in_the_library(network: Compiled, monkeypatch: pytest.MonkeyPatch) -> None:
    import tvm

    compile_module, seen = tvm.compile, list[Any]()
    monkeypatch.setattr("tvm.compile", lambda mod, **kwargs: seen.append(mod) or compile_module(mod, **kwargs))
    network.network.compiled(network.drawn(np.random.default_rng(1)))
    (mod,) = seen
    called = {name for name, _ in read(mod)}
    programs = [variable.name_hint for variable, one in mod.functions_items() if isinstance(one, tvm.tirx.PrimFunc)]
    assert set(programs) == called
    assert "R.Tuple" not in mod["main"].script(), "each inference would make one and take it apart"


@pytest.mark.parametrize("doubled", [False, True], ids=["one result", "two results"])
def test_any_program_of_constants_is_run_once(doubled: bool) -> None:
    from workers.tvm_backend.prepacking import Prepack

    made = [ONE - OTHER, OTHER - ONE] if doubled else [ONE - OTHER]
    assert ("relax.add", [one.tobytes() for one in made]) in read(Prepack()(of_constants(doubled)))


def test_what_does_not_compile_for_this_processor_is_left_alone() -> None:
    from tvm_ffi import structural_equal

    from workers.tvm_backend.prepacking import Prepack

    mod = of_constants(threads=True)
    assert structural_equal(Prepack()(mod), mod)


@pytest.mark.mutation
def test_swapped_arguments_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from workers.tvm_backend import prepacking

    compiled_programs = prepacking._compiled

    def swapped(*asked: Any) -> prepacking.Programs:
        programs = compiled_programs(*asked)
        return {name: lambda a, b, *made, run=run: run(b, a, *made) for name, run in programs.items()}

    monkeypatch.setattr(prepacking, "_compiled", swapped)
    with pytest.raises(AssertionError):
        test_any_program_of_constants_is_run_once(True)


@pytest.mark.mutation
def test_weights_of_another_layout_are_noticed(lifted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from workers.tvm_backend import prepacking

    compiled_programs = prepacking._compiled

    def turned(*asked: Any) -> prepacking.Programs:
        def run(program: Any, *tensors: Any) -> None:
            program(*tensors)
            tensors[-1].copyfrom(tensors[-1].numpy().ravel()[::-1].reshape(tensors[-1].shape))

        programs = compiled_programs(*asked)
        return {name: lambda *tensors, one=one: run(one, *tensors) for name, one in programs.items()}

    monkeypatch.setattr(prepacking, "_compiled", turned)
    with pytest.raises(AssertionError):
        test_weights_are_packed_to_the_bits_that_tvm_packs_them_to(lifted, monkeypatch)
