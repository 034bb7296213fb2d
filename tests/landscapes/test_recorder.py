"""Recording: whole, resumable, and what a replay of it says."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.landscapes.recorded import (
    HEADER,
    OPERATORS,
    QUICK,
    costs,
    curve_recording,
    curves,
    space_recording,
    spaces,
    watch,
)  # fmt: skip
from workers.engine.evaluator import FixedEvaluator
from workers.engine.evaluator.estimate import LONGEST_TIMING
from workers.engine.explorer import SimulatedAnnealing
from workers.engine.methods import METHODS, method
from workers.engine.ports import Candidate, Outcome, Progress
from workers.engine.scheduler import DynaTune
from workers.engine.space import DIRECT, FUSED, Configuration
from workers.landscapes import (
    Charged,
    Costs,
    CurveLandscape,
    CurveRecording,
    LandscapeError,
    SimulatedClock,
    SpaceLandscape,
    SpaceRecording,
    SyntheticLandscape,
    files,
)  # fmt: skip
from workers.landscapes.calibration import calibrate
from workers.landscapes.costs import UNITS, key_of
from workers.landscapes.curves import CAUSES
from workers.landscapes.recorder import Watch, curves_of, record_curves, record_spaces
from workers.landscapes.recorder import curves as recorded_curves
from workers.landscapes.recorder.part import Part
from workers.landscapes.subspace import subspace
from workers.landscapes.synthetic import PEAK_FLOPS
from workers.messages.causes import LARGE
from workers.messages.events import Event
from workers.messages.spec import Budget
from workers.pipeline import TuningLoop


@pytest.fixture(scope="module")
def curve(tmp_path_factory: pytest.TempPathFactory) -> CurveRecording:
    return curve_recording(tmp_path_factory.mktemp("curve"))


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> SpaceRecording:
    return space_recording(tmp_path_factory.mktemp("space"))


def countdown(calls: int) -> Callable[[], bool]:
    left = [calls]

    def wanted() -> bool:
        left[0] -= 1
        return left[0] >= 0

    return wanted


def replayed(curve: CurveRecording, name: str, seed: int, budget: Budget) -> list[Event]:
    clock, events = SimulatedClock(), list[Event]()
    landscape = CurveLandscape(curve, clock, seed)
    loop = TuningLoop(
        landscape, landscape.played(method(name)), budget, seed, PEAK_FLOPS, clock, events.append, lambda: "continue"
    )
    loop.run()
    return events


def test_times_survive_their_codes_to_a_twentieth_of_a_percent() -> None:
    times = np.asarray([1e-9, 3.3e-6, 1.0, 1e5, np.nan, 0.0])
    back = files.times_of(files.codes(times))
    assert np.allclose(back[:4], times[:4], rtol=5e-4)
    assert np.isnan(back[4:]).all()


def test_a_recording_survives_its_file_and_is_small(
    curve: CurveRecording, space: SpaceRecording, tmp_path: Path
) -> None:
    curve.write(tmp_path / "c.npz")
    space.write(tmp_path / "s.npz")
    again, parts = CurveRecording.read(tmp_path / "c.npz"), SpaceRecording.read(tmp_path / "s.npz")
    for one, two in zip(curve.searches[0], again.searches[0], strict=True):
        assert np.allclose(one.best[-1], two.best[-1], rtol=1e-3)
        assert (one.causes == two.causes).all()
    assert [part.operator for part in parts.parts] == [part.operator for part in space.parts]
    assert (tmp_path / "c.npz").stat().st_size < 100_000
    assert 0 < again.noise < 0.05
    assert 0.01 < parts.noise < 0.1


def test_a_recording_says_where_a_space_writes_its_sums(space: SpaceRecording, tmp_path: Path) -> None:
    (sketch,) = space.parts[0].operator.sketches
    bare = replace(space.parts[0].operator, sketches=(replace(sketch, structures=(DIRECT, FUSED)),))
    replace(space, parts=(replace(space.parts[0], operator=bare),)).write(tmp_path / "s.npz")
    (part,) = SpaceRecording.read(tmp_path / "s.npz").parts
    assert part.operator == bare


def test_stopped_and_gone_on_is_as_whole_as_in_one_go(curve: CurveRecording, tmp_path: Path) -> None:
    folder, turns = tmp_path / "curve", 0
    while not curves(folder, wanted=countdown(20)):
        turns += 1
        assert turns < 30
    assert turns > 2
    found = curve_recording(folder)
    for row, other in zip(found.searches, curve.searches, strict=True):
        assert [len(search) for search in row] == [len(search) for search in other]


def test_a_space_stopped_anywhere_is_gone_on_with(space: SpaceRecording, tmp_path: Path) -> None:
    turns = 0
    while not spaces(tmp_path, wanted=countdown(10)):
        turns += 1
        assert turns < 50
    found = space_recording(tmp_path)
    for one, two in zip(found.parts, space.parts, strict=True):
        assert one.operator.sketches == two.operator.sketches
        assert (one.causes == two.causes).mean() > 0.97  # a device failure comes once
        assert (one.first == two.first).mean() > 0.9


def test_whichever_configuration_of_a_program_is_asked_first_pays_what_it_cost(tmp_path: Path) -> None:
    """Half the places of a pooling are one program, and the probe has met most of them before the grid does."""
    pooling = next(operator for operator in OPERATORS if operator.name.startswith("pool"))
    backend = SyntheticLandscape(3, OPERATORS, SimulatedClock(), {})
    part = Part(backend, pooling, tmp_path, watch(), "")
    assert part.measure(method("random"), pooling.size, 0)
    _, arrays = files.read(tmp_path / f"space-{pooling.index}.npz", "space part")
    again = np.flatnonzero(arrays["first"] != np.arange(len(arrays["first"])))
    assert len(again) >= 6
    for name in ("build", "overhead", "times"):
        assert np.array_equal(arrays[name][again], arrays[name][arrays["first"][again]])
    build, overhead = (files.times_of(arrays[name]) for name in ("build", "overhead"))
    assert (build[again] > 0).all()
    assert np.nan_to_num(overhead[again]).max() > 0


class Backwards(SyntheticLandscape):
    """Whose workers lower what they are given from the end: the first of equal programs is the duplicate."""

    def measure(self, candidates: Sequence[Candidate], incumbents: dict[int, float]) -> list[Outcome]:
        return super().measure(candidates[::-1], incumbents)[::-1]

    def run_times(self) -> list[tuple[float, ...]]:
        return super().run_times()[::-1]


def test_of_equal_programs_whichever_was_measured_speaks_for_all(tmp_path: Path) -> None:
    pooling = next(operator for operator in OPERATORS if operator.name.startswith("pool"))
    part = Part(Backwards(3, OPERATORS, SimulatedClock(), {}), pooling, tmp_path, watch(), "")
    assert part.measure(method("random"), pooling.size, 0)
    _, arrays = files.read(tmp_path / f"space-{pooling.index}.npz", "space part")
    assert (arrays["first"] != np.arange(len(arrays["first"]))).sum() >= 6
    assert CAUSES.index("duplicate") not in arrays["causes"]


class Lucky(SyntheticLandscape):
    """Where every ninth first measurement falls into a moment in which memory is twice as fast."""

    def answer(self, candidate: Candidate, incumbent: float | None) -> Outcome:
        outcome = super().answer(candidate, incumbent)
        self.asked = getattr(self, "asked", 0) + (candidate.round == 0)
        if outcome.seconds is None or candidate.round or self.asked % 9:
            return outcome
        return replace(outcome, seconds=outcome.seconds / 2)


def luck_of_the_best(folder: Path) -> float:
    """Of Lucky's operators the most that a best takes when it is measured again, over what was recorded of it."""
    assert record_curves(lambda: Lucky(3, OPERATORS, SimulatedClock()), QUICK, 1, 96, folder, watch())
    searches = [row[0] for row in curves_of(folder, 1, HEADER).searches]
    return max(float(np.median(search.again) / search.best[-1]) for search in searches if len(search.again))


