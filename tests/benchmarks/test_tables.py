from __future__ import annotations

import io
from typing import Any

import pytest

from workers.benchmarks.cells import DONE, FAILED, VOID, Cell
from workers.benchmarks.latency_table import table as latency_table
from workers.benchmarks.progress import Progress
from workers.benchmarks.speed_blocks import blocks
from workers.benchmarks.speed_table import table
from workers.benchmarks.turns import OURS
from workers.child.peers import RUNS, TURNS
from workers.messages.baselines import ONNX_RUNTIME


def cell(arm: str, points: list[list[float]], seconds: float, seed: int = 0, **other: Any) -> Cell:
    theirs = arm in ("stock", "warm")
    tuning = other.pop("tuning", {})
    key = {
        "kind": "speed", "network": "ab", "arm": arm, "seed": seed, "cpu": "A CPU", "cores": 2,
        "layout": other.pop("layout", "same") if theirs else "own",
        "budget": "20 trials an operator" if theirs else "10 minutes", "version": "0",
    }  # fmt: skip
    return {
        "key": key, "name": "tiny", "state": DONE, "reason": "", "ended": "2026-01-01", "ratio": 1.1, "ratios": [0.9, 1.2],
        "tuning": {"curve": points, "seconds": seconds, "trials": 100, "key": "k", **tuning},
        "end_to_end": {"median": 2e-3}, "onnxruntime": {"median": 1.8e-3}, **other,
    }  # fmt: skip


@pytest.fixture
def compared() -> list[Cell]:
    return [
        cell("stock", [[200.0, 5e-3], [500.0, 4e-3]], 550.0),
        cell("auto", [[10.0, 6e-3], [20.0, 3e-3]], 600.0),
        cell("stock", [[400.0, 4e-3]], 450.0, seed=1),
        cell("auto", [[10.0, 6e-3], [50.0, 4e-3]], 600.0, seed=1),
    ]


def row(text: str, arm: str) -> list[str]:
    return next(line for line in text.splitlines() if line.startswith(f"{arm} (")).split("  ")


def test_an_arm_is_compared_with_the_stock_run_of_its_own_seed(compared: list[Cell]) -> None:
    said = table(compared)
    words = [word for word in row(said, "auto") if word.strip()]
    # (20 s, 50 s) in the middle; 500 / 20 and 400 / 50 in the middle.
    assert words[-2].strip() == "35"
    assert words[-1].strip() == "16.50"
    assert "auto (10 minutes), same layout: reaches stock's final latency in 2 of 2 pairs of network and seed" in said
    assert "14.14 times as fast as stock (geometric mean of the 1 network)" in said


def test_seeds_of_an_earlier_version_are_not_counted_with_those_of_the_latest(compared: list[Cell]) -> None:
    newer = {**compared[3], "key": {**compared[3]["key"], "version": "1"}, "ended": "2026-01-02"}
    assert "reaches stock's final latency in 1 of 1 pairs of network and seed" in table([*compared[:3], newer])


def test_seeds_that_stock_was_not_run_with_are_compared_with_its_first(compared: list[Cell]) -> None:
    said = table([compared[0], compared[1], {**compared[3], "key": {**compared[3]["key"], "seed": 7}}])
    # Nothing but seed 0 is there of stock: 500 / 20 for its own seed, 500 / 50 for the other.
    assert [word.strip() for word in row(said, "auto") if word.strip()][-2:] == ["35", "17.50"]
    assert "in 2 of 2 pairs of network and seed" in said


def test_the_first_complete_sum_stands_beside_its_moment(compared: list[Cell]) -> None:
    words = [word.strip() for word in row(table(compared[:2]), "auto") if word.strip()]
    assert words[words.index("10") + 1] == "6"


def test_the_share_of_search_decisions_and_bookkeeping_is_told_where_an_arm_tells_it(compared: list[Cell]) -> None:
    share = {"search": 0.04, "decision": 0.02, "bookkeeping": 0.005, "build": 0.7}
    compared[1]["tuning"]["summary"] = {"share": share}
    said = table(compared[:2])
    assert "6.5%" in [word.strip() for word in row(said, "auto")]
    assert not any("%" in word for word in row(said, "stock"))


