"""Which points of earlier runs are kept for the next."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from workers.messages.known import HAIR, POINTS, TOTAL, chosen, decode_known, encode_known, points_of, records, share

CAUSES = ("duplicate", "invalid", "build", "crash", "timeout", "memory", "run", "device")


def points(*seconds: float | None) -> list[list[Any]]:
    """Newest first."""
    return [[0, [number], value, f"i{number}"] for number, value in enumerate(seconds)]


def measurement(**changes: Any) -> dict[str, Any]:
    return {"sketch": 0, "choices": [1], "seconds": 0.5, "identity": "i", "cause": "", "round": 0, **changes}


def test_half_of_what_is_kept_are_the_fastest_and_half_the_newest() -> None:
    kept = chosen(points(9.0, None, 8.0, 1.0, 7.0, 2.0), 4)
    assert [point[2] for point in kept] == [1.0, 2.0, 9.0, None]


def test_of_one_configuration_the_newest_figure_counts() -> None:
    assert chosen([[0, [1], 0.9, "new"], [0, [1], 0.1, "old"], [1, [1], 0.5, "other"]], 9) == [
        [1, [1], 0.5, "other"],
        [0, [1], 0.9, "new"],
    ]


@given(st.lists(st.tuples(st.integers(0, 5), st.none() | st.floats(1e-6, 1.0))), st.integers(1, 9))
def test_it_is_bounded_distinct_and_never_without_the_fastest(drawn: list[tuple[int, float | None]], most: int) -> None:
    found = [[0, [number], seconds, ""] for number, seconds in drawn]
    kept = chosen(found, most)
    assert len(kept) <= most
    assert len({tuple(point[1]) for point in kept}) == len(kept)
    newest = {point[1][0]: point[2] for point in reversed(found)}
    valid = [seconds for seconds in newest.values() if seconds is not None]
    if valid:
        assert kept[0][2] == min(valid)


def test_duplicates_and_later_rounds_that_failed_are_no_points() -> None:
    assert points_of([measurement()]) == points_of([measurement(round=1)]) == [[0, [1], 0.5, "i"]]
    nothing = ({"cause": "duplicate", "seconds": None}, {"round": 1, "seconds": None, "cause": "build"})
    assert points_of([measurement(**said) for said in nothing]) == []


def test_what_a_run_ended_with_is_the_first_that_the_next_one_measures() -> None:
    lucky = measurement(choices=[2], seconds=0.3, identity="lucky")
    shipped, rival = measurement(choices=[3], identity="shipped"), measurement(choices=[4], identity="rival")
    told = [lucky, shipped, rival, shipped | {"round": 1, "seconds": 0.45}, rival | {"round": 1, "seconds": 0.47}]
    found = points_of(told)
    behind = 0.45 + HAIR * 0.3
    assert [point[2] for point in found] == [behind, 0.5, 0.5, 0.45, 0.47], "nobody believes 0.3 any longer"
    assert [point[3] for point in chosen(found[::-1], 4)[:2]] == ["shipped", "lucky"]


def test_a_failure_is_a_point_only_where_the_configuration_alone_is_to_blame() -> None:
    for cause in CAUSES:
        points = points_of([measurement(seconds=None, cause=cause)])
        assert points == ([[0, [1], None, "i"]] if cause in ("invalid", "build") else []), cause


def test_many_operators_share_the_file() -> None:
    assert share(1) == share(60) == POINTS
    assert share(500) * 500 <= TOTAL
    found = {("k", "s"): points(1.0, 2.0), ("a", "s"): points()}
    rows = records(found)
    assert [row["key"] for row in rows] == ["k"]
    assert decode_known(encode_known(rows)) == rows