def test_what_was_the_best_is_recorded_as_it_was_measured_a_second_time(tmp_path: Path) -> None:
    assert luck_of_the_best(tmp_path) == pytest.approx(1, abs=0.1)


def test_a_record_that_breaks_off_when_it_is_repeated_keeps_its_time(tmp_path: Path) -> None:
    class Once(SyntheticLandscape):
        def answer(self, candidate: Candidate, incumbent: float | None) -> Outcome:
            outcome = super().answer(candidate, incumbent)
            return replace(outcome, seconds=None, cause="crash") if candidate.round else outcome

    assert record_curves(lambda: Once(3, OPERATORS, SimulatedClock()), QUICK, 1, 48, tmp_path, watch())
    for (search,) in curves_of(tmp_path, 1, HEADER).searches:
        assert (np.isnan(search.seconds) == (search.causes != CAUSES.index(""))).all()
        assert not len(search.again)


@pytest.mark.mutation
def test_a_record_that_was_luck_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded_curves, "_believed", lambda backend, asked, seconds: seconds)
    with pytest.raises(AssertionError):
        test_what_was_the_best_is_recorded_as_it_was_measured_a_second_time(tmp_path)


def test_what_an_earlier_attempt_measured_says_nothing_about_the_pace() -> None:
    said, clock = list[str](), SimulatedClock()
    progress = Watch(said.append, lambda: True, clock.now)
    progress.start(1000, 0)
    progress.found(760)
    clock.advance(10.0)
    progress.advance(20, "here")
    assert said == ["here: 780 of 1000 configurations, 2.0/s, 2 min left"]