def test_a_library_whose_turns_were_disturbed_leaves_its_tuning_to_compare_with(compared: list[Cell]) -> None:
    untimed = {**compared[0], "end_to_end": None, "onnxruntime": None, "ratio": None, "ratios": None}
    said = table([untimed, compared[1]])
    assert [word.strip() for word in row(said, "auto") if word.strip()][-2:] == ["20", "25.00"]
    assert [word.strip() for word in row(said, "stock") if word.strip()][-8:-2] == ["-"] * 6
    assert [word.strip() for word in row(said, "auto") if word.strip()][-8:-2] == [
        "2", "0.67", "-", "-", "1.8", "1.10 (0.97 to 1.12)",
    ]  # fmt: skip


def test_latencies_are_those_of_the_quickest_turns(compared: list[Cell]) -> None:
    quickest = {"end_to_end": 1.05e-3, "onnxruntime": 1.5e-3}
    ours = cell("auto", [[9.0, 3e-3]], 600.0, tuning={"judged": 1e-3}, quickest=quickest)
    before = cell("auto", [[9.0, 3e-3]], 600.0, tuning={"judged": 1e-3, "summary": quickest})
    theirs = cell("stock", [[500.0, 4e-3]], 550.0)
    for one in (ours, before):
        said = table([one, theirs])
        assert [word.strip() for word in row(said, "auto") if word.strip()][-8:-3] == ["1.05", "1.05", "-", "-", "1.5"]
        assert [word.strip() for word in row(said, "stock") if word.strip()][-8:-3] == ["2", "0.50", "-", "-", "1.8"]


def test_a_long_run_stands_beside_the_network_untuned(compared: list[Cell]) -> None:
    compared[1]["tuning"]["summary"] = {"untuned": 0.08}
    said = table(compared[:2])
    assert [word.strip() for word in row(said, "auto") if word.strip()][-6] == "0.0250"
    assert [word.strip() for word in row(said, "stock") if word.strip()][-6] == "-"


def test_libraries_are_told_to_be_verified_where_those_of_all_seeds_are(compared: list[Cell]) -> None:
    for seed, verified in ((1, True), (3, True), (3, False)):
        compared[seed]["tuning"]["summary"] = {"verified": verified}
        words = [word.strip() for word in row(table(compared), "auto") if word.strip()]
        assert words[-5] == ("yes" if verified else "no")


def test_ours_over_onnx_runtime_is_a_geometric_mean_of_networks_each_by_the_median_of_its_seeds(
    compared: list[Cell],
) -> None:
    assert "of ONNX Runtime's time" not in table(compared), "of one network"
    other = [{**one, "name": "small", "key": {**one["key"], "network": "cd"}, "ratio": 0.4} for one in compared[:2]]
    compared[1]["ratio"], compared[3]["ratio"] = 0.8, 1.0
    said = table([*compared, *other])
    assert "auto (10 minutes): 0.60 of ONNX Runtime's time, geometric mean of 2 networks\n" in said
    assert "stock (20 trials an operator): " not in said


def test_stock_with_kept_builders_is_a_peer_of_its_own(compared: list[Cell]) -> None:
    said = table([*compared[:2], cell("warm", [[100.0, 6e-3], [120.0, 5.5e-3]], 300.0)])
    assert [word.strip() for word in row(said, "auto") if word.strip()][-4:] == ["20", "25.00", "20", "6.00"]
    assert [word.strip() for word in row(said, "warm") if word.strip()][-4:] == ["never", "never", "120", "1.00"]
    assert "reaches warm's final latency in 1 of 1 pairs of network and seed, 6.00 times as fast as warm" in said
    assert "warm (20 trials an operator), same layout" not in said, "TVM's arms have no line of their own"


