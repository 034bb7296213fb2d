"""One operator of a run: its course, what was expected of its slots, and the page."""

from __future__ import annotations

import json
import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.dashboard import report, streams
from apps.dashboard.course import SLOTS, SPANS, STEPS, Course, course
from apps.dashboard.course_charts import charts
from apps.dashboard.humans import duration
from apps.tuning import orders, services
from apps.tuning.live import frames
from apps.tuning.models import Job, Measurement, Operator, Slot, TuningRun
from tests.apps.rows import Site, Told, plan_of
from tests.dashboard.large import large
from tests.tries import quickest, work_of
from workers.messages import foretold as foretelling

HOSTILE = "</title></svg><script>alert(1)</script>"


def given(told: Told, number: int, seconds: list[float | None], belief: Any = None, **changes: Any) -> list[Any]:
    """A slot of the first operator: its batch, and its own event, of two seconds after one of somebody else's."""
    told.clock += 1.0
    began = told.clock
    told.clock += 1.5
    batch = told.batch(*seconds) | {"slot": number}
    decision = {"rule": "belief", "decided_by_belief": True, "operators": {}, "belief": belief}
    slot = told.slot() | {"slot": number, "began": began, "ended": told.clock, "trials": len(seconds)}
    return [batch, slot | {"decision": decision} | changes]


def believed(x: list[int], mean_ms: list[float], low_ms: list[float]) -> dict[str, Any]:
    fit = {"acceptance": 0.31, "autocorrelation": 12.5, "at_least": False, "segments": 2, "points": 40}
    return {"x": x, "mean_ms": mean_ms, "low_ms": low_ms, **fit}


def kept(site: Site, *, operators: int = 1) -> tuple[TuningRun, Callable[[list[Any]], None], Told]:
    run, held, told = site.claimed(operators)
    return run, lambda events: services.write(held, events), told


def of(run: TuningRun, index: int = 0) -> Course:
    run.refresh_from_db()
    return course(run, run.operators.get(index=index))


def page(client: Client, run: TuningRun, index: int = 0) -> str:
    return client.get(reverse("operator", args=[run.pk, index])).content.decode()


def test_the_best_so_far_falls_on_two_clocks(site: Site) -> None:
    run, write, told = kept(site)
    write([told.batch(4e-3)])
    write(given(told, 1, [3e-3, 5e-3]))
    write(given(told, 2, [6e-3]))
    write(given(told, 3, [None, 1e-3]))
    found = of(run)
    assert [(step.trials, step.seconds) for step in found.steps] == [(1, 4e-3), (3, 3e-3), (6, 1e-3)]
    warm_up, first, last = (step.own for step in found.steps)
    # Its own time stands still while others have the machine.
    assert warm_up == 0.0
    assert 0.0 < first <= 2.0 < 4.0 < last <= found.own
    assert found.own == pytest.approx(sum(slot.ended - slot.began for slot in found.given))
    assert last < found.steps[-1].clock
    assert [slot.own for slot in found.given] == pytest.approx([found.own / 3, found.own * 2 / 3, found.own])
    assert found.failures == {"timeout": 1}


def test_what_a_slot_waited_for_others_is_no_time_of_its_operator(site: Site, ada: Client) -> None:
    """A slot of 2.5 s and one of as long that had the machine for half a second of it."""
    run, write, told = kept(site)
    write([told.batch(4e-3)])
    for number, waited in ((1, 0.0), (2, 2.0)):
        batch, slot = given(told, number, [3e-3 / number])
        slot["decision"] |= {"waited": waited}
        write([batch, slot])
    found = of(run)
    long = found.given[0].ended - found.given[0].began
    assert found.own == pytest.approx(2 * long - 2.0)
    assert run.operators.get(index=0).seconds == pytest.approx(found.own)
    assert found.steps[-1].own <= found.own
    assert [ended - began for began, ended in found.spans] == pytest.approx([long, long]), "it had the machine's turn"


