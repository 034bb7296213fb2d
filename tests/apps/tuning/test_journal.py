"""Writing a run: once, in order, under the fence, and drawn the same from a snapshot and from frames."""

from __future__ import annotations

import json
from copy import deepcopy
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.core import clock
from apps.tuning import leases, live, orders, services, transitions, walk
from apps.tuning.models import Event, Job, Measurement, Operator, TuningRun
from apps.tuning.thinning import thinned
from tests.apps.rows import measure, plan_of
from tests.tries import quickest, work_of


def folded(drawn: dict[str, Any], events: list[dict[str, Any]]) -> dict[str, Any]:
    """A page's own arithmetic: an old snapshot and the frames after it."""
    page = deepcopy(drawn)
    now = page["curve"].pop() if len(page["curve"]) > 1 and page["curve"][-1][1] == page["curve"][-2][1] else None
    for event in events:
        kind, run = event["kind"], page["run"]
        page["seq"] = event["seq"]
        run["clock"] = max(run["clock"], event["clock"])
        if kind in live.HAPPENED:
            page["log"].append(event)
        if kind == "batch":
            _batch(page, event)
        elif kind == "slot":
            page["slots"].append(event["slot"])
            row = page["operators"][event["slot"][1]]
            before, after = event["slot"][4:6]
            row["gain"] += row["weight"] * max(0.0, before - after) if before is not None and after is not None else 0.0
            row.update(event["operator"], rule=event["slot"][7], terms=event["terms"])
            run["expected"] = event["expected"]
        elif kind == "state":
            told = ("state", "wanted", "attempt", "again", "error", "next_step", "finished_reason")
            run.update({name: event[name] for name in told})
        elif kind == "phase":
            run["phase"] = event["text"]
    last = page["curve"][-1] if page["curve"] else now
    if last is not None and page["run"]["clock"] > last[0]:
        page["curve"].append([page["run"]["clock"], last[1]])
    return page


def _batch(page: dict[str, Any], event: dict[str, Any]) -> None:
    page["run"].update({name: event[name] for name in ("latency", "trials", "failures")})
    page["points"] += event["points"]
    page["spent"] = event["spent"]
    for index, figures in event["operators"].items():
        row = page["operators"][int(index)]
        if figures["best"] is not None and (not row["spark"] or figures["best"] != row["spark"][-1][1]):
            row["spark"].append([figures["trials"], figures["best"]])
        row.update(figures)
    if event["latency"] is not None and (not page["curve"] or page["curve"][-1][1] != event["latency"]):
        page["curve"].append([event["clock"], event["latency"]])


def numbers(run: Any) -> list[int]:
    rows = [Measurement.objects.filter(run=run), Event.objects.filter(run=run)]
    return sorted(seq for found in rows for seq in found.values_list("seq", flat=True))


def test_a_batch_is_kept_with_its_figures(site: Any) -> None:
    run, held, told = site.claimed()
    services.write(held, [told.batch(0.5, 0.4, None), told.batch(0.3, operator=1), told.slot(1)])
    run.refresh_from_db()
    assert (run.trials, run.failures, run.slots_count, run.slots_by_belief) == (4, 1, 1, 1)
    assert run.latency == pytest.approx(0.4 + 2 * 0.3)
    assert list(run.operators.values_list("best_seconds", "trials", "failures", "slots")) == [
        (0.4, 3, 1, 0),
        (0.3, 1, 0, 1),
    ]


def test_what_more_time_should_bring_is_kept_for_who_comes_later(site: Any) -> None:
    run, held, told = site.claimed()
    ahead = {"gain": 0.012, "unknown": 0.001, "seconds": 72.0}
    looked = told.slot()
    looked["decision"] = {**looked["decision"], "expected": ahead}
    services.write(held, [told.batch(0.5), looked])
    assert live.snapshot(run)["run"]["expected"] == ahead
    services.write(held, [told.slot()])  # of which nothing was said
    assert live.snapshot(run)["run"]["expected"] == ahead
    frames, _ = live.frames(run, 0)
    assert [frame["expected"] for frame in frames if frame["kind"] == "slot"] == [ahead, ahead]
    # An attempt that goes on reads it from the slots.
    assert [decision.get("expected") for _, _, decision, _ in held.order()["slots"]] == [ahead, None]