def test_a_run_that_never_gets_there_says_never(compared: list[Cell]) -> None:
    late = [compared[0], cell("auto", [[10.0, 6e-3]], 600.0)]
    assert [word.strip() for word in row(table(late), "auto") if word.strip()][-2:] == ["never", "never"]
    assert "reaches stock's final latency in 0 of 1 pairs of network and seed\n" in table(late)


def test_those_that_never_arrive_count_as_arriving_when_their_tuning_ended(compared: list[Cell]) -> None:
    late = [*compared[:3], cell("auto", [[10.0, 6e-3]], 1600.0, seed=1)]
    # 500 / 20 arrives; 400 / 1600 would be the most the other can have.
    assert "in 1 of 2 pairs of network and seed, 25.00 times as fast as stock (geometric mean of these); " in table(
        late
    )
    assert "at most 2.50 times with the others" in table(late)
    assert [word.strip() for word in row(table(late), "auto") if word.strip()][-2:] == ["never", "never"]


def test_the_bar_is_the_lesser_of_stocks_own_figure_and_ours(compared: list[Cell]) -> None:
    slower = [cell("stock", [[500.0, 4e-3]], 550.0, tuning={"judged": 5e-3}), *compared[1:2]]
    faster = [cell("stock", [[500.0, 7e-3]], 550.0, tuning={"judged": 4e-3}), *compared[1:2]]
    for cells in (slower, faster):
        assert [word.strip() for word in row(table(cells), "auto") if word.strip()][-2:] == ["20", "25.00"]


def test_stock_that_tuned_other_operators_is_no_peer(compared: list[Cell]) -> None:
    other = [cell("stock", [[400.0, 4e-3]], 500.0, tuning={"key": "older"}), compared[1]]
    said = table(other)
    assert "tiny auto seed 0: stock tuned other operators; run stock again" in said
    assert [word.strip() for word in row(said, "auto") if word.strip()][-2:] == ["-", "-"]
    free = [cell("stock", [[400.0, 4e-3]], 500.0, layout="free", tuning={"key": "plain"}), compared[1]]
    assert "run stock again" not in table(free)


def test_a_second_run_is_told_in_shares_of_the_time_of_the_first(compared: list[Cell]) -> None:
    first = {"seconds": 600.0, "curve": [[10.0, 6e-3], [500.0, 3e-3]]}
    second = [[10.0, 4e-3], [30.0, 3.1e-3], [50.0, 2.9e-3]]
    tuning = {"first": first, "judged": 3.5e-3, "first_judged": 4e-3}
    said = table([*compared[:2], cell("again", second, 600.0, tuning=tuning)])
    assert (
        "tiny seed 0: a first run was at its 3 ms after 500 s, a second after 10.0% of that time; "
        "by our clock the first's programs take 4 ms, the second's 3.5 ms\n"
    ) in said
    early = cell("again", second, 600.0, tuning={**tuning, "early": 3.61e-3})
    assert "ms, the second's 3.5 ms, and those it had after 10% of that time 3.61 ms\n" in table([*compared[:2], early])
    assert "a second never; by our clock" in table([cell("again", second[:2], 600.0, tuning=tuning)])
    assert "a first run" not in table(compared)
    assert [word.strip() for word in row(said, "again") if word.strip()][-2:] == ["-", "-"], (
        "its clock leaves a run out"
    )
    assert "again (10 minutes), same layout" not in said
    assert "run stock again" not in said


def test_a_network_of_several_seeds_counts_once(compared: list[Cell]) -> None:
    """14.14 of one of two seeds, 4 of another of one."""
    theirs, ours = cell("stock", [[400.0, 4e-3]], 450.0), cell("auto", [[100.0, 3e-3]], 600.0)
    other = [{**one, "key": {**one["key"], "network": "cd"}, "name": "other"} for one in (theirs, ours)]
    said = table([*compared, *other])
    assert "in 3 of 3 pairs of network and seed, 7.52 times as fast as stock (geometric mean of the 2 networks)" in said