def test_a_figure_that_was_measured_again_counts_as_it_was_found_then(site: Site) -> None:
    run, write, told = kept(site)
    lucky = told.measurement(0, 1e-3, choices=[7])
    again = told.measurement(0, 3e-3, choices=[7], round=1)
    for measured in ([lucky], [told.measurement(0, 2e-3)], [again], [told.measurement(0, 2.5e-3, choices=[9])]):
        write([told.batch() | {"measurements": measured}])
    found = of(run)
    assert [step.seconds for step in found.steps] == [1e-3, 3e-3, 2.5e-3], "2 ms were told before, and not asked again"
    assert found.steps[-1].seconds == run.operators.get().best_seconds


def test_an_operator_without_a_slot_has_none_yet_only_while_its_run_goes_on(site: Site, ada: Client) -> None:
    run, write, told = kept(site)
    write([told.batch(4e-3)])
    assert "It had no slot of its own yet:" in page(ada, run)
    Job.objects.filter(pk=run.job_id).update(state="done")
    assert "It had no slot of its own:" in page(ada, run)


@pytest.mark.parametrize("size", ["wide", "narrow"])
def test_what_was_measured_again_raises_no_line_and_is_a_mark_with_words(site: Site, ada: Client, size: str) -> None:
    run, write, told = kept(site)
    lucky, again = (told.measurement(0, seconds, choices=[7], round=n) for n, seconds in enumerate((1e-3, 3e-3)))
    write(given(told, 1, [4e-3]))
    write([told.batch() | {"measurements": [lucky], "slot": 1}])
    for chart in charts(run, of(run), size):
        assert chart is not None
        assert (chart.again, [said.text for said in chart.said]) == ([], ["best 1.00 ms"])
    write([told.batch() | {"measurements": [again]}])
    for chart in charts(run, of(run), size):
        assert chart is not None
        heights = [float(point.split(",")[1]) for point in chart.points.split()]
        assert heights == sorted(heights)  # it falls: lower is faster
        assert [said.text for said in chart.said] == ["measured again 3.00 ms", "found at 1.00 ms"]
        ((_, mark),) = chart.again
        assert mark < heights[-1]
        assert all(0 < said.y < chart.plot.height for said in chart.said)
    text = page(ada, run)
    assert '<td class="num" data-value="0.003">3.00 ms, measured again</td>' in text
    assert "what the best came to when it was measured again, which is what counts" in text


def test_the_page_of_a_run_that_goes_on_asks_again_until_the_run_is_over(site: Site, ada: Client) -> None:
    run, write, told = kept(site)
    address = reverse("operator", args=[run.pk, 0])
    first = page(ada, run)
    asked = re.search(r'<div id="course" hx-get="([^"]+)" hx-trigger="every 4s,[^"]+" hx-select="#course"', first)
    assert asked is not None
    assert "Reload" not in first.partition("<main")[2]
    assert ada.get(asked[1]).status_code == 204
    write([told.batch(2e-3)])
    assert "2.00 ms" in ada.get(asked[1]).content.decode()
    for state, trigger in (("paused", ["60"]), ("done", []), ("failed", ["60"])):  # which may be resumed elsewhere
        Job.objects.filter(pk=run.job_id).update(state=state)
        text = ada.get(address).content.decode()
        assert re.findall(r'hx-trigger="every (\d+)s,', text) == trigger, state
        assert ada.get(asked[1]).status_code == 200, state


def test_the_page_of_an_operator_of_many_measurements_asks_less_often(site: Site, ada: Client) -> None:
    """Each time all of them are read, on the machine that is timed."""
    run, _, _ = kept(site)
    Operator.objects.filter(run=run, index=0).update(trials=40_000)
    assert 'hx-trigger="every 40s,' in page(ada, run)


