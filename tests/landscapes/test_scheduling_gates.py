"""What DynaTune's belief and bound are worth on landscapes of curves, and whether what is told before slots comes about."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.landscapes.played import Cell, Once, Play, anew, curve_source, either, landscapes
from workers.benchmarks.curve import Curve
from workers.benchmarks.methods.best import NEAR
from workers.benchmarks.methods.replayed import CURVE, Source
from workers.benchmarks.tally import INTERVALS
from workers.engine.belief import FAST, Belief, Forecast, Records
from workers.engine.ports import Progress
from workers.engine.scheduler import Rule
from workers.engine.scheduler.dynatune import DynaTune, Index

SEEDS = range(2)
"""Of sixteen on the synthetic curves each by itself told DynaTune from its mutations."""
LEAD, LEAD_RECORDED = 0.66, 0.5
"""Least part of the oracle's lead over turns. On the synthetic curves sixteen seeds of DynaTune had 0.71 to 0.87, without the
belief's spread -0.21 to 0.62, with a bonus of milliseconds 0.34 to 0.60. On the recorded ones, of ResNet-18 and SqueezeNet, six
seeds had 0.51 to 0.90, a median of 0.78; who knows the work alone (linear) or the last slopes (gradient) 0.15 to 0.60, and a
bonus of milliseconds 0.05 to 0.43."""
TOLD = range(12)
"""Seeds of a run with a belief: of each about 45 slots are foretold."""
WIDE = 0.05
"""Least share of the slots that brought something whose end was foretold."""


@pytest.fixture(scope="module", params=landscapes(CURVE))
def curves(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Source:
    return curve_source(request.param, tmp_path_factory.mktemp("gates"))


@pytest.fixture(scope="module")
def once() -> Once:
    return Once()


def level(cell: Cell, until: float) -> float:
    """Mean of log2 of the latency from the first whole one `until` so many seconds of tuning."""
    curve = Curve.of(cell["curve"])
    times = np.linspace(curve.complete or 0.0, until, 400)
    return float(np.mean(np.log2([curve.at(float(moment)) or curve.points[0][1] for moment in times])))


def lead(once: Once, source: Source, arm: str, mutated: bool = False, best: str = "oracle") -> float:
    """The part of the oracle's lead over turns that an arm has until turns are within NEAR of the end: 0 is turns, 1 who knows
    the curves, or is taken for the `best`; median of the seeds. A mutation is played until then, and the arm to its end, for
    others to ask of it too."""
    found = []
    for seed in SEEDS:
        whole = source.trials(source.longest)
        turns, oracle = (once(source, name, seed, whole) for name in ("round_robin", best))
        until = Curve.of(turns["curve"]).time_to((1 + NEAR) * turns["latency"])
        assert until is not None
        enough = math.ceil(1.25 * turns["trials"] * until / turns["seconds"])
        mine = anew(source, arm, seed, enough) if mutated else once(source, arm, seed, whole)
        assert mine["seconds"] >= until
        by_turns, by_oracle, by_arm = (level(cell, until) for cell in (turns, oracle, mine))
        found.append((by_turns - by_arm) / (by_turns - by_oracle))
    return statistics.median(found)


def ahead(once: Once, source: Source, mutated: bool = False) -> bool:
    """The gate."""
    return lead(once, source, "dynatune", mutated) > either(source, LEAD, LEAD_RECORDED)


def unbeaten(once: Once, source: Source, best: str = "oracle") -> bool:
    """The gate: DynaTune is not far ahead of who knows the curves."""
    return lead(once, source, "dynatune", best=best) < 1.1


def behind_turns(once: Once, source: Source, arm: str) -> bool:
    """The gate of one operator after the other."""
    return lead(once, source, arm) < 0


def ruled(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    """From now on a rule is another than it was told to be."""
    made = DynaTune.__init__

    def changed(self: DynaTune, seed: int, peak_flops: float, rule: Rule) -> None:
        made(self, seed, peak_flops, replace(rule, **changes))

    monkeypatch.setattr(DynaTune, "__init__", changed)


def test_a_belief_is_clearly_ahead_of_turns(once: Once, curves: Source) -> None:
    assert ahead(once, curves)
    assert unbeaten(once, curves)
    assert behind_turns(once, curves, "sequential")


@pytest.mark.mutation
def test_a_sequence_that_is_ahead_of_turns_is_noticed(once: Once, curves: Source) -> None:
    assert not behind_turns(once, curves, "dynatune")


@pytest.mark.mutation
@pytest.mark.parametrize("curves", landscapes(CURVE)[1:], indirect=True)
def test_an_oracle_that_knows_the_work_alone_is_noticed(once: Once, curves: Source) -> None:
    """Not on the synthetic curves, where work says next to nothing."""
    assert not unbeaten(once, curves, best="linear")


@pytest.mark.mutation
def test_a_constant_ucb_is_noticed(once: Once, curves: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    # Behind turns, by 0.3 of the oracle's lead on ResNet-18's curves and by 0.9 on the synthetic ones.
    def constant(self: DynaTune, one: Progress, slots: int) -> Index:
        return Index(one.operator.index, 0.0, 0.0, one.slots == 0, 0.0)

    monkeypatch.setattr(DynaTune, "_index", constant)
    # Who reads no belief needs none: fitting them would be all the time that this takes.
    monkeypatch.setattr(DynaTune, "observe", lambda self, progress: None)
    assert not ahead(once, curves, mutated=True)


@pytest.mark.mutation
def test_a_bonus_of_milliseconds_is_noticed(once: Once, curves: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """The paper's: it is round-robin on networks of a few milliseconds, with 0.05 of the lead on SqueezeNet's 2.4 and 0.33 and
    0.15 on ResNet-18's 8.9. Sampled in a third of the time, in which the product's rule had the lead that it has."""
    ruled(monkeypatch, scale="millisecond", open=False, sampling=replace(FAST, steps=24, burn=8, samples=60, again=24))
    assert not ahead(once, curves, mutated=True)


@pytest.mark.mutation
@pytest.mark.parametrize("curves", landscapes(CURVE)[:1], indirect=True)
def test_a_belief_without_spread_is_noticed(once: Once, curves: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither of the curve nor of jumps: what is expected decides alone. On recorded curves it is noticed by most seeds, 0.22
    to 0.35 of three of ResNet-18 and 0.76 of one, which are too dear to play."""
    forecast = Belief.forecast

    def sure(self: Belief, ahead: float) -> Forecast | None:
        found = forecast(self, ahead)
        if found is None:
            return None
        return replace(found, spread=0.0, values=np.full(1, found.mean), gains=np.full(1, found.rise))

    monkeypatch.setattr(Belief, "forecast", sure)
    ruled(monkeypatch, surprise=0.0)
    assert not ahead(once, curves, mutated=True)