def test_progress_counts_what_there_is_to_measure(tmp_path: Path) -> None:
    """Poolings have a dozen configurations, and parts fewer than asked: at the end nothing is left."""
    said: list[str] = []
    progress = Watch(said.append, lambda: True, time.monotonic)

    def make() -> SyntheticLandscape:
        return SyntheticLandscape(3, OPERATORS, SimulatedClock(), {})

    assert record_curves(make, method("random"), 1, 40, tmp_path / "c", progress)
    assert record_spaces(make, method("random"), 1, 150, tmp_path / "s", progress)
    for line in (next(one for one in said[::-1] if one.startswith("seed")), said[-1]):
        done, total = (int(word) for word in re.findall(r"(\d+) of (\d+) conf", line)[0])
        assert done == total


def test_another_network_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    curve_recording(tmp_path, 1, 16)
    path = tmp_path / "network.npz"
    files.write(path, "network", {"fingerprint": "0" * 16, "operators": [{"index": 0}]}, {})
    with pytest.raises(LandscapeError, match="other operators"):
        curves(tmp_path, 2, 16)


@pytest.mark.parametrize("damage", ["missing", "text", "cut", "version", "kind"])
def test_a_file_that_is_no_landscape_says_what_to_do(space: SpaceRecording, tmp_path: Path, damage: str) -> None:
    path = tmp_path / "x.npz"
    if damage == "text":
        path.write_text("hello")
    elif damage == "version":
        files.write(path, "space", {}, {})
        content = path.read_bytes()
        path.unlink()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(files, "SPACE_VERSION", 99)
            files.write(path, "space", {}, {})
        assert path.read_bytes() != content
    elif damage != "missing":
        space.write(path)
        if damage == "cut":
            path.write_bytes(path.read_bytes()[:-400])
    with pytest.raises(LandscapeError, match=r"record it|name another"):
        (CurveRecording if damage == "kind" else SpaceRecording).read(path)


@pytest.mark.parametrize("name", ["dynatune", "round_robin", "sequential"])
def test_every_scheduler_reaches_the_recorded_end_and_a_seed_repeats_itself(curve: CurveRecording, name: str) -> None:
    events = replayed(curve, name, 1, Budget())
    assert events == replayed(curve, name, 1, Budget())
    landscape = CurveLandscape(curve, SimulatedClock(), 1)
    end = sum(o.weight * s.best[-1] for o, s in zip(landscape.operators(), landscape.searches, strict=True))
    assert events[-1]["reason"] == "exhausted"
    assert events[-1]["latency"] == pytest.approx(end)
    total = sum(float(search.total.sum()) for search in landscape.searches)
    assert events[-1]["clock"] == pytest.approx(total, rel=1e-3)


def test_which_searches_are_replayed_is_drawn_by_no_scheduler_s_stream(curve: CurveRecording) -> None:
    """A landscape that draws as a random scheduler of its seed does pairs its searches with that scheduler's slots."""

    def drawn(seed: int) -> list[int]:
        chosen = CurveLandscape(curve, SimulatedClock(), seed).searches
        pairs = zip(curve.searches, chosen, strict=True)
        return [next(place for place, one in enumerate(row) if one is search) for row, search in pairs]

    def plain(seed: int, *tag: int) -> list[int]:
        rng = np.random.default_rng([seed, *tag] if tag else seed)
        return [int(rng.integers(len(row))) for row in curve.searches]

    seeds = range(20)
    assert [drawn(seed) for seed in seeds] == [drawn(seed) for seed in seeds]
    for tag in (b"", b"random", b"gradient", b"by_chance"):
        assert [drawn(seed) for seed in seeds] != [plain(seed, *tag) for seed in seeds]


class Thrifty(SyntheticLandscape):
    """Finds every fifth program not worth compiling."""

    def answer(self, candidate: Candidate, incumbent: float | None) -> Outcome:
        found = super().answer(candidate, incumbent)
        if incumbent is None or not found.identity or int(found.identity, 16) % 5:
            return found
        return Outcome(candidate, found.configuration, found.identity, None, cause=LARGE)


