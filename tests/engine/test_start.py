"""First configurations: what the rules of the machine ask for, they have."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from workers.engine import rules, start
from workers.engine.machine import Machine
from workers.engine.rules import INLINED, ROOT
from workers.engine.space import DIRECT, FUSED, LATE, Configuration, Knob, Sketch, tilings
from workers.engine.start import first_configurations

MACHINE = Machine(lanes=16, registers=32, cores=2, cache=32768)
COUNT = 4


def tile(name: str, extent: int, parts: int) -> Knob:
    return Knob(name, "tile", tilings(extent, parts))


def product(rows: int, inner: int, columns: int, batch: int | None = None) -> Sketch:
    """Of (rows, inner) and (inner, columns), or of as many as `batch` says."""
    spatial = ([("b", batch)] if batch else []) + [("i", rows), ("j", columns)]
    return Sketch((*(tile(name, extent, 4) for name, extent in spatial), tile("k", inner, 2)))


def tiles(sketch: Sketch, configuration: Configuration) -> list[tuple[int, ...]]:
    return [knob.options[choice] for knob, choice in zip(sketch.knobs, configuration.choices, strict=True)]


def broken(sketch: Sketch) -> list[str]:
    """The rules that first configurations break."""
    found = []
    for configuration in first_configurations((sketch,), MACHINE, COUNT):
        *spatial, _ = tiles(sketch, configuration)
        across = math.prod(t[3] for t in spatial[:-1])
        vectors = spatial[-1][3] / MACHINE.lanes
        if vectors % 1:
            found.append("whole vectors")
        if across * vectors > MACHINE.registers:
            found.append("registers")
        if math.prod(t[0] * t[1] for t in spatial) < 4 * MACHINE.cores:
            found.append("pieces for every core")
        if len(spatial) == 3 and spatial[0][3] > 1:
            found.append("one product of a batch at a time")
        if len(spatial) == 3 and spatial[0][1] > 1 and spatial[1][0] * spatial[2][0] > 1:
            found.append("one sweep over the batch")
    return found


@pytest.mark.parametrize(
    "sketch", [product(128, 512, 512), product(196, 64, 64, batch=36), product(49, 256, 256, batch=16)]
)
def test_they_keep_the_rules(sketch: Sketch) -> None:
    assert broken(sketch) == []


def test_sixteen_registers_hold_twelve_sums() -> None:
    """And the factors of six rows and two vectors; with eight sums two units wait for each other."""
    sketch = product(198, 512, 512)
    for configuration in first_configurations((sketch,), Machine(lanes=8, registers=16, cores=2), 3):
        rows, columns, _ = tiles(sketch, configuration)
        assert (rows[3], columns[3]) == (6, 16)


@pytest.mark.parametrize("columns", [24, 40, 104, 232])
def test_columns_that_are_no_whole_vectors_are_taken_in_parts_of_registers(columns: int) -> None:
    """24 as 16 and 8: 56 x 56 of them over 96 take 36 us, in half vectors 59."""
    for configuration in first_configurations((product(56 * 56, 144, columns),), MACHINE, COUNT):
        rows, across, _ = tiles(product(56 * 56, 144, columns), configuration)
        registers = across[3] // MACHINE.lanes + (across[3] % MACHINE.lanes).bit_count()
        assert across[3] / (registers * MACHINE.lanes) >= 0.75
        assert 8 <= rows[3] * registers <= MACHINE.registers


@pytest.mark.mutation
def test_parts_that_have_no_registers_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "SHORTEST", MACHINE.lanes)
    with pytest.raises(AssertionError):
        test_columns_that_are_no_whole_vectors_are_taken_in_parts_of_registers(24)


def structured(*knobs: Knob) -> Sketch:
    """With where the epilogue is computed as its first knob, and where the frame is as its last."""
    places = tuple((place,) for place in range(-2, 8))
    return Sketch(
        (Knob("structure", "category", ((0,), (1,), (2,))), *knobs, Knob("location", "location", places)),
    )


def depthwise(side: int, channels: int, window: int = 3) -> Sketch:
    """Of a picture with the channels last."""
    spatial = [tile(*axis, 4) for axis in (("n", 1), ("y", side), ("x", side), ("c", channels))]
    return structured(*spatial, *(tile(*axis, 2) for axis in (("ry", window), ("rx", window), ("rc", 1))))


@pytest.mark.parametrize("sketch", [depthwise(112, 32), depthwise(56, 144), depthwise(14, 576), depthwise(28, 240, 5)])
def test_windows_of_one_channel_are_summed_in_bands_as_they_lie(sketch: Sketch) -> None:
    """No copy of the picture with its frame, no sums that go through memory: either doubles the time."""
    machine = Machine(lanes=8, registers=16, cores=2)
    for configuration in first_configurations((sketch,), machine, COUNT):
        (structure,), _, rows, columns, channels, *_, (location,) = tiles(sketch, configuration)
        assert structure == 1
        assert location == INLINED
        assert rows[0] >= 4 * machine.cores / 2
        assert channels[3] in (8, 16, 24, 32)
        assert rows[2] * columns[2] * channels[2] == 1
        assert 4 <= rows[3] * columns[3] * channels[3] // 8 <= 16


def test_a_column_of_many_channels_is_no_window() -> None:
    """7 x 1 with the channels first has as many steps in the places of a window with the channels last."""
    spatial = [tile(*axis, 4) for axis in (("n", 1), ("c", 128), ("y", 17), ("x", 16))]
    reduction = [tile(*axis, 2) for axis in (("rc", 128), ("ry", 7), ("rx", 1))]
    sketch = structured(*spatial, *reduction)
    for configuration in first_configurations((sketch,), MACHINE, COUNT):
        assert tiles(sketch, configuration)[-1] != (INLINED,)


def test_where_first_parts_alone_run_in_parallel_they_are_enough_for_every_core() -> None:
    sketch = structured(tile("i", 128, 4), tile("j", 512, 4), tile("k", 512, 2))
    late = [
        spatial
        for configuration in first_configurations((sketch,), MACHINE, 64)
        for (structure,), *spatial, _, _ in [tiles(sketch, configuration)]
        if sketch.structures[structure] == LATE
    ]
    assert late
    assert min(math.prod(parts[0] for parts in spatial) for spatial in late) >= 4 * MACHINE.cores


def test_sums_that_nothing_follows_are_written_where_they_are_added_or_tile_by_tile() -> None:
    """Of a product alone, as those of Winograd's minimal filtering are: late ones took a tenth to a quarter longer."""
    alone = replace(structured(tile("i", 196, 4), tile("j", 64, 4), tile("k", 64, 2)), structures=(FUSED, LATE, DIRECT))
    first = first_configurations((alone,), MACHINE, COUNT)
    assert LATE not in {alone.structures[configuration.choices[0]] for configuration in first}


