"""Tables of which some rows are read, and whole numbers that something is divided by."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

from tests.networks.forms import drawn
from tests.tvm_backend.local import target
from tests.tvm_backend.test_arguments import handover
from tests.tvm_backend.test_configurations import compiled
from tests.zoo import constant, model_of

pytestmark = pytest.mark.tvm

WORDS, WIDTH, READ = 4000, 64, 12


def embedding() -> ModelProto:
    nodes = [
        helper.make_node("Cast", ["x"], ["ids"], to=TensorProto.INT64),
        helper.make_node("Gather", ["table", "ids"], ["rows"]),
        helper.make_node("MatMul", ["rows", "w"], ["y"]),
    ]
    weights = [constant("table", drawn(WORDS, WIDTH)), constant("w", drawn(WIDTH, WIDTH))]
    return model_of(nodes, {"x": [1, READ]}, {"y": None}, weights)


def remainder() -> ModelProto:
    nodes = [
        helper.make_node("Cast", ["x"], ["whole"], to=TensorProto.INT64),
        helper.make_node("Mod", ["whole", "eighty"], ["rest"]),
        helper.make_node("Cast", ["rest"], ["y"], to=TensorProto.FLOAT),
    ]
    return model_of(nodes, {"x": [1, 100]}, {"y": None}, [constant("eighty", np.int64([80]))])


def test_a_table_is_a_constant_of_which_no_more_is_touched_than_is_taken_from_it(tmp_path: Path) -> None:
    found = compiled(embedding(), tmp_path)
    (gather,) = [one for one in found.workloads if ((WORDS, WIDTH), "float32") in one.tensors]
    (place,) = [place for place, one in enumerate(gather.tensors) if one == ((WORDS, WIDTH), "float32")]
    assert gather.constants == ((place, 0),)
    assert gather.weights == (), "it is read in one way only, but not all of it"
    assert gather.touched < 4 * READ * WIDTH * 3
    assert gather.held > 4 * WORDS * WIDTH, "who times it has all of it"
    product = next(one for one in found.workloads if ((WIDTH, WIDTH), "float32") in one.tensors and one.weights)
    assert product.touched == sum(4 * int(np.prod(shape)) for shape, _ in product.tensors)


def test_a_table_is_not_written_before_every_call(tmp_path: Path) -> None:
    from workers.tvm_backend.arguments import Arguments, Footprint

    (gather,) = [one for one in compiled(embedding(), tmp_path).workloads if not one.weights]
    given = Arguments(Footprint(1 << 22, 1 << 22), handover()).of(0, gather.tensors, **gather.reading)
    assert sum(part.numpy().nbytes for part in given.handed) < 4 * WORDS * WIDTH


def rows(looked_up: bool) -> Any:
    """Rows of a table, by number or one after the other, and what is added to them in the same program, with an axis of one."""
    target()
    import tvm
    from tvm import te

    from workers.tvm_backend.programs import Workload

    table, ids = te.placeholder((WORDS, WIDTH), name="table"), te.placeholder((1, READ), "int64", name="ids")
    places = te.placeholder((1, READ, WIDTH), name="places")
    row = (lambda i, j: ids[i, j]) if looked_up else (lambda i, j: j)
    made = te.compute((1, READ, WIDTH), lambda i, j, k: table[row(i, j), k] + places[i, j, k] + ids[i, j], name="made")
    mod = tvm.IRModule({"main": te.create_prim_func([table, ids, places, made])})
    return Workload(mod, (), tvm.target.Target(target()))


def test_whole_numbers_are_indices_that_exist_and_are_not_all_one_row() -> None:
    """Not of what nobody looks anything up in: of its axis of one there is the first alone."""
    from workers.tvm_backend.arguments import Arguments, Footprint

    gather = rows(looked_up=True)
    assert gather.below == min(WORDS, WIDTH)
    (given,) = islice(Arguments(Footprint(), handover()).of(0, gather.tensors, **gather.reading).calls, 1)
    ids = given[1].numpy()
    assert 0 <= ids.min() < ids.max() < gather.below


def test_where_nothing_is_seen_to_be_looked_up_whole_numbers_are_below_every_size() -> None:
    assert rows(looked_up=False).below == 1


def test_nothing_is_divided_by_0(tmp_path: Path) -> None:
    from workers.tvm_backend.arguments import Arguments, Footprint
    from workers.tvm_backend.plain import Plain

    (mod,) = compiled(remainder(), tmp_path).workloads
    (place,) = mod.divisors
    assert mod.tensors[place] == ((1,), "int64")
    (called,) = islice(Arguments(Footprint(), handover()).of(0, mod.tensors, **mod.reading).calls, 1)
    assert called[place].numpy() == [1]
    assert Plain(mod).computes(0, tuple(0 for _ in mod.sketches[0].knobs))


def test_nor_by_what_is_computed_of_0(tmp_path: Path) -> None:
    """Numbers under 1 that are cast to whole ones."""
    from workers.tvm_backend.plain import Plain

    nodes = [
        helper.make_node("Cast", ["x"], ["whole"], to=TensorProto.INT64),
        helper.make_node("Cast", ["by"], ["some"], to=TensorProto.INT64),
        helper.make_node("Div", ["whole", "some"], ["rest"]),
        helper.make_node("Cast", ["rest"], ["real"], to=TensorProto.FLOAT),
        helper.make_node("Div", ["real", "x"], ["y"]),
    ]
    model = model_of(nodes, {"x": [1, 100], "by": [1, 100]}, {"y": None}, [])
    (program,) = compiled(model, tmp_path).workloads
    dividend, by = (program.mod["main"].params[place].name for place in (0, program.divisors[0]))
    assert (dividend, by) == ("x", "by"), "floats are divided by the first, which is no matter"
    assert Plain(program).computes(0, tuple(0 for _ in program.sketches[0].knobs))


def test_filters_of_a_signal_are_no_batch(tmp_path: Path) -> None:
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], pads=[3, 3])]
    model = model_of(nodes, {"x": [1, 16, 256]}, {"y": None}, [constant("w", drawn(24, 16, 7))])
    assert {one.batch for one in compiled(model, tmp_path).workloads} == {1}
