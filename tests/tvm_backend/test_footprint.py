"""What an inference touches: each weight once, and room for what somebody still reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import ModelProto, helper

from tests.networks.forms import drawn
from tests.tvm_backend.test_configurations import compiled
from tests.tvm_backend.test_reads import READ, WIDTH, WORDS, embedding
from tests.zoo import constant, model_of

pytestmark = pytest.mark.tvm

ROWS, COLUMNS = 64, 128
TENSOR, WEIGHTS = 4 * ROWS * COLUMNS, 4 * COLUMNS * COLUMNS
PRODUCTS = 6


def chain(shared: bool, kept: bool = False) -> ModelProto:
    """Products one after the other, by weights of their own or the same; with the first one `kept` for the last, or that as it
    is."""
    nodes, weights = [], [constant("w", drawn(COLUMNS, COLUMNS))] if shared else []
    for place in range(PRODUCTS):
        by = "w" if shared else f"w{place}"
        if not shared:
            weights.append(constant(by, drawn(COLUMNS, COLUMNS, seed=place)))
        nodes.append(helper.make_node("MatMul", [f"h{place}" if place else "x", by], [f"s{place}"]))
        nodes.append(helper.make_node("Tanh", [f"s{place}"], [f"h{place + 1}"]))
    nodes.append(helper.make_node("Add", [f"h{PRODUCTS}", "h1" if kept else f"h{PRODUCTS}"], ["y"]))
    return model_of(nodes, {"x": [ROWS, COLUMNS]}, {"y": None}, weights)


def touched(model: ModelProto, folder: Path) -> tuple[int, int]:
    from workers.tvm_backend.footprint import footprint

    return footprint(compiled(model, folder).imported.mod)


def test_what_is_computed_lies_where_what_nobody_reads_any_more_lay(tmp_path: Path) -> None:
    """The network's input, and what a product reads and writes."""
    assert touched(chain(shared=False), tmp_path) == (PRODUCTS * WEIGHTS, 3 * TENSOR)


def test_what_is_read_later_keeps_its_room(tmp_path: Path) -> None:
    assert touched(chain(shared=False, kept=True), tmp_path) == (PRODUCTS * WEIGHTS, 4 * TENSOR)


def test_a_weight_counts_once(tmp_path: Path) -> None:
    assert touched(chain(shared=True), tmp_path) == (WEIGHTS, 3 * TENSOR)


def test_of_a_table_what_is_looked_up_counts(tmp_path: Path) -> None:
    constants, room = touched(embedding(), tmp_path)
    assert constants < 4 * WORDS * WIDTH
    assert constants >= 4 * WIDTH * min(READ, WORDS)
    assert room < 4 * WORDS * WIDTH


@pytest.mark.mutation
def test_rooms_that_are_never_left_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from workers.tvm_backend import footprint

    def all_at_once(values: footprint.Any, _: object) -> int:
        calls = filter(footprint.calls_program, values.values())
        return sum(footprint.type_bytes(kind) for call in calls for kind in footprint.results(call))

    monkeypatch.setattr(footprint, "_most_at_once", all_at_once)
    with pytest.raises(AssertionError):
        test_what_is_computed_lies_where_what_nobody_reads_any_more_lay(tmp_path)