def test_what_was_built_before_is_no_trial_and_no_failure(site: Site) -> None:
    run, write, told = kept(site)
    write(
        [told.batch(2e-3) | {"measurements": [told.measurement(0, None, cause="duplicate"), told.measurement(0, 2e-3)]}]
    )
    found = of(run)
    assert [step.trials for step in found.steps] == [1]
    assert found.failures == {}


def expectations(site: Site) -> list[tuple[float, float, bool | None]]:
    """Of slots that came to as many configurations as was thought, to more, and to fewer than any point is for."""
    run, write, told = kept(site)
    write(given(told, 1, [9e-3] * 4, after=9e-3))
    write(given(told, 2, [8e-3] * 4, believed([6, 8, 12], [8.5, 8.0, 7.0], [8.3, 7.8, 6.5]), before=9e-3, after=8.1e-3))
    write(given(told, 3, [7e-3] * 2, believed([9, 12], [8.0, 5.0], [7.9, 4.9]), before=8.1e-3, after=7e-3))
    write(given(told, 4, [5e-3], believed([20, 40], [6.0, 5.0], [5.9, 4.8]), before=7e-3, after=5e-3))
    found = of(run)
    assert found.given[0].expected is None
    assert (found.within, found.expected) == (2, 3)
    shown = [(slot.expected, slot.within) for slot in found.given[1:]]
    return [(told.mean, told.low, within) for told, within in shown if told is not None]


def check_expectations(site: Site) -> None:
    assert expectations(site) == [
        (pytest.approx(8e-3), pytest.approx(7.8e-3), True),
        (pytest.approx(7e-3), pytest.approx(6.9e-3), True),
        (pytest.approx(6e-3), pytest.approx(5.9e-3), False),
    ]


def test_what_was_expected_is_for_as_many_configurations_as_the_slot_came_to(site: Site) -> None:
    check_expectations(site)


@pytest.mark.mutation
def test_an_expectation_for_another_number_of_configurations_would_be_noticed(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foretelling, "_between", lambda xs, ys, x: ys[0])
    with pytest.raises(AssertionError):
        check_expectations(site)


def test_nothing_is_expected_of_a_slot_in_which_nothing_was_measured(site: Site) -> None:
    run, write, told = kept(site)
    write(given(told, 1, [], believed([6, 8], [8.5, 8.0], [8.4, 7.8]), after=None))
    (slot,) = of(run).given
    assert (slot.expected, slot.within) == (None, None)


def test_the_charts_show_what_was_expected_beside_what_came(site: Site) -> None:
    run, write, told = kept(site)
    write(given(told, 1, [9e-3] * 2, after=9e-3))
    write(given(told, 2, [8e-3] * 2, believed([3, 4], [8.5, 8.0], [8.4, 7.7]), before=9e-3, after=8e-3))
    write(given(told, 3, [3e-3] * 2, believed([5, 6], [5.0, 4.0], [4.9, 3.7]), before=8e-3, after=3e-3))
    own, clock = charts(run, of(run))
    assert own is not None
    assert clock is not None
    assert [dot.within for dot in own.came] == [True, False]
    assert own.bands.count("M") == own.means.count("M") == 2
    assert "Slot 3: expected 3.70 ms to 8.00 ms, came to 3.00 ms" in own.came[1].words
    assert clock.slots.count("M") == 3
    # Lower is faster: the second slot came to less than was expected of it.
    expected = float(re.findall(r" ([\d.]+)h", own.means)[1])
    assert own.came[1].y > expected


