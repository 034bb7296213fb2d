"""Whether the recommended method is called the best only when it is."""

from __future__ import annotations

from typing import Any

import pytest

from tests.benchmarks.methods.finished import FAILED, cell
from workers.benchmarks.methods.arms import NEXT
from workers.benchmarks.methods.best import MOST, by_network, recommended, rivals, times_near
from workers.benchmarks.methods.claims import evaluated
from workers.benchmarks.methods.compare import Runs
from workers.messages.methods import BEST

Groups = dict[tuple[str, str], dict[str, Runs]]


def run(seconds: float, latency: float = 1.0) -> dict[str, Any]:
    """Comes to its latency at once, after so many seconds."""
    return cell([[1.0, 10.0], [seconds, latency]])


def groups(kind: str, **arms: list[dict[str, Any]]) -> Groups:
    return {(kind, "net"): {arm: dict(enumerate(runs)) for arm, runs in arms.items()}}


def test_the_time_is_to_within_5_percent_of_the_lowest_of_any_method() -> None:
    found = groups(
        "space", **{BEST.name: [run(20.0, 1.04), run(30.0, 1.06)], "other": [run(40.0, 1.0), run(50.0, 1.05)]}
    )
    times, units = times_near(found, "space")
    assert units == [("net", 0), ("net", 1)]
    assert times[BEST.name].tolist() == [20.0, float("inf")]
    assert times["other"].tolist() == [40.0, 50.0]


def test_on_curves_each_seed_has_a_lowest_of_its_own() -> None:
    """Another seed replays other searches: what one comes to says nothing of another."""
    found = groups("curve", **{BEST.name: [run(20.0, 1.0), run(30.0, 2.0)], "other": [run(40.0, 1.0), run(50.0, 2.0)]})
    assert times_near(found, "curve")[0][BEST.name].tolist() == [20.0, 30.0]
    space = {("space", "net"): found["curve", "net"]}
    assert times_near(space, "space")[0][BEST.name].tolist() == [20.0, float("inf")]


def test_the_oracle_is_no_method_and_seeds_that_one_lacks_are_left_out() -> None:
    arms = {BEST.name: [run(20.0)] * 3, "other": [run(40.0)] * 2, "oracle": [run(2.0, 0.1)] * 3}
    arms |= {NEXT: arms["oracle"]}
    times, units = times_near(groups("curve", **arms), "curve")
    assert set(times) == {BEST.name, "other"}
    assert len(units) == 2


def test_networks_and_seeds_count_alike_and_the_interval_is_paired() -> None:
    """Each time of the other is twice ours of the same network and seed: there is nothing to doubt."""
    ours = [10.0, 20.0, 40.0, 80.0, 160.0]
    found = groups("curve", **{BEST.name: [run(t) for t in ours], "other": [run(2 * t) for t in ours]})
    (row,) = rivals(found, "curve").values()
    assert (row.median, row.count) == (2.0, 5)
    assert row.bounds == (2.0, 2.0)
    assert by_network(found, "curve")["net (curve), other"].median == 2.0


def several(ours: float, theirs: dict[str, list[float]]) -> Groups:
    """Networks that each take us `ours` times ten more than the one before, and another so many times as long."""
    found: Groups = {}
    for place, (name, ratios) in enumerate(theirs.items()):
        seconds = ours * 10.0**place
        arms = {BEST.name: [run(seconds) for _ in ratios], "other": [run(seconds * ratio) for ratio in ratios]}
        found["space", name] = {arm: dict(enumerate(runs)) for arm, runs in arms.items()}
    return found


def test_a_network_of_long_runs_counts_as_much_as_one_of_short_runs() -> None:
    """Twice as long on two of three networks: the medians of all seconds would have said 0.9."""
    groups = several(10.0, {"short": [2.0] * 3, "middle": [0.9] * 3, "long": [2.0] * 3})
    assert rivals(groups, "space")["other"].median == pytest.approx(2.0)


def test_half_as_long_weighs_as_much_as_twice() -> None:
    assert rivals(several(10.0, {"a": [0.5] * 3, "b": [2.0] * 3}), "space")["other"].median == pytest.approx(1.0)


def test_the_bounds_are_of_networks_drawn_and_not_of_their_seeds_alone() -> None:
    """Five seeds that agree on each of two networks that do not: any pooled draw of ten would be close to the middle."""
    (row,) = rivals(several(10.0, {"a": [0.5] * 5, "b": [2.0] * 5}), "space").values()
    assert row.bounds == pytest.approx((0.5, 2.0))
    assert row.count == 10


def test_between_a_time_and_never_lies_nothing() -> None:
    """The mean of their logarithms would be 43, a figure of no run."""
    found = rivals(several(10.0, {"a": [1.85] * 3, "b": [1e6] * 3}), "space")["other"]
    assert found.median == pytest.approx(1.85)
    assert found.bounds == pytest.approx((1.85, MOST))
    ours = {"a": [1.85] * 3, "b": [1e-6] * 3}
    assert rivals(several(10.0, ours), "space")["other"].median == pytest.approx(1 / MOST)
    assert rivals(several(10.0, {"a": [1e6] * 3, "b": [1e6] * 3}), "space")["other"].median == pytest.approx(MOST)


