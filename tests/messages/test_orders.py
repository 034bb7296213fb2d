"""Orders as both sides write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from workers.messages.orders import FUTILE, REPEATED, best_of, compile_order, latency_of, latest, tune_order, unfinished

OPERATORS = [{"index": 0, "key": "a", "weight": 2}, {"index": 1, "key": "b", "weight": 1}]


def measured(operator: int, seconds: float | None, choice: int = 0) -> dict[str, Any]:
    cause = "build" if seconds is None else ""
    row = {"operator": operator, "sketch": 0, "choices": [choice], "seconds": seconds, "identity": "i", "round": 0}
    return {**row, "cause": cause}


def test_the_best_is_the_fastest_valid_one_and_of_equals_the_first() -> None:
    rows = [measured(0, None), measured(0, 0.3, 1), measured(0, 0.2, 2), measured(0, 0.2, 3), measured(1, None)]
    assert best_of(rows, OPERATORS) == {"0": {"key": "a", "space": "", "sketch": 0, "choices": [2], "seconds": 0.2}}


def test_what_failed_when_it_was_measured_again_is_no_rival_of_a_best() -> None:
    rows = [measured(0, 0.2, choice) for choice in range(4)]
    again = [{**measured(0, seconds, choice), "round": 1} for choice, seconds in enumerate((0.3, None, None))]
    again[2]["cause"] = "large"  # too much code to be built just then says nothing of it
    assert [(row["choices"], row["seconds"]) for row in latest([*rows, *again])] == [([0], 0.3), ([2], 0.2), ([3], 0.2)]


def test_the_latency_counts_every_operator_as_often_as_it_appears() -> None:
    best = best_of([measured(0, 0.2), measured(1, 0.1)], OPERATORS)
    assert latency_of(best, OPERATORS) == pytest.approx(0.5)
    with pytest.raises(KeyError):
        latency_of({}, OPERATORS)


def test_an_operator_is_given_up_after_some_that_failed_and_none_that_ran() -> None:
    rows = [measured(0, None), measured(0, 0.2, 1), *(measured(1, None, choice) for choice in range(FUTILE - 1))]
    assert unfinished(rows, OPERATORS) == [OPERATORS[1]]
    assert unfinished([*rows, {**measured(1, None, FUTILE), "cause": "duplicate"}], OPERATORS) == [OPERATORS[1]]
    assert unfinished([*rows, measured(1, None, FUTILE)], OPERATORS) == []


def test_an_operator_of_few_configurations_is_given_up_after_all_of_them() -> None:
    """Nobody can try a fourth of two."""
    operators = [{**operator, "configurations": 2.0} for operator in OPERATORS]
    rows = [measured(0, 0.2), measured(1, None, 0)]
    assert [one["index"] for one in unfinished(rows, operators)] == [1]
    assert unfinished([*rows, measured(1, None, 1)], operators) == []
    assert unfinished([*rows, {**measured(1, None, 1), "cause": "duplicate"}], operators) == []
    many = [{**operator, "configurations": 1e4} for operator in OPERATORS]
    again = [{**measured(1, None, choice), "cause": "duplicate"} for choice in range(1, REPEATED)]
    assert unfinished([*rows, *again], many) == []
    assert [one["index"] for one in unfinished([*rows, *again[1:]], many)] == [1]


def test_a_layout_that_made_no_difference_is_left_open(tmp_path: Path) -> None:
    made = {
        layout: compile_order("{}", tmp_path, "n", layout, {}, None, tmp_path / "log", 0.0, None, "")
        for layout in ("none", "NHWC")
    }
    assert [order["layout"] for order in made.values()] == ["auto", "NHWC"]


@pytest.mark.parametrize(("layout", "ordered"), [("auto", "auto"), ("none", "auto"), ("NCHW", "NCHW")])
def test_a_run_that_goes_on_keeps_the_layout_it_began_with(tmp_path: Path, layout: str, ordered: str) -> None:
    order = tune_order(
        "{}", tmp_path, checkpoint=None, measurements=[], slots=[], spent={}, clock=0.0, operators=[], layout=layout,
        known=None, device=None, machine="",
    )  # fmt: skip
    assert order["layout"] == ordered