@pytest.mark.parametrize("told", ["much", {"gain": "much"}, {"gain": 0.1}, {"gain": 1e999, "unknown": 0, "seconds": 1}])
def test_what_is_no_expectation_is_refused(site: Any, told: Any) -> None:
    run, held, events = site.claimed()
    slot = events.slot()
    slot["decision"] = {**slot["decision"], "expected": told}
    with pytest.raises(services.Refused, match="cannot be kept"):
        services.write(held, [slot])
    assert live.snapshot(run)["run"]["expected"] == {}


def test_the_same_batch_twice_counts_once(site: Any) -> None:
    run, held, told = site.claimed()
    batch = [told.batch(0.5, None), told.slot(), told.event("log", level="info", text="hello")]
    services.write(held, batch)
    before = live.snapshot(run)
    services.write(held, batch)
    assert live.snapshot(run) == before


def test_a_new_attempt_that_measures_again_counts_once(site: Any) -> None:
    run, held, told = site.claimed()
    batch = told.batch(0.5, 0.4)
    services.write(held, [batch])
    later = clock.now() + timedelta(minutes=1)
    taken = services.claim(run.job_id, now=later)
    assert taken is not None
    services.write(taken, [{**batch, "clock": 9.0}])
    run.refresh_from_db()
    assert (run.trials, Measurement.objects.filter(run=run).count()) == (2, 2)


def test_numbers_have_no_gap(site: Any) -> None:
    run, held, told = site.claimed()
    for batch in ([told.batch(0.5, 0.4), told.slot()], [told.batch(None)]):
        services.write(held, batch)
        services.write(held, batch)
    services.conclude(held, "paused")
    assert numbers(run) == list(range(1, Job.objects.get(pk=run.job_id).last_seq + 1))


def test_a_stale_fence_writes_nothing(site: Any) -> None:
    run, held, told = site.claimed()
    assert services.claim(run.job_id, now=clock.now() + timedelta(minutes=1)) is not None
    with pytest.raises(services.LeaseLost):
        services.write(held, [told.batch(0.5)])
    with pytest.raises(services.LeaseLost):
        services.heartbeat(held)
    assert services.conclude(held, "finished") is None
    assert not Measurement.objects.filter(run=run).exists()