def test_of_many_slots_few_decisions_are_read(site: Site) -> None:
    run, _, _ = site.claimed(1)
    Slot.objects.bulk_create(
        Slot(run=run, seq=n, number=n, operator=0, began=n, ended=n + 1.0, trials=1, rule="belief",
             before=1.0, after=0.5, decision={"operators": {}})
        for n in range(1, 5001)
    )  # fmt: skip
    with CaptureQueriesContext(connection) as asked:
        found = of(run)
    read = []
    for query in asked:
        if '"decision"' in query["sql"]:
            with connection.cursor() as cursor:
                cursor.execute(query["sql"])
                read.append(len(cursor.fetchall()))
    assert read == [SLOTS]
    assert (found.count, len(found.given), len(found.spans)) == (5000, SLOTS, SPANS)
    assert (found.given[0].number, found.given[-1].number) == (1, 5000)
    assert found.own == pytest.approx(5000.0)


def test_of_many_steps_an_even_choice_is_drawn(site: Site) -> None:
    run, _, _ = site.claimed(1)
    Measurement.objects.bulk_create(
        Measurement(run=run, seq=100 + n, operator=0, configuration=f"{n:032x}", sketch=0, choices=[n], seconds=1.0 / n,
                    clock=float(n))
        for n in range(1, 3001)
    )  # fmt: skip
    found = of(run)
    assert len(found.steps) == STEPS
    assert found.steps[-1].seconds == 1.0 / 3000


@pytest.mark.parametrize(("alike", "words"), [(0, ""), (1, "like 1 operator of"), (2, "like 2 operators of")])
def test_the_page_says_of_how_many_operators_like_it_there_are_records(
    site: Site, ada: Client, alike: int, words: str
) -> None:
    run, _, _ = site.claimed()
    Operator.objects.filter(run=run).update(alike=alike)
    page = ada.get(reverse("operator", args=[run.pk, 0])).content.decode()
    assert re.findall(r"<span>(like \d+ operators? of) earlier runs</span>", page) == [words] * bool(words)


def test_the_page_says_all_of_it(site: Site, ada: Client) -> None:
    run, write, told = kept(site, operators=2)
    write([told.batch(9e-3), told.batch(2e-3, operator=1)])
    write(given(told, 1, [8e-3, None], believed([2, 3], [8.5, 8.1], [8.3, 7.8]), before=9e-3, after=8e-3))
    text = page(ada, run)
    for words in (
        "#0</span> conv_0", "8.00 ms", "It lay inside in 1 of 1 slots", "took too long", "40 points fitted",
        "acceptance 0.31", "largest gain expected", "slot 1, proposed by the explorer", "the only one",
        "Generated code is not kept", "autocorrelation over 13 steps. Acceptance is the share of its steps that the chain took",
        "A sketch is the structure of a program",
    ):  # fmt: skip
        assert words in text, words
    assert reverse("operator", args=[run.pk, 1]) in text
    assert reverse("run", args=[run.pk]) in text
    # 1 MFLOP in 8 ms, of 100 GFLOPS; 8 of 8 + 2 x 2 ms.
    assert "125 MFLOPS" in text
    assert "0.1 %" in text
    assert "66.7 %" in text


TILE = {"name": "tile0", "kind": "tile", "extent": 12, "parts": 3, "innermost": 4}
UNROLL = {"name": "category1", "kind": "category", "options": [0, 16, 64]}
LOCATION = {"name": "location2", "kind": "location", "options": [-2, -1, 0, 1]}


def rows(text: str) -> list[tuple[str, ...]]:
    """Cells of the table of knobs, without their marks."""
    table = text[text.index('class="knobs"') :].partition("</table>")[0]
    found = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)]
    return [tuple(cells) for cells in found]


def chosen(site: Site, ada: Client, knobs: Any, choices: list[Any], **changes: Any) -> str:
    """The page of an operator with these knobs and one measurement."""
    run, write, told = kept(site)
    if knobs is not None:
        listed = next(event for event in told.start() if event["kind"] == "operators")
        listed["operators"][0] |= {"knobs": knobs}
        write([listed])
    write([told.batch() | {"measurements": [told.measurement(0, 1e-3, choices=choices, **changes)]}])
    return page(ada, run)