def test_means_over_networks_say_by_how_many_versions_of_the_code(compared: list[Cell]) -> None:
    mean, over_runtime = "(geometric mean of the 2 networks)", "geometric mean of 2 networks"
    for version, said in (("0", "\n"), ("1", ", by 2 versions of the code\n")):
        key = {"network": "cd", "version": version}
        other = [{**one, "name": "other", "key": {**one["key"], **key}} for one in compared]
        shown = table([*compared, *other])
        assert f"{mean}{said}" in shown
        assert f"{over_runtime}{said}" in shown


def test_a_peer_of_an_earlier_version_is_compared_with_nobody(compared: list[Cell]) -> None:
    newer = {**compared[0], "key": {**compared[0]["key"], "version": "1"}, "ended": "2026-01-02"}
    words = [word.strip() for word in row(table([newer, *compared[1:]]), "auto") if word.strip()]
    # 500 / 20 and, of the other seed by the same peer, 500 / 50.
    assert words[-2:] == ["35", "17.50"]


def test_means_are_of_one_machine(compared: list[Cell]) -> None:
    assert "same layout: reaches stock's final latency in 2 of 2 pairs" in table(compared)
    other = [{**one, "key": {**one["key"], "cpu": "Another CPU"}} for one in compared]
    said = table([*compared, *other])
    for cpu in ("A CPU", "Another CPU"):
        assert f"same layout, {cpu}, 2 threads: reaches stock's final latency in 2 of 2 pairs" in said


def test_a_void_cell_is_counted_named_and_in_no_figure(compared: list[Cell]) -> None:
    void = {
        "key": {**compared[0]["key"], "seed": 2},
        "name": "tiny",
        "state": VOID,
        "reason": "no valid record of pool",
    }
    said = table([*compared, {**void, "ended": "2026-01-01"}])
    assert "2 + 1 void" in said
    assert "tiny stock seed 2: void: no valid record of pool" in said


@pytest.mark.parametrize("state", [VOID, FAILED])
def test_a_cell_of_ours_that_did_not_come_to_an_end_is_named_beside_the_peer_that_did(
    compared: list[Cell], state: str
) -> None:
    broken = {"key": {**compared[-1]["key"], "seed": 2}, "name": "tiny", "state": state, "reason": "too few trials"}
    said = table([*compared, {**broken, "ended": "2026-01-01"}])
    assert f"tiny auto seed 2: {state}: too few trials" in said
    assert "in 2 of 2 pairs" in said


def test_a_table_says_of_which_days_it_is(compared: list[Cell]) -> None:
    first, *others = [{**one, "ended": "2026-01-01T10:00:00+00:00"} for one in compared]
    assert f"{blocks([first])[0].title}, 2026-01-01\n" in table([first])
    later = [{**one, "ended": "2026-01-03T10:00:00+00:00"} for one in others]
    assert ", 2026-01-01 to 2026-01-03\n" in table([first, *later])


def test_our_cells_stand_in_both_layouts(compared: list[Cell]) -> None:
    found = blocks([*compared, cell("stock", [[300.0, 9e-3]], 300.0, layout="free")])
    assert [(block.layout, len(block.cells)) for block in found] == [("free", 3), ("same", 4)]


def latencies(name: str, ours: float, errors: dict[str, str], cpu: str = "A CPU", **more: float) -> Cell:
    def figures(seconds: float) -> dict[str, float]:
        return {"median": seconds, "lower_quartile": 0.9 * seconds, "upper_quartile": 1.1 * seconds}

    measured = {OURS: ours, ONNX_RUNTIME: 1e-3, **{n.replace("_", "."): s for n, s in more.items()}}
    key = {"arm": "auto", "budget": "10 minutes", "seed": 0, "cpu": cpu, "cores": 2, "version": "0"}
    return {
        "key": key, "name": name, "state": DONE, "reason": "", "tuning": {"sum_of_operators": 0.8 * ours},
        "ended": "2026-01-01",
        "latencies": {n: figures(seconds) for n, seconds in measured.items()}, "errors": errors,
        "ratios": {OURS: [ours / 1e-3]}, "torch": {"factory": None},
    }  # fmt: skip