def told(play: Play, source: Source) -> dict[str, int]:
    """What came of the intervals of 80 % that were told before slots, see `Tally`."""
    whole = source.trials(source.longest)
    cells = [play(source, "dynatune", seed, whole) for seed in either(source, TOLD, SEEDS)]
    return {name: sum(cell[name] for cell in cells) for name in INTERVALS}


def calibrated(told: Mapping[str, int]) -> bool:
    """Wanted are 70 to 90 % of all slots, and some of those that brought something. Of 1,318 slots of two runs of SqueezeNet
    86 % brought nothing: an interval without width holds as often, and says nothing. 86 % of those that were told had none;
    the others made it 88 % of all slots and 12 % of those that brought something (the synthetic one: 82 % and 35 %). Two
    seeds are 500 to 900 slots: their share may be two standard errors off (ResNet-18's first two hold 90.5 %, five 88 %)."""
    error = 2 * math.sqrt(0.1 * 0.9 / told["foretold"])
    held, of_gained = told["held"] / told["foretold"], told["gained_held"] / told["gained"]
    return told["foretold"] >= 500 and 0.7 - error <= held <= 0.9 + error and of_gained >= WIDE


def test_what_is_told_of_a_slot_with_a_chance_of_80_percent_comes_about_as_often(once: Once, curves: Source) -> None:
    assert calibrated(told(once, curves))


@pytest.mark.mutation
@pytest.mark.parametrize("curves", landscapes(CURVE)[:1], indirect=True)
@pytest.mark.parametrize("share", [1.0, 0.0], ids=["no", "any"])
def test_an_interval_of_no_width_or_of_any_is_noticed(
    curves: Source, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is told of a slot decides nothing: it may be sampled in a tenth of the time."""
    monkeypatch.setattr(Records, "least", lambda self, curve, ahead, chance: share * curve[-1])
    ruled(monkeypatch, sampling=replace(FAST, steps=24, burn=8, samples=60, again=24))
    found = told(anew, curves)
    assert found["foretold"] >= 500
    assert not calibrated(found)