def test_knobs_of_an_older_run_are_shown_by_number(site: Site, ada: Client) -> None:
    text = chosen(site, ada, None, [11, 22, 33], asked=[11, 22, 44])
    assert rows(text) == [("Knob", "Option"), ("0", "11"), ("1", "22"), ("2", "33")]
    assert "asked for was 11 22 44" in text
    assert "this run is older than their names" in text


def test_knobs_are_shown_by_name_and_by_what_they_are_set_to(site: Site, ada: Client) -> None:
    text = chosen(site, ada, [[TILE, UNROLL, LOCATION]], [7, 2, 1])
    assert rows(text) == [
        ("Knob", "Value", "What it is", "Option"),
        ("tile0", "3 x 1 x 4", "loop of 12, outer to inner", "7"),
        ("category1", "64", "unrolling: most steps that are written out", "2"),
        ("location2", "in loops of its own", "where the block is computed", "1"),
    ]
    assert "older than" not in text


def test_knobs_of_a_gpus_programs_are_told_apart_by_their_options(site: Site, ada: Client) -> None:
    options = [1, 2, 3, 4], [1, 2, 3, 4, 8, 16], [32, 64, 1024]
    fetch, whole, threads = ({**UNROLL, "options": numbers} for numbers in options)
    text = chosen(site, ada, [[UNROLL, fetch, whole, threads]], [1, 3, 5, 2])
    assert [row[1:3] for row in rows(text)[1:]] == [
        ("16", "unrolling: most steps that are written out"),
        ("4", "numbers that a thread fetches at once"),
        ("16", "numbers that a thread fetches at once"),
        ("1024", "threads of a block"),
    ]


def test_the_knobs_are_those_of_the_best_configurations_sketch(site: Site, ada: Client) -> None:
    text = chosen(site, ada, [[TILE], [UNROLL, UNROLL]], [1, 2], sketch=1)
    assert [row[:2] for row in rows(text)[1:]] == [("category1", "16"), ("category1", "64")]


@pytest.mark.parametrize(
    "knobs",
    [
        HOSTILE, 7, {"a": 1}, [], [7], [["x", None, []]], [[TILE]], [[{}, {}, {}]],
        [[{**TILE, "extent": HOSTILE}, {**TILE, "parts": []}, {**TILE, "innermost": None}]],
        [[{**TILE, "extent": 1 << 60}, {**TILE, "extent": -3}, {**UNROLL, "options": {HOSTILE: 1}}]],
        [[{**UNROLL, "options": [HOSTILE] * 40}, {**LOCATION, "options": [[]] * 40}, {"name": HOSTILE, "kind": HOSTILE}]],
    ],
    ids=lambda knobs: str(knobs)[:40],
)  # fmt: skip
def test_made_up_knobs_break_no_page(site: Site, ada: Client, knobs: Any) -> None:
    text = chosen(site, ada, knobs, [11, 22, 33])
    assert "<script>alert" not in text
    assert [row[-1] for row in rows(text)[1:]] == ["11", "22", "33"]


def test_the_log_names_the_knobs_once(site: Site, ada: Client) -> None:
    run, write, told = kept(site)
    listed = next(event for event in told.start() if event["kind"] == "operators")
    listed["operators"][0] |= {"knobs": [[TILE]]}
    write([listed, told.batch(1e-3, 2e-3)])
    downloaded = map(json.loads, b"".join(streams.log_lines(run)).splitlines())
    for lines in (orders.tuning_log(run), downloaded):
        named = [line for line in lines if "innermost" in json.dumps(line)]
        assert [line["operators"][0]["knobs"] for line in named] == [[[TILE]]]