@pytest.mark.parametrize("cores", [2, 16, 64])
def test_there_are_sixteen_pieces_a_core_to_begin_with(cores: int) -> None:
    options = tuple((pieces,) for pieces in (1, cores, 16 * cores, 256 * cores))
    plain = Sketch((Knob("parallel", "category", options), Knob("vectorize", "category", ((0,), (64,)))))
    first = first_configurations((plain,), Machine(cores=cores), 1)[0]
    assert plain.knobs[0].options[first.choices[0]] == (16 * cores,)


def swept(sketch: Sketch) -> list[int]:
    """By how many rows of the outer loops the best guesses read weights that do not stay in the second-level cache."""
    found = []
    for configuration in first_configurations((sketch,), MACHINE, 3):
        _, *spatial, ry, rx, rc, _ = tiles(sketch, configuration)
        *rows, channels = spatial
        strip = 4 * math.prod((*ry, *rx, *rc, *channels[1:]))
        again = math.prod(t[1] for t in rows) if strip > MACHINE.second else 1
        found.append(again * (math.prod(t[0] for t in rows) if strip * channels[0] > MACHINE.second else 1))
    return found


def convolution(side: int, channels: int) -> Sketch:
    """Of windows of 3 x 3 with the channels last, as many as there come to be."""
    spatial = [tile(*axis, 4) for axis in (("n", 1), ("y", side), ("x", side), ("c", channels))]
    return structured(*spatial, *(tile(*axis, 2) for axis in (("ry", 3), ("rx", 3), ("rc", channels))))


def test_weights_that_no_cache_of_a_core_holds_are_read_strip_by_strip() -> None:
    """9 MB of them for 7 x 7 places: row by row of places they take 1.6 times as long."""
    assert swept(convolution(7, 512)) == [1, 1, 1]


@pytest.mark.mutation
def test_weights_read_row_by_row_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "REACH", 0.0)
    assert max(swept(convolution(7, 512))) > 1


def test_without_tiles_a_block_is_computed_once() -> None:
    """Sum and largest value of a Softmax."""
    places = tuple((place,) for place in range(-2, 6))
    softmax = Sketch((Knob("location0", "location", places), Knob("location1", "location", places)))
    assert tiles(softmax, first_configurations((softmax,), MACHINE, COUNT)[0]) == [(ROOT,), (ROOT,)]


def test_they_are_the_same_every_time() -> None:
    sketches = (product(128, 512, 512), product(196, 64, 64, batch=36))
    first = first_configurations(sketches, MACHINE, COUNT)
    assert first == first_configurations(sketches, MACHINE, COUNT)
    assert [configuration.sketch for configuration in first] == [0, 1, 0, 1]


@pytest.mark.mutation
def test_by_chance_they_would_not(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    monkeypatch.setattr(start, "rules_penalty", lambda sketch, choices, machine: random.random(len(choices)))
    assert broken(product(196, 64, 64, batch=36))


@pytest.mark.mutation
def test_another_structure_that_runs_its_first_parts_alone_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "LATE", FUSED)
    with pytest.raises(AssertionError):
        test_where_first_parts_alone_run_in_parallel_they_are_enough_for_every_core()


@pytest.mark.mutation
def test_windows_as_products_would_be_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "WINDOW", 0)
    with pytest.raises(AssertionError):
        test_windows_of_one_channel_are_summed_in_bands_as_they_lie(depthwise(112, 32))