@pytest.fixture(scope="module")
def thrifty(tmp_path_factory: pytest.TempPathFactory) -> CurveRecording:
    folder = tmp_path_factory.mktemp("thrifty")
    assert record_curves(lambda: Thrifty(3, OPERATORS, SimulatedClock()), QUICK, 1, 96, folder, watch())
    curves_of(folder, 1, HEADER).write(folder / "thrifty.curve.npz")
    return CurveRecording.read(folder / "thrifty.curve.npz")


@pytest.mark.parametrize("name", ["sequential", "dynatune"])
def test_what_was_not_worth_compiling_is_no_trial_of_a_replay_either(name: str, thrifty: CurveRecording) -> None:
    large = CAUSES.index(LARGE)
    dropped = sum(int((row[0].causes == large).sum()) for row in thrifty.searches)
    assert dropped > 10
    assert all(float(np.nan_to_num(row[0].measure[row[0].causes == large]).sum()) == 0 for row in thrifty.searches)
    events = replayed(thrifty, name, 0, Budget())
    assert events[-1]["trials"] == sum(int(row[0].trials.sum()) for row in thrifty.searches)
    landscape = CurveLandscape(thrifty, SimulatedClock(), 0)
    assert [len(curve) for curve in landscape.curves.values()] == [row[0].trials.sum() for row in thrifty.searches]
    end = sum(o.weight * row[0].best[-1] for o, row in zip(landscape.operators(), thrifty.searches, strict=True))
    assert events[-1]["latency"] == pytest.approx(end)


def test_every_cause_that_a_backend_has_can_be_recorded() -> None:
    told = re.findall(r'"(\w*)"', (Outcome.__doc__ or "").partition("`cause` is")[2])
    assert set(told) == set(CAUSES) - {"device"}
    assert len(set(CAUSES)) == len(CAUSES)


def test_an_operator_without_slots_does_not_change(curve: CurveRecording) -> None:
    events = replayed(curve, "sequential", 0, Budget(trials=24))
    tried = [m["operator"] for e in events if e["kind"] == "batch" for m in e["measurements"]]
    assert sorted(set(tried)) == list(range(len(OPERATORS)))  # one each in the warm-up
    assert {operator for operator in tried if tried.count(operator) > 1} <= {0, 1}


def test_a_part_holds_the_good_ones_and_keeps_the_order_of_options() -> None:
    operator = max(OPERATORS, key=lambda one: one.size)
    rng = np.random.default_rng(0)
    good = [Configuration(0, tuple(row)) for row in operator.sketches[0].random(rng, 3).tolist()]
    part = subspace(operator, good, 500, 1)
    assert part == subspace(operator, good, 500, 1)
    assert 150 < part.size <= 500
    assert all(choice in kept for choice, kept in zip(good[0].choices, part.kept, strict=True))
    assert all(list(kept) == sorted(set(kept)) for kept in part.kept)
    small = part.restricted(operator)
    assert small.size == part.size
    for row in small.sketches[0].grid()[::50].tolist():
        whole = part.whole(row)
        for knob, kept, choice, mine in zip(
            operator.sketches[0].knobs, small.sketches[0].knobs, whole.choices, row, strict=True
        ):
            assert knob.options[choice] == kept.options[mine]


def test_a_space_answers_every_configuration_and_the_evaluator_does_the_measuring(space: SpaceRecording) -> None:
    taken = {}
    for runs in (5, 400):
        clock = SimulatedClock()
        evaluator = FixedEvaluator(runs=runs, most=runs, seconds=0.0, reject=0.0)
        landscape = SpaceLandscape(space, clock, evaluator, 0)
        operator = landscape.operators()[0]
        grid = [Candidate(0, Configuration(0, tuple(row)), "grid") for row in operator.sketches[0].grid().tolist()]
        outcomes = landscape.measure(grid, {})
        good = [o for o in outcomes if o.seconds and o.stopped == "complete"]  # 400 runs of a slow one are cut
        assert len(good) > 0.2 * len(grid)
        assert all(o.runs == runs for o in good)
        error = [abs(o.seconds / landscape.true_seconds(0, o.configuration) - 1) for o in good if o.seconds]
        assert np.mean(error) < (0.04 if runs == 5 else 0.02)
        assert landscape.best(0) <= min(o.seconds for o in good if o.seconds) * 1.1
        taken[runs] = landscape.spent()["measure"]
        assert clock.now() == pytest.approx(sum(landscape.spent().values()))
    assert taken[400] > 10 * taken[5]


