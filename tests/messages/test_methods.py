"""What is told of each method is whole, and no more than was measured."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from workers.engine.methods import METHODS
from workers.messages.methods import GROUPS, PRESETS, Preset
from workers.messages.methods.auto import AUTO

RESULTS = Path(__file__).parents[2] / "workers/benchmarks/RESULTS.md"


def test_every_method_is_told_once_and_the_recommended_one_first() -> None:
    names = [preset.name for group in GROUPS for preset in group.methods]
    assert names == [*PRESETS]
    assert set(names) == set(METHODS)
    assert names[0] == "auto"
    assert [group.title for group in GROUPS if group.everyday] == ["Recommended"]
    titles = [preset.title for preset in PRESETS.values()]
    assert len(titles) == len(set(titles))


@pytest.mark.parametrize("preset", PRESETS.values(), ids=lambda preset: preset.name)
def test_every_number_is_told_once_with_its_source(preset: Preset) -> None:
    told = [(number.role, number.name) for number in preset.numbers]
    assert len(told) == len(set(told))
    assert all(number.source for number in preset.numbers)
    assert preset.paper
    assert preset.text.endswith(".")


def test_the_recommended_one_says_no_more_than_the_results_table() -> None:
    """A row: network, ours, ONNX Runtime, their ratio, ..."""
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \| [^|]+ \| ([\d.]+) \|", RESULTS.read_text(), re.MULTILINE)
    said = re.findall(r"faster than ONNX Runtime on (.+?), on two cores of a processor with AVX-512", AUTO.more)
    assert len(said) == 1
    for name in re.split(r", (?:an? )?| and ", said[0]):
        ratios = [float(ratio) for network, ratio in rows if network.startswith(name)]
        assert ratios, f"{name} is in no row"
        assert max(ratios) < 1


def test_the_recommended_one_is_not_said_to_be_ahead_of_whom_the_results_do_not_show_behind() -> None:
    found = re.search(r"([\d.]+) \[([\d.]+), [\d.]+\] \(random\s+search\)", RESULTS.read_text())
    assert found
    assert (float(found[2]) <= 1) == ("not shown over random search" in AUTO.more)


@pytest.mark.parametrize("name", [name for name in PRESETS if name.endswith(("-paper", "-program"))])
def test_what_publication_and_program_have_not_is_told(name: str) -> None:
    assert f"closed after {METHODS[name].search.patience} duplicates or invalid" in PRESETS[name].more