def test_a_best_was_found_when_it_was_first_measured(site: Site, ada: Client) -> None:
    run, write, told = kept(site)
    write(given(told, 1, [5e-3]))
    found = told.batch() | {"slot": 2, "measurements": [told.measurement(0, 1e-3, choices=[7], origin="twin")]}
    again = told.measurement(0, 2e-3, choices=[7], round=1, origin="confirm")
    last = told.batch() | {"slot": 0, "measurements": [again]}
    write([found, last])
    first, second = run.measurements.filter(choices=[7]).order_by("round")
    text = page(ada, run)
    assert (
        f"<dt>Found</dt><dd>{duration(first.clock)} into the run, slot 2, proposed by an operator with the same knobs"
        in text
    )
    assert f"; measured once more after {duration(second.clock)}</dd>" in text


def test_what_was_timed_again_is_no_more_of_the_space(site: Site, ada: Client) -> None:
    run, write, told = kept(site)
    first = told.measurement(0, 1e-3, choices=[7])
    duplicate = told.measurement(0, None, cause="duplicate")
    write([told.batch() | {"measurements": [first, duplicate]}])
    write([told.batch() | {"measurements": [told.measurement(0, 2e-3, choices=[7], round=n) for n in (1, 2)]}])
    Operator.objects.filter(run=run).update(configurations=2.0)
    assert "<dt>Tried of it</dt><dd>50.0 %</dd>" in page(ada, run)


def test_an_operator_without_anything_says_so(site: Site, ada: Client) -> None:
    run, _, _ = kept(site)
    text = page(ada, run)
    assert "Nothing was tried yet" in text
    assert '<svg class="chart' not in text


def test_an_operator_of_failures_only_says_why(site: Site, ada: Client) -> None:
    run, write, told = kept(site)
    write([told.batch(None, None, None)])
    text = page(ada, run)
    assert "None of its 3 configurations ran" in text
    assert "took too long" in text
    assert "None ran yet." in text


def test_before_its_first_slot_an_operator_has_a_curve_by_tuning_time(site: Site, ada: Client) -> None:
    run, write, told = kept(site)
    write([told.batch(2e-3)])
    text = page(ada, run)
    assert "comes from the warm-up" in text
    assert re.findall(r'<svg class="chart (\w+)"', text) == ["wide", "narrow"]


CHAIN = {"every": 3, "burn": 50, "ms": [[9.0 - part - 0.01 * step for step in range(20)] for part in range(5)]}


def told_of_a_chain(chain: Any) -> dict[str, Any]:
    return {"rule": "belief", "decided_by_belief": True, "belief": believed([3], [8.0], [7.5]), "chain": chain}


def test_the_chain_of_the_last_fit_is_a_fan_on_the_operator_s_page_alone(site: Site, ada: Client) -> None:
    run, write, told = kept(site)
    write(given(told, 1, [8e-3], believed([2], [8.5], [8.0]), before=9e-3, after=8e-3))
    assert "Show the chain" not in page(ada, run)
    write(given(told, 2, [8e-3], decision=told_of_a_chain(CHAIN)))
    text = page(ada, run)
    assert "Show the chain of this fit</summary>" in text
    assert re.findall(r">(step \d+)<", text) == ["step 50", "step 57"] * 2
    assert text.count("<polygon") == 4
    assert "median 6.81 ms" in text
    assert text.count(">57</td>") == 1
    assert run.slots.get(number=2).decision["chain"] == CHAIN
    assert set(run.operators.get().last_terms) == {"decided_by_belief", "belief"}


def test_of_what_was_thought_of_every_operator_a_page_has_its_own_operator_s(site: Site, tmp_path: Path) -> None:
    run, write, told = kept(site)
    table = {"0": [1.5, 0.5], "1": [7.0, 2.0], "12": [3.0, 1.0]}
    write(given(told, 1, [8e-3], decision={"rule": "belief", "operators": table, "gflops": HOSTILE}))
    own = {"operators": {"0": [1.5, 0.5]}, "gflops": HOSTILE}
    assert run.operators.get(index=0).last_terms == own
    events, _ = frames(run, 0)
    assert [event["terms"] for event in events if event["kind"] == "slot"] == [own]
    assert not any("knobs" in row for event in events if event["kind"] == "operators" for row in event["operators"])
    assert run.slots.get().decision["operators"] == {"0": table["0"]}, "of a run of hours they would be the square"
    event = run.events.get(kind="slot")
    assert event.payload["terms"]["operators"] == table, "the log has all of it"
    (slot,) = orders.order(run.job_id, "tune", tmp_path / "child")["slots"]
    assert slot[2] == {}


