"""What a scheduled program is compiled for, and that a configuration means the same program on all processors."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from onnx import helper

from tests.networks.forms import drawn
from tests.tvm_backend.local import target
from tests.zoo import constant, model_of

pytestmark = pytest.mark.tvm


def made(wanted: dict[str, Any]) -> Any:
    import tvm

    return tvm.target.Target(wanted)


def test_a_program_is_compiled_for_the_same_processor_at_another_level():
    from workers.tvm_backend.programs import LEVEL, quickly

    here = made({**target(), "mattr": ["+fma"]})
    assert dict(quickly(here).export()) == {**dict(here.export()), "opt-level": LEVEL}


def test_what_llvm_does_not_compile_has_no_level():
    from workers.tvm_backend.programs import quickly

    written = made({"kind": "c"})
    assert quickly(written) is written


def sums(folder: Path) -> list[Any]:
    """Modules of a convolution, of a mean by a rule of ours, and of a norm that TVM's rules may break into pieces."""
    from tests.tvm_backend.test_configurations import Compiled

    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("ReduceMean", ["c"], ["m"], axes=(2, 3)),
        helper.make_node("Softmax", ["m"], ["y"], axis=1),
    ]
    path = folder / "network.onnx"
    model = model_of(nodes, {"x": [1, 3, 14, 14]}, {"y": None}, [constant("w", drawn(32, 3, 1, 1))])
    path.write_bytes(model.SerializeToString())
    return [workload.mod for workload in Compiled(path).workloads]


def scripts(mods: list[Any], processor: str) -> list[list[str]]:
    from workers.tvm_backend.programs import Workload

    wanted = made({**target(), "mcpu": processor})
    return [[str(trace) for trace in Workload.generate(mod, wanted).traces] for mod in mods]


def test_programs_of_an_operator_come_in_one_order_on_all_processors(tmp_path: Path) -> None:
    mods = sums(tmp_path)
    orders = scripts(mods, "skylake-avx512")
    assert max(map(len, orders)) > 3
    assert scripts(mods, "haswell") == scripts(mods, "znver3") == orders


def tiled(folder: Path, processor: str, *nodes: Any) -> Any:
    """The family of a product of 128 x 64 x 96 and of what follows it."""
    from tests.tvm_backend.test_configurations import Compiled
    from workers.tvm_backend.programs import Workload

    path = folder / "network.onnx"
    product = helper.make_node("MatMul", ["x", "w"], ["c"])
    model = model_of([product, *nodes], {"x": [128, 64]}, {"y" if nodes else "c": None}, [constant("w", drawn(64, 96))])
    path.write_bytes(model.SerializeToString())
    (mod,) = [workload.mod for workload in Compiled(path).workloads]
    (family,) = Workload.generate(mod, made({**target(), "mcpu": processor})).families
    return family


@pytest.mark.parametrize("processor", ["znver3", "znver4"])
@pytest.mark.parametrize("follows", [True, False])
def test_structures_are_named_by_where_they_write(processor: str, follows: bool, tmp_path: Path) -> None:
    """TVM gives them in another order where nothing follows a sum; the rules of the machine count parallel pieces by them."""
    from workers.engine.space import DIRECT, FUSED, LATE, OUTSIDE

    nodes = [helper.make_node("Relu", ["c"], ["y"])] if follows else []
    family = tiled(tmp_path, processor, *nodes)
    depths = [depth(str(trace)) for trace in family.traces]
    wanted = {None: OUTSIDE if follows else DIRECT, 2: LATE, 4: FUSED}
    assert [wanted[found] for found in depths] == list(family.sketch.structures)
    assert depths == [None, 4, 2], "in one order, by which twins read each other's"


def depth(script: str) -> int | None:
    """Of the tiled loops that run around what follows a sum, how many; None where it follows them all."""
    loops = re.search(r"reorder\(([^)]*)\)", script)
    placed = re.search(r"reverse_compute_at\(block=\w+, loop=(\w+)", script)
    assert loops
    return loops[1].split(", ").index(placed[1]) + 1 if placed else None


@pytest.mark.mutation
def test_rules_as_tvm_has_them_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from workers.tvm_backend import programs

    mods = sums(tmp_path)
    monkeypatch.setattr(programs, "_in_one_order", lambda rules: rules)
    assert scripts(mods, "haswell") != scripts(mods, "skylake-avx512")