@pytest.mark.mutation
def test_without_the_fence_a_stale_write_would_pass(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run, held, told = site.claimed()
    services.claim(run.job_id, now=clock.now() + timedelta(minutes=1))
    monkeypatch.setattr(leases.Claim, "held", lambda self: Job.objects.filter(pk=self.job_id))
    services.write(held, [told.batch(0.5)])
    assert Measurement.objects.filter(run=run).exists()


@pytest.mark.mutation
def test_without_the_lock_on_the_counter_numbers_would_collide(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _, held, told = site.claimed()
    monkeypatch.setattr(transitions.Numbers, "save", lambda self: None)
    services.write(held, [told.batch(0.5)])
    with pytest.raises(services.Refused, match=r"UNIQUE|unique"):
        services.write(held, [told.batch(0.4)])


def test_what_is_no_event_is_refused_and_nothing_of_its_batch_kept(site: Any) -> None:
    run, held, told = site.claimed()
    seq = live.snapshot(run)["seq"]
    for broken in ({"kind": "batch", "clock": 1.0}, told.batch(0.5, operator=7), told.event("log")):
        with pytest.raises(services.Refused):
            services.write(
                held,
                [told.batch(0.5), broken | {"level": 1} if broken["kind"] != "log" else {"kind": "phase", "clock": 1}],
            )
    assert live.snapshot(run)["seq"] == seq


@pytest.mark.parametrize(
    "changes",
    [
        {"error": []},
        {"origin": ["explorer"]},
        {"cause": {"build": 1}},
        {"spread": "inf"},
        {"seconds": float("nan")},
        {"runs": 2**63},
        {"sketch": 2**70},
        {"operator": 2**63},
        {"round": 2**63},
        {"identity": "\0"},
        {"choices": float("inf")},
    ],
    ids=str,
)
def test_a_value_that_fits_no_column_is_refused(site: Any, changes: dict[str, Any]) -> None:
    run, held, told = site.claimed()
    good, bad = told.batch(0.5), told.batch() | {"measurements": [told.measurement(0, 0.5) | changes]}
    if changes == {"identity": "\0"} and connection.vendor == "sqlite":
        pytest.skip("SQLite keeps any text")
    with pytest.raises(services.Refused, match="cannot be kept"):
        services.write(held, [good, bad])
    assert not Measurement.objects.filter(run=run).exists()


@pytest.mark.parametrize(
    "changes", [{}, {"text": None}, {"text": ["a"]}, {"text": "a", "level": 7}, {"text": "a", "level": {}}], ids=str
)
def test_a_line_of_the_log_without_text_is_refused(site: Any, changes: dict[str, Any]) -> None:
    """Kept, it would break the run's page for good."""
    run, held, told = site.claimed()
    with pytest.raises(services.Refused, match="cannot be kept"):
        services.write(held, [told.batch(0.5), told.event("log", **changes)])
    drawn = live.snapshot(run)
    assert ([line["kind"] for line in drawn["log"]], drawn["run"]["trials"]) == (["state", "state", "phase"], 0)


BASELINE = {"kind": "baseline", "clock": 1.0, "name": "ONNX Runtime", "seconds": 0.1, "spread": 0.0, "threads": 2}
WHOLE = {"kind": "end_to_end", "clock": 1.0, "seconds": 0.1, "spread": 0.0, "runs": 3, "latency": 0.1, "verified": True}
BATCH = {"kind": "batch", "clock": 1.0, "slot": 0, "measurements": []}
STARTED = {"kind": "started", "clock": 1.0, "versions": {}, "notes": []}
OPERATOR = {
    "index": 0,
    "name": "conv",
    "key": "k",
    "weight": 1.0,
    "flops": 1.0,
    "bytes": 1.0,
    "work": 1.0,
    "configurations": 9.0,
}
LISTED = {"kind": "operators", "clock": 1.0, "operators": [OPERATOR | {"sketches": 3}]}


@pytest.mark.parametrize(
    "event",
    [
        BASELINE | {"name": 7}, BASELINE | {"seconds": None}, BASELINE | {"seconds": "fast"}, BASELINE | {"spread": []},
        BASELINE | {"threads": "all"}, WHOLE | {"seconds": "fast"}, WHOLE | {"spread": {}}, WHOLE | {"latency": [0.1]},
        STARTED | {"versions": ["0.27"]}, STARTED | {"notes": 7}, LISTED, BATCH | {"spent": ["search"]},
        BATCH | {"spent": {"search": "much"}}, BATCH | {"spent": {"search": None}},
    ],
    ids=str,
)  # fmt: skip
def test_a_figure_that_no_page_could_draw_is_refused(site: Any, event: dict[str, Any]) -> None:
    run, held, _ = site.claimed()
    before = live.snapshot(run)
    with pytest.raises(services.Refused, match="cannot be kept"):
        services.write(held, [event])
    assert live.snapshot(run) == before


def test_a_line_of_the_log_is_its_text_and_how_grave_it_is(site: Any) -> None:
    run, held, told = site.claimed()
    services.write(held, [told.event("log", text="a"), told.event("log", text="b" * 9999, level="error", more=[1])])
    drawn = [line for line in live.snapshot(run)["log"] if line["kind"] == "log"]
    assert [(line["level"], line["text"]) for line in drawn] == [("info", "a"), ("error", "b" * 4000)]
    assert live.frames(run, drawn[0]["seq"] - 1)[0] == drawn


def test_a_clock_that_is_no_number_is_refused(site: Any) -> None:
    run, held, told = site.claimed()
    with pytest.raises(services.Refused, match="not finite"):
        services.write(held, [told.batch(0.5) | {"clock": float("inf")}])
    assert TuningRun.objects.get(pk=run.pk).clock == run.clock


def test_a_log_read_during_a_run_has_the_measurements_of_every_event(site: Any) -> None:
    """An artifact is made while its run goes on: what is kept after the last measurement was read stays out whole."""
    run, held, told = site.claimed()
    services.write(held, [told.batch(0.5)])
    log = orders.tuning_log(run)
    lines = [next(line for line in log if line["kind"] == "batch")]
    services.write(held, [told.batch(0.4, 0.3)])
    lines += log
    trials = [line["trials"] for line in lines if line["kind"] == "batch"]
    assert trials == [1]
    later = list(orders.tuning_log(run))
    assert [line["kind"] for line in later].count("measurement") == 3
    assert [line["seq"] for line in later] == numbers(run)


def test_how_much_is_asked_does_not_grow_with_a_batch_nor_with_its_run(
    site: Any, django_assert_max_num_queries: Any
) -> None:
    _, held, told = site.claimed()
    several = [event for _ in range(20) for event in (told.batch(0.5, 0.4), told.slot(), told.batch(0.3, operator=1))]
    with django_assert_max_num_queries(25):
        services.write(held, several)


@pytest.mark.skipif(connection.vendor != "sqlite", reason="how SQLite tells its plans")
@pytest.mark.parametrize(
    ("table", "column", "least"),
    # Of two operators what is known, and the best after the second round.
    [("measurement", "operator", 3), ("event", "digest", 1), ("slot", "number", 1)],
)
def test_what_is_there_already_is_found_by_index(site: Any, table: str, column: str, least: int) -> None:
    """By run alone it would be looked for in all that the run has kept, at every batch: 87 events a second were left
    of a thousand.
    """
    _, held, told = site.claimed()
    services.write(held, [told.batch(0.5, 0.4), told.batch(0.3, operator=1), told.slot()])
    again = [told.measurement(0, 0.6, round=1, choices=[0, 1, 2]), told.measurement(1, 0.2)]
    with CaptureQueriesContext(connection) as asked:
        services.write(held, [told.batch() | {"measurements": again}, told.slot()])
    plans = [plan_of(query["sql"]) for query in asked if f'"tuning_{table}"."run_id" =' in query["sql"]]
    assert len(plans) >= least
    assert all(f"{column}=?" in plan for plan in plans), "\n".join(plans)


def test_of_more_slots_than_are_drawn_the_gains_are_of_all(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run, held, told = site.claimed()
    slots = [told.slot(number % 2) | {"before": 1.0 + number, "after": 0.5} for number in range(40)]
    services.write(held, [told.batch(0.5), told.batch(0.3, operator=1), *slots])
    monkeypatch.setattr(live, "SLOTS", 10)
    drawn = live.snapshot(run)
    numbers = [slot[0] for slot in drawn["slots"]]
    assert len(numbers) <= 11
    assert numbers[-5:] == [36, 37, 38, 39, 40]
    assert min(numbers) < 10
    won = [sum(0.5 + number for number in range(40) if number % 2 == index) for index in (0, 1)]
    assert [operator["gain"] for operator in drawn["operators"]] == pytest.approx([won[0], 2 * won[1]])


def test_points_of_a_long_run_keep_what_was_better_and_an_even_choice_of_the_rest(
    site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, held, told = site.claimed()
    monkeypatch.setattr(walk, "POINTS", 20)
    services.write(held, [told.batch(1.0 / (1 + n) if n % 30 == 0 else 2.0) for n in range(300)])
    points = live.snapshot(run)["points"]
    assert len(points) <= 20
    assert [point[2] for point in points if point[2] < 2.0] == [1.0 / (1 + n) for n in range(0, 300, 30)]
    clocks = [point[0] for point in points]
    assert clocks == sorted(clocks)
    rest = [point[0] for point in points if point[2] == 2.0]
    assert max(b - a for a, b in pairwise(rest)) < 3 * (rest[-1] - rest[0]) / len(rest)


def test_duplicates_are_kept_but_are_no_trials(site: Any) -> None:
    run, held, told = site.claimed()
    event = told.batch(0.5)
    event["measurements"].append(told.measurement(0, None, cause="duplicate", asked=[9, 9, 9]))
    services.write(held, [event])
    run.refresh_from_db()
    assert (run.trials, run.failures, run.measurements.count()) == (1, 0, 2)
    assert held.order()["measurements"][1]["asked"] == [9, 9, 9]


def test_an_order_goes_on_from_what_is_kept(site: Any) -> None:
    _, held, told = site.claimed()
    services.write(held, [told.batch(0.5, 0.4), told.slot(0, checkpoint={"scheduler": {"a": [1]}})])
    order = held.order()
    assert order["task"] == "tune"
    assert order["checkpoint"] == {"scheduler": {"a": [1]}}
    assert [m["seconds"] for m in order["measurements"]] == [0.5, 0.4]
    assert order["slots"] == [(0, 0.25, {"decided_by_belief": True}, 1)], (
        "of a decision what the next attempt goes on from"
    )
    assert json.loads(order["spec"])["budget"]["trials"] == 100
    json.dumps(order)


def test_frames_after_a_snapshot_give_the_new_snapshot(site: Any) -> None:
    run, held, told = site.claimed()
    services.write(held, [told.batch(0.5, 0.4), told.batch(0.3, operator=1)])
    old = live.snapshot(run)
    services.write(held, [told.batch(0.45, None, 0.2), told.slot(0), told.event("log", level="info", text="hello")])
    services.write(held, [told.batch(0.25, 0.1, operator=1), told.slot(1), told.event("phase", name="x", text="later")])
    services.request(run, site.ada, "pause")
    services.conclude(held, "paused")
    new = live.snapshot(run)
    events, last = live.frames(run, old["seq"])
    assert last == new["seq"]
    assert folded(old, events) == new


def test_frames_are_read_in_parts(site: Any) -> None:
    run, held, told = site.claimed()
    services.write(held, [told.event("log", level="info", text=str(i)) for i in range(20)])
    seen, after = [], 0
    while True:
        events, after = live.frames(run, after, limit=7)
        if not events:
            break
        seen += events
    assert [event["seq"] for event in seen] == numbers(run)


def test_a_run_of_50_000_measurements_is_drawn_within_two_seconds(
    site: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """The quickest of three, for other tests run beside."""
    run, _, _ = site.claimed(operators=20)
    first = Job.objects.get(pk=run.job_id).last_seq
    measure(run, (
        {
            "seq": first + 1 + i, "operator": i % 20, "configuration": f"{i:032x}", "choices": [i], "identity": "x",
            "seconds": None if i % 11 == 9 else 1.0 / (1 + i), "clock": i // 8 * 0.5,
            "cause": "timeout" if i % 11 == 9 else "",
        }
        for i in range(50_000)
    ))  # fmt: skip
    Job.objects.filter(pk=run.job_id).update(last_seq=first + 50_000)
    Operator.objects.filter(run=run).update(best_seconds=1e-5)
    texts: list[str] = []

    def open_it() -> None:
        walk._walk_of.cache_clear()  # as for the first time
        texts.append(json.dumps(live.snapshot(run)))

    took = quickest(lambda: work_of(open_it), 2.0)
    text, drawn = texts[-1], json.loads(texts[-1])
    with capsys.disabled():
        print(f"\nsnapshot of 50,000 measurements: {took:.2f} s, {len(text) / 1e6:.2f} MB")  # noqa: T201
    assert took < 2.0
    assert len(drawn["points"]) <= walk.POINTS
    assert len(drawn["curve"]) <= live.CURVE
    assert all(len(operator["spark"]) <= live.SPARK for operator in drawn["operators"])
    assert drawn["curve"][-1][1] == min(point[1] for point in drawn["curve"])


@pytest.mark.parametrize(("count", "most"), [(10, 20), (20, 20), (1000, 7), (5001, 5000)])
def test_thinning_keeps_the_ends_and_the_order(count: int, most: int) -> None:
    kept = thinned(range(count), most)
    assert (kept[0], kept[-1]) == (0, count - 1)
    assert kept == sorted(set(kept))
    assert len(kept) == min(count, most)