def test_few_runs_bound_nothing() -> None:
    (row,) = rivals(several(10.0, {"a": [2.0] * 2, "b": [2.0] * 2}), "space").values()
    assert (row.median, row.bounds, row.count) == (pytest.approx(2.0), None, 4)


def test_who_never_comes_there_loses() -> None:
    late = groups("space", **{BEST.name: [run(20.0)] * 5, "other": [run(9.0, 2.0)] * 5})
    assert rivals(late, "space")["other"].median == pytest.approx(MOST)
    ours = groups("space", **{BEST.name: [run(9.0, 2.0)] * 5, "other": [run(20.0)] * 5})
    assert rivals(ours, "space")["other"].median == pytest.approx(1 / MOST)
    broken = groups("space", **{BEST.name: [run(20.0)] * 5, "other": [FAILED] * 5})
    assert rivals(broken, "space")["other"].median == pytest.approx(MOST)
    nobody = groups("space", **{BEST.name: [FAILED] * 5, "other": [FAILED] * 5})
    assert rivals(nobody, "space") == {}


@pytest.mark.parametrize(("theirs", "holds"), [(21.0, "yes"), (20.0, "yes"), (19.0, "no")])
def test_the_recommended_one_is_the_best_only_when_no_other_is_sooner(theirs: float, holds: str) -> None:
    def named(arm: str, seconds: float) -> list[dict[str, Any]]:
        return [cell([[1.0, 9.0], [seconds, 1.0]], key={"arm": arm, "seed": seed}) for seed in range(5)]

    rows = evaluated([*named(BEST.name, 20.0), *named("first", 25.0), *named("second", theirs)])
    row = next(row for row in rows if "each method's" in row["text"])
    assert (row["holds"], row["target"]) == (holds, ">= 1.00 everywhere")
    assert set(row["networks"]) == {"first (curve)", "second (curve)"}


def test_what_is_recommended_is_judged_by_its_own_runs_where_it_has_some() -> None:
    """It is slower than the method that it is built on, which is then a rival like any other."""
    found = groups("space", auto=[run(30.0)] * 5, **{BEST.name: [run(20.0)] * 5, "other": [run(60.0)] * 5})
    medians = {arm: row.median for arm, row in rivals(found, "space").items()}
    assert medians == {BEST.name: pytest.approx(2 / 3), "other": pytest.approx(2.0)}
    assert recommended(found, "space") == "auto"
    assert recommended({("space", "other net"): {"other": {}}, **found}, "space") == BEST.name
    cells = [
        cell([[1.0, 9.0], [seconds, 1.0]], key={"arm": arm, "seed": seed})
        for arm, seconds in (("auto", 30.0), (BEST.name, 20.0))
        for seed in range(5)
    ]
    (row,) = (row for row in evaluated(cells) if "each method's" in row["text"])
    assert row["text"].endswith("over auto's")
    assert row["holds"] == "no"


def test_a_method_that_one_network_lacks_is_a_rival_on_the_other_and_named_as_left_out_of_both() -> None:
    """Else the best other's of a network would be the best of those that all networks have."""
    cells = [
        cell([[1.0, 9.0], [seconds, 1.0]], name=name, key={"arm": arm, "seed": seed})
        for name, arms in (("a", {"third": 5.0}), ("b", {}))
        for arm, seconds in {BEST.name: 10.0, "other": 20.0, **arms}.items()
        for seed in range(5)
    ]
    joint, each = (row for row in evaluated(cells) if "lowest latency that any method" in row["text"])
    assert set(joint["networks"]) == {"other (curve)"}
    assert joint["text"].endswith(f"over {BEST.name}'s, without third, which some network lacks")
    medians = {name: found["median"] for name, found in each["networks"].items()}
    assert medians == {"a (curve), third": pytest.approx(0.5), "b (curve), other": pytest.approx(2.0)}


def test_what_is_recommended_is_the_same_method_on_each_network() -> None:
    """One that has `auto` too is judged by what both have, as the row says."""
    found = groups("space", auto=[run(5.0)] * 5, **{BEST.name: [run(10.0)] * 5, "other": [run(20.0)] * 5})
    found["space", "second"] = {arm: runs for arm, runs in found["space", "net"].items() if arm != "auto"}
    medians = {name: row.median for name, row in by_network(found, "space").items()}
    assert medians == {"net (space), auto": pytest.approx(0.5), "second (space), other": pytest.approx(2.0)}


def test_without_rivals_nothing_is_said() -> None:
    assert rivals(groups("curve", **{BEST.name: [run(20.0)]}), "curve") == {}
    assert rivals(groups("curve", other=[run(20.0)]), "curve") == {}
    assert by_network(groups("curve", other=[run(20.0)]), "curve") == {}