@pytest.mark.parametrize(
    "chain",
    [
        None, 7, HOSTILE, [], {}, {**CHAIN, "ms": []}, {**CHAIN, "ms": [[]] * 5}, {**CHAIN, "ms": [[1.0]] * 4},
        {**CHAIN, "ms": HOSTILE}, {**CHAIN, "ms": [HOSTILE] * 5}, {**CHAIN, "ms": [[HOSTILE]] * 5},
        {**CHAIN, "ms": [[10**400]] * 5}, {**CHAIN, "ms": [[-1.0, 0.0, 1e308]] * 5}, {**CHAIN, "ms": [[1.0]] * 4 + [[]]},
        {**CHAIN, "every": HOSTILE}, {**CHAIN, "every": None}, {**CHAIN, "every": 0}, {**CHAIN, "every": -1e308},
        {**CHAIN, "burn": HOSTILE}, {**CHAIN, "burn": 1e308}, {**CHAIN, "burn": -5}, {**CHAIN, "burn": [50]},
        {"every": "inf", "burn": "nan", "ms": [[1.0, 2.0]] * 5},
    ],
    ids=lambda chain: str(chain)[:60],
)  # fmt: skip
def test_a_made_up_chain_breaks_no_page(site: Site, ada: Client, chain: Any) -> None:
    run, write, told = kept(site)
    write(given(told, 1, [8e-3], decision=told_of_a_chain(chain)))
    text = page(ada, run)
    assert "Show slots as table" in text
    assert "<script>alert" not in text


def test_names_and_figures_of_a_child_cannot_break_out(site: Site, ada: Client) -> None:
    run, write, told = kept(site)
    hostile = told.measurement(0, 1e-3, identity=HOSTILE, origin=HOSTILE)
    other = told.measurement(0, None, cause="</script><b>")
    write([told.batch() | {"measurements": [hostile, other]}])
    fit = {**believed([3], [1.0], [0.1]), "points": HOSTILE}
    write(given(told, 1, [1e-4], decision={"rule": HOSTILE, "belief": fit}))
    Operator.objects.filter(run=run).update(name=HOSTILE)
    text = page(ada, run)
    assert "<script>alert" not in text
    assert "</script><b>" not in text


BELIEF = {"x": [1, 2], "mean_ms": [2.0, 1.0], "low_ms": [1.0, 0.5]}


@pytest.mark.parametrize(
    "belief",
    [
        7, HOSTILE, [HOSTILE], "low_ms", ["low_ms"], {"low_ms": [1.0]}, {**BELIEF, "x": []}, {**BELIEF, "x": [9] * 9},
        {**BELIEF, "x": 7}, {**BELIEF, "x": None}, {**BELIEF, "x": {"a": 1}}, {**BELIEF, "x": [HOSTILE]},
        {**BELIEF, "x": [1, 1]}, {**BELIEF, "mean_ms": [HOSTILE] * 2}, {**BELIEF, "mean_ms": []},
        {**BELIEF, "mean_ms": {}}, {**BELIEF, "low_ms": [10**400] * 2}, {**BELIEF, "low_ms": [None] * 2},
        {**BELIEF, "mean_ms": [1.7e308, -1.7e308]}, {**BELIEF, "mean_ms": [1.7e308] * 2, "low_ms": [-1e308, 1e-320]},
    ],
    ids=lambda belief: str(belief)[:60],
)  # fmt: skip
def test_a_made_up_belief_breaks_no_page(site: Site, ada: Client, belief: Any) -> None:
    """Before, at and beyond the numbers of configurations that it is about."""
    run, write, told = kept(site)
    for number, tried in enumerate((1, 1, 3), start=1):
        write(given(told, number, [4e-3] * tried, belief, before=5e-3, after=4e-3))
    text = page(ada, run)
    assert "Show slots as table" in text
    assert "<script>alert" not in text


