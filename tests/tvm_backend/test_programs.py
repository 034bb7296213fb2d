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


@pytest.mark.parametrize("processor", ["znver3", "znver4"])
def test_of_one_structure_the_first_parts_alone_run_in_parallel(processor: str, tmp_path: Path) -> None:
    """The rules of the machine count pieces for every core by it: what follows a sum comes within those parts of its loops."""
    from workers.engine.rules import FUSED_LATE

    (tiled,) = [found for found in scripts(sums(tmp_path), processor) if all("SSRSRS" in script for script in found)]
    depths = [depth(script) for script in tiled]
    late = depths[FUSED_LATE]
    assert late
    assert sorted(found or 0 for found in depths) == [0, late, 2 * late]


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
