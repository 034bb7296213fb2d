"""One run as the figures of a cell, folded from its events: the same for a replay and a live run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from workers.benchmarks.curve import settle, summed
from workers.messages.believed import Believed, changed_by_belief
from workers.messages.causes import UNBUILT
from workers.messages.events import Event
from workers.messages.foretold import foretold

Truth = Callable[[dict[str, Any]], float]
Program = tuple[int, ...]
"""A sketch and the choices that were asked of it."""
INTERVALS = ("foretold", "held", "without_width", "gained", "gained_held")
"""Slots of whose end something was told with a chance (`messages.foretold`), those that came so, those of which it was told
that nothing would come, those that brought something, and those of these that came so: where most bring nothing an interval
without width holds as often."""
ROUNDING = 1e-5
"""Of a limit that is told in six digits."""


@dataclass(frozen=True)
class Told:
    """One measurement: its figure is (seconds, true time); its place (clock, trials, seconds spent in the operator,
    steps walked); what was made of the program that was asked for is a sketch and choices too, as text."""

    program: Program
    figure: tuple[float, float]
    place: tuple[float, int, float, int]
    made: str
    round: int


class Tally:
    """Hears a run's events in order. `truth` gives the time of a measured program without the luck of its measurement;
    `steps` how many an operator's explorers have walked.

    What is best is what is `Believed`: when another round makes a lucky best slower, or another one the best, the operator's
    time follows, and its curve was never below that.
    """

    def __init__(
        self,
        operators: list[dict[str, Any]],
        truth: Truth | None = None,
        steps: Callable[[int], int] = lambda operator: 0,
    ) -> None:
        count = len(operators)
        self._operators, self._steps = operators, steps
        self._truth = truth or (lambda measurement: measurement["seconds"])
        self._told: list[list[Told]] = [[] for _ in operators]
        self._trials, self._seconds, self._slots = [0] * count, [0.0] * count, [0] * count
        self._clock = 0.0
        self._believed = self._unlike = self._both = 0
        self._intervals = dict.fromkeys(INTERVALS, 0)
        self._configurations = [0] * count
        self.choices: list[int] = []
        self._finished: Event = {}

    def hear(self, event: Event) -> None:
        if event["kind"] == "batch":
            self._batch(event)
        elif event["kind"] == "slot":
            self._slot(event)
        elif event["kind"] == "finished":
            self._finished = event

    def figures(self) -> dict[str, Any]:
        """`curve`: (seconds of tuning, latency in s) where it fell. An operator's `series`: (trials, seconds spent in
        it, steps walked, its best in s) where it fell. And INTERVALS."""
        report = self._finished.get("report", {})
        rows = [
            {
                "name": operator["name"],
                "weight": operator["weight"],
                "trials": self._trials[i],
                "seconds": round(self._seconds[i], 4),
                "slots": self._slots[i],
            }
            for i, operator in enumerate(self._operators)
        ]
        found = {
            "reason": self._finished.get("reason", "cut off"),
            "seconds": self._clock,
            "trials": sum(self._trials),
            "operators": rows,
            "spent": report.get("spent", {}),
            "search": report.get("search", {}),
            "slots": len(self.choices),
            "decided_by_belief": self._believed,
            "differs_from_round_robin": self._unlike,
            "belief_differs": self._both,
            **self._intervals,
        }
        return _drawn(found, [_settled((*told.place, told.figure[1]) for told in bests) for bests in self._bests()])

    def bests(self) -> list[list[list[Any]]]:
        """By operator, each program that was its best for a while: its place in the run, and "sketch choices"."""
        return [[[*told.place, told.made] for told in bests] for bests in self._bests()]

    def _bests(self) -> list[list[Told]]:
        return [_bests(told) for told in self._told]

    def _slot(self, event: Event) -> None:
        operator, decision = event["operator"], event["decision"]
        self.choices.append(operator)
        self._slots[operator] += 1
        self._believed += bool(decision.get("decided_by_belief"))
        self._unlike += bool(decision.get("differs_from_round_robin"))
        self._both += changed_by_belief(decision)
        told = foretold(decision.get("belief"), self._configurations[operator], event["before"])
        if told is not None and event["trials"] and event["after"] is not None:
            held, gained = told.holds(event["after"]), event["after"] < event["before"]
            came = (True, held, told.low >= told.before * (1 - ROUNDING), gained, gained and held)
            for name, counts in zip(INTERVALS, came, strict=True):
                self._intervals[name] += counts

    def _batch(self, event: Event) -> None:
        measured = event["measurements"]
        took: dict[int, float] = {}
        for m in measured:
            took[m["operator"]] = took.get(m["operator"], 0.0) + m["build_seconds"] + m["measure_seconds"]
        total = sum(took.values())
        for operator, seconds in took.items():  # several in the warm-up, and where a twin's best rides along
            share = seconds / total if total else 1 / len(took)
            self._seconds[operator] += share * (event["clock"] - self._clock)
        self._clock = event["clock"]
        for measurement in measured:
            self._measurement(measurement)

    def _measurement(self, measurement: dict[str, Any]) -> None:
        operator = measurement["operator"]
        built = measurement["cause"] not in UNBUILT
        self._trials[operator] += built
        self._configurations[operator] += built and not measurement["round"]
        if measurement["seconds"] is None:
            return
        program = measurement["sketch"], *measurement.get("asked", measurement["choices"])
        spent = round(self._seconds[operator], 4)
        place = round(self._clock, 4), self._trials[operator], spent, self._steps(operator)
        figure = measurement["seconds"], self._truth(measurement)
        made = " ".join(map(str, (measurement["sketch"], *measurement["choices"])))
        self._told[operator].append(Told(program, figure, place, made, measurement["round"]))


def retold(figures: dict[str, Any], truths: Sequence[Sequence[float]]) -> dict[str, Any]:
    """`figures` as they would have been with other true times: of each operator those of its `bests`, in that order. What was
    given up for something slower, by the luck of a figure, was not reached for good and does not count."""
    rows = zip(figures["operators"], truths, strict=True)
    return _drawn(
        figures,
        [
            _settled((*place, truth) for (*place, _), truth in zip(row["bests"], found, strict=True))
            for row, found in rows
        ],
    )


def _drawn(figures: dict[str, Any], series: Sequence[list[list[Any]]]) -> dict[str, Any]:
    """`figures` with each operator's rows (*place, true time), and with what the network's curve is by them."""
    operators = figures["operators"]
    curve = summed(series, [row["weight"] for row in operators])
    drawn = [
        {**row, "best": settled[-1][-1] if settled else None, "series": [one[1:] for one in settled]}
        for row, settled in zip(operators, series, strict=True)
    ]
    return {**figures, "latency": curve.final, "curve": [list(point) for point in curve.points], "operators": drawn}


def _bests(measured: Sequence[Told]) -> list[Told]:
    """Of an operator what was its best, from when on. A figure counts from when it was told, as the slower of what it was then
    and of what it is at the end."""
    last = {told.program: told for told in measured}
    believed, figures = Believed[Program](), dict[Program, tuple[float, float]]()
    bests: list[Told] = []
    for told in measured:
        figures[told.program] = max(told.figure, last[told.program].figure)
        believed.add(told.program, told.figure[0], told.round)
        best = believed.best or told.program
        if not bests or (bests[-1].program, bests[-1].figure) != (best, figures[best]):
            bests.append(replace(last[best], figure=figures[best], place=told.place))
    return bests


def _settled(rows: Iterable[Sequence[Any]]) -> list[list[Any]]:
    """Rows (*place, true time of an operator's best) where that fell."""
    found: list[list[Any]] = []
    for row in rows:
        settle(found, row)
    return found