@pytest.mark.parametrize("seconds", [0.0, -1.0, 5e-324, 1e308, 1.7e308])
def test_a_latency_that_none_has_makes_no_page_fail(site: Site, ada: Client, seconds: float) -> None:
    run, write, told = kept(site)
    write([told.batch() | {"measurements": [told.measurement(0, seconds)]}])
    write(given(told, 1, [seconds], BELIEF, before=seconds, after=seconds))
    for address in (reverse("operator", args=[run.pk, 0]), reverse("snapshot", args=[run.pk]), "/"):
        assert ada.get(address).status_code == 200
    assert b"".join(report.pieces(run))


@pytest.mark.parametrize("index", [1, 99, 10**30])
def test_an_operator_that_is_not_there_is_not_found(site: Site, ada: Client, index: int) -> None:
    run, _, _ = kept(site)
    assert ada.get(f"/runs/{run.pk}/operators/{index}/").status_code == 404


def test_an_operator_is_there_for_its_owner_alone(site: Site, ada: Client, bob: Client) -> None:
    run, _, _ = kept(site)
    address = reverse("operator", args=[run.pk, 0])
    assert ada.get(address).status_code == 200
    assert bob.get(address).status_code == 404
    assert Client().get(address).status_code == 302
    assert ada.post(address).status_code == 405


def test_an_operator_of_100_000_measurements_is_read_in_little_memory(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    run = large(site)
    took = quickest(lambda: work_of(lambda: of(run, 7)), 1.5)  # of three, for other tests run beside
    tracemalloc.start()
    try:
        found = of(run, 7)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    with capsys.disabled():
        print(f"\none operator of 100,000 measurements: {took:.2f} s, {peak / 2**20:.0f} MiB at most")  # noqa: T201
    assert found.steps[-1].seconds == min(step.seconds for step in found.steps)
    assert took < 1.5
    assert peak < 20 * 2**20


def test_whole_numbers_are_measured_by_a_peak_of_as_many_products(site: Site, ada: Client) -> None:
    run, take, told = kept(site)
    take([*given(told, 1, [1e-3])])
    Operator.objects.filter(run=run).update(flops=0.48e-3 * run.machine["peak_flops"], best_seconds=1e-3)
    said = {}
    for at_once in (1, 4):
        Operator.objects.filter(run=run).update(at_once=at_once)
        found = re.search(r"of the measured peak</dt><dd>([^<]*)<", page(ada, run))
        said[at_once] = found and found[1]
    assert said == {1: "48.0 %", 4: "12.0 %"}


@pytest.mark.skipif(connection.vendor != "sqlite", reason="how SQLite tells its plans")
@pytest.mark.parametrize("others", [0, 30])
def test_an_operator_s_measurements_are_found_in_their_order(site: Site, others: int) -> None:
    """By their numbers alone the whole run would be looked through, by the operator alone each page would be sorted anew."""
    run, write, told = kept(site, operators=2)
    write(
        [told.batch(2e-3)]
        + [told.batch(operator=1) | {"measurements": [told.measurement(1, 1.0 + n)]} for n in range(others)]
    )
    run.refresh_from_db()
    with CaptureQueriesContext(connection) as asked:
        course(run, run.operators.get(index=0))
    plans = [plan_of(query["sql"]) for query in asked if '"tuning_measurement"."run_id" =' in query["sql"]]
    assert plans
    assert all("operator=?" in plan and "TEMP" not in plan for plan in plans), "\n".join(plans)