def test_a_slow_program_is_given_up_where_the_machine_gives_it_up(space: SpaceRecording) -> None:
    """500 runs of 0.1 s are 50 s; a measuring process ends them after 8."""
    slow = tuple(replace(part, times=np.where(np.isfinite(part.times), 0.1, np.nan)) for part in space.parts)
    landscape = SpaceLandscape(
        SpaceRecording(space.header, slow), SimulatedClock(), METHODS["autotvm"].make_evaluator(), 0
    )
    grid = landscape.operators()[0].sketches[0].grid()[:40].tolist()
    outcomes = landscape.measure([Candidate(0, Configuration(0, tuple(row)), "grid") for row in grid], {})
    timed = [outcome for outcome in outcomes if outcome.seconds]
    assert {outcome.stopped for outcome in timed} == {"late"}
    assert {outcome.runs for outcome in timed} <= {80, 81}  # rounding
    assert timed[0].seconds == pytest.approx(0.1)
    most = float(np.nan_to_num(slow[0].overhead).max())
    assert landscape.spent()["measure"] < len(outcomes) * (LONGEST_TIMING + 0.2 + most)


def test_work_is_charged_by_counters_and_repeats_itself(space: SpaceRecording) -> None:
    ends = []
    for _ in range(2):
        clock, events = SimulatedClock(), list[Event]()
        chosen = Charged.over(method("autotvm"), costs(), clock)
        landscape = SpaceLandscape(space, clock, chosen.make_evaluator(), 0)
        TuningLoop(landscape, chosen, Budget(trials=150), 0, PEAK_FLOPS, clock, events.append, lambda: "continue").run()
        ends.append(events[-1])
    assert ends[0] == ends[1]
    assert ends[0]["report"]["spent"]["search"] > 0.005
    assert ends[0]["report"]["search"]["fits"] > 0


def test_a_part_that_nobody_timed_is_told() -> None:
    with pytest.raises(LandscapeError, match="landscape calibrate"):
        Charged.over(method("autotvm"), Costs({}), SimulatedClock())


def test_what_is_loaded_or_fitted_before_the_first_slot_is_no_part_of_what_is_timed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A clock that moves by 100 s at the first call of an explorer, by 30 at the first fit of an operator and by 0.5 at each,
    and by a hundredth for each operator that a decision looks at."""
    clock, fitted, loaded = SimulatedClock(), set[int](), list[str]()
    observe, choose, explore = DynaTune.observe, DynaTune.choose, SimulatedAnnealing.explore

    def slow_at_first(self: DynaTune, progress: Progress) -> None:
        clock.advance(0.0 if progress.operator.index in fitted else 30.0)
        fitted.add(progress.operator.index)
        clock.advance(0.5)
        observe(self, progress)

    def looking(self: DynaTune, progress: Sequence[Progress], slot_seconds: float) -> Any:
        clock.advance(0.01 * len(progress))
        return choose(self, progress, slot_seconds)

    def loading(self: SimulatedAnnealing, *given: Any) -> Any:
        clock.advance(0.0 if loaded else 100.0)
        loaded.append("torch")
        return explore(self, *given)

    monkeypatch.setattr(DynaTune, "observe", slow_at_first)
    monkeypatch.setattr(DynaTune, "choose", looking)
    monkeypatch.setattr(SimulatedAnnealing, "explore", loading)
    chosen = METHODS["dynatune"]
    chosen = replace(chosen, parameters={"scheduler": {"sampling": {"steps": 12, "burn": 4, "samples": 20}}})
    found = calibrate("here", [chosen], clock.now)
    assert found.of("scheduler", chosen) == {"decision": pytest.approx(0.5), "decision_operator": pytest.approx(0.01)}
    assert found.of("explorer", chosen)["step"] == 0.0


def test_the_parts_of_the_presets_can_be_timed(tmp_path: Path) -> None:
    chosen = [METHODS[name] for name in ("dynatune", "random")]
    found = calibrate("here", chosen)
    for preset in chosen:
        for role, units in UNITS.items():
            assert set(found.of(role, preset)) == set(units)
    assert found.seconds[key_of("cost_model", METHODS["dynatune"])]["fit"] > 1e-4
    assert all(math.isfinite(s) and s >= 0 for part in found.seconds.values() for s in part.values())
    found.write(tmp_path / "costs.json")
    assert Costs.read(tmp_path / "costs.json") == found