def test_latencies_stand_side_by_side_with_their_geometric_mean_and_what_is_missing() -> None:
    first = latencies("one", 1e-3, {"torch.compile": "no C++ compiler"}, PyTorch=2e-3)
    said = latency_table([first, latencies("two", 4e-3, {})])
    assert "1 ± 0.1" in said
    assert f"{TURNS * RUNS} runs each in turns of {RUNS}," in said
    assert "not given" in said
    assert "2.00 x ONNX Runtime (2 networks), 0.50 x PyTorch (1 networks)" in said
    assert "one: torch.compile: no C++ compiler" in said


def test_a_geometric_mean_says_by_how_many_versions_of_the_code() -> None:
    first, second = latencies("one", 1e-3, {}), latencies("two", 4e-3, {})
    assert "2.00 x ONNX Runtime (2 networks); 2026-01-01\n" in latency_table([first, second])
    second["key"]["version"] = "1"
    assert "2.00 x ONNX Runtime (2 networks), by 2 versions of the code; 2026-01-01\n" in latency_table([first, second])


def test_a_geometric_mean_is_of_one_machine() -> None:
    said = latency_table([latencies("one", 1e-3, {}), latencies("one", 4e-3, {}, cpu="Another CPU")])
    assert "(auto, 10 minutes, seed 0, A CPU, 2 threads): 1.00 x ONNX Runtime (1 networks)" in said
    assert "(auto, 10 minutes, seed 0, Another CPU, 2 threads): 4.00 x ONNX Runtime (1 networks)" in said
    for cpu in ("A CPU", "Another CPU"):
        assert sum(line.startswith("one") and f" {cpu}, 2 threads " in line for line in said.splitlines()) == 1


def beside_operators(ratio: float, losses: list[float | None]) -> Cell:
    """A network of 10 ms; of each operator, alone 1 ms, what it loses."""
    rows = [
        {"index": i, "name": f"dense{i}", "weight": 2, "alone": 1e-3, "inside": None if loss is None else 1e-3 + loss}
        for i, loss in enumerate(losses)
    ]
    operators = {"end_to_end": 10e-3, "ratio": ratio, "low": ratio - 0.02, "high": ratio + 0.03, "rows": rows}
    return {**latencies("one", 10e-3, {}), "operators": operators}


def test_the_network_stands_beside_its_operators_with_an_interval() -> None:
    said = latency_table([beside_operators(1.07, [1e-4, -5e-4]), latencies("old", 1e-3, {})])
    assert "1.07 [1.05, 1.10]" in said
    assert "Slower in the network" not in said
    (old,) = (line for line in said.splitlines() if line.startswith("old"))
    assert "1.25 - 1" in " ".join(old.split()), "cells of earlier versions have a dash"


def test_the_operators_that_lose_most_in_the_network_are_named() -> None:
    losses = [1.9e-4, 3e-4, 5e-4, None, 4e-4, 8e-4, 2.1e-4, 6e-4, -1e-3]
    lines = latency_table([beside_operators(1.2, losses)]).splitlines()
    begin = lines.index("Slower in the network than alone, in ms:") + 3
    named = [line.split("  ") for line in lines[begin : lines.index("", begin)]]
    words = [[word.strip() for word in row if word.strip()] for row in named]
    assert [row[2] for row in words] == ["dense5", "dense7", "dense2", "dense4", "dense1"]
    assert words[0] == ["one", "A CPU, 2 threads", "dense5", "2", "1", "1.8", "8.0%"]


def test_the_time_left_is_that_of_this_cell_and_of_those_to_come() -> None:
    now = [0.0]
    stream = io.StringIO()
    progress = Progress([100.0, 50.0], stream, lambda: now[0])
    progress.begin("first")
    now[0] = 30.0
    assert progress.left(now[0]) == 120.0
    progress.show("half", left=10.0)
    now[0] = 35.0
    assert progress.left(now[0]) == 55.0
    progress.end("done")
    progress.begin("second")
    assert progress.left(now[0]) == 50.0
    assert "[1/2] first: 30 s, half; about 1 min 00 s left for all" in stream.getvalue()
