"""Tables of which some rows are read, and whole numbers that something is divided by."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

from tests.networks.forms import drawn
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
    from workers.tvm_backend.arguments import Arguments

    (gather,) = [one for one in compiled(embedding(), tmp_path).workloads if not one.weights]
    given = Arguments(1 << 22, handover()).of(0, gather.tensors, gather.constants, gather.batch, gather.divisors)
    assert sum(part.numpy().nbytes for part in given.handed) < 4 * WORDS * WIDTH


def test_nothing_is_divided_by_0(tmp_path: Path) -> None:
    from workers.tvm_backend.arguments import Arguments
    from workers.tvm_backend.plain import Plain

    (mod,) = compiled(remainder(), tmp_path).workloads
    (place,) = mod.divisors
    assert mod.tensors[place] == ((1,), "int64")
    (called,) = islice(Arguments(0, handover()).of(0, mod.tensors, mod.constants, 1, mod.divisors).calls, 1)
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
