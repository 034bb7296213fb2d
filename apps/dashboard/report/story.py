"""The chart of a run: latency of the best so far with its baselines, and on the same axis which operator got each slot."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apps.dashboard import humans
from apps.dashboard.plot import Plot, apart, monotone, stepped
from apps.tuning.thinning import thinned

POINTS = 1000
FIELD = 300
"""Where the curve's field ends and the lanes begin."""
FAR = 3
"""What is so many times over the curve would press it flat: it is named, or marked, at the upper edge, as on the run's page."""
ROW, GAP = 18, 12
COLOURS = 8
OTHERS = 8
"""The colour, and the lane, of all operators that have none of their own."""

Told = Mapping[str, Any]
"""An operator as a snapshot tells it."""


@dataclass(frozen=True)
class Line:
    """A latency to compare with: its own height, that of its words, and how it is drawn."""

    name: str
    seconds: float
    y: float
    label: float
    kind: str


@dataclass(frozen=True)
class Lane:
    """Slots of one operator, or of all others, as a path."""

    name: str
    colour: int
    y: float
    slots: str


@dataclass(frozen=True)
class Story:
    """`points` are of the line of the best so far, `again` places of what bests came to that were measured again, `wholes` of
    verified end-to-end measurements."""

    plot: Plot
    points: str
    again: Sequence[tuple[float, float]]
    wholes: Sequence[tuple[float, float]]
    lines: Sequence[Line]
    lanes: Sequence[Lane]


def story(drawn: Mapping[str, Any], colours: Mapping[int, int]) -> Story | None:
    """Of a snapshot; None without a latency."""
    curve = [(clock, seconds) for clock, seconds in thinned(drawn["curve"], POINTS)]
    if not curve:
        return None
    line, again, corrected = monotone(curve)
    whole = [point for point in drawn["end_to_end"] if point["seconds"] and point["verified"]]
    wholes = [(point["clock"], point["seconds"]) for point in whole]
    named = _named(drawn, wholes[-1][1] if wholes else None, corrected)
    operators = {operator["index"]: operator for operator in drawn["operators"]}
    names = _names(operators, colours)
    foot = FIELD + GAP + ROW * len(names)
    highest = max(seconds for _, seconds in [*curve, (0.0, drawn["run"]["budget"]["latency"] or 0.0)])
    highest = max([highest, *(seconds for _, seconds in wholes if seconds <= FAR * highest)])
    heights = [seconds for _, seconds in [*curve, *wholes]] + [seconds for _, seconds, _ in named]
    near = [seconds for seconds in heights if seconds <= FAR * highest]
    plot = Plot.around(drawn["run"]["clock"], near, bottom=FIELD, foot=foot, height=foot + 28)
    labels = apart([plot.y(seconds) for _, seconds, _ in named], plot.bottom)
    return Story(
        plot=plot,
        points=plot.path(stepped(line)),
        again=[(plot.x(clock), plot.y(seconds)) for clock, seconds in again],
        wholes=[(plot.x(clock), plot.y(seconds)) for clock, seconds in wholes],
        lines=[
            Line(name, seconds, plot.y(seconds), label, "far" if seconds > FAR * highest else kind)
            for (name, seconds, kind), label in zip(named, labels, strict=True)
        ],
        lanes=_lanes(drawn["slots"], names, colours, plot),
    )


def coloured(operators: Sequence[Told]) -> dict[int, int]:
    """As static/js/run/state.js: a colour for each of the dearest when all were measured for the first time. Those of which
    nothing ran come last."""
    open_ = any(not (one["best"] or one["given_up"]) for one in operators)
    if open_ or not any(operator["best"] for operator in operators):
        return {}

    def cost(operator: Told) -> float:
        first: float = operator["spark"][0][1] if operator["spark"] else operator["best"] or 0.0
        return float(operator["weight"]) * first

    ranked = sorted(operators, key=cost, reverse=True)
    return {operator["index"]: rank for rank, operator in enumerate(ranked[:COLOURS])}


def _named(drawn: Mapping[str, Any], whole: float | None, corrected: bool) -> list[tuple[str, float, str]]:
    """(name, seconds, kind) of what has words at the right edge, the slowest first."""
    target = drawn["run"]["budget"]["latency"]
    lines = [(line["name"], line["seconds"], "dashed") for line in drawn["baselines"] if line["seconds"]]
    if target:
        lines.append(("your target", target, "dashed"))
    if whole:
        lines.append(("end to end", whole, "measured"))
    lines.append(("measured again" if corrected else "best so far", drawn["curve"][-1][1], "strong"))
    return sorted(lines, key=lambda line: -line[1])


def _names(operators: Mapping[int, Told], colours: Mapping[int, int]) -> dict[int, str]:
    """What stands beside each lane, by colour, from above."""
    names = {colour: titled(operators[index]) for index, colour in colours.items()}
    rest = len(operators) - len(names)
    word = ("other" if names else "operator") + ("s" if rest > 1 else "")
    return names | ({OTHERS: f"{rest} {word}"} if rest else {})


def titled(operator: Told) -> str:
    """An operator's number and name."""
    return f"#{operator['index']} {humans.short(operator['name'])}"


def _lanes(
    slots: Sequence[Sequence[Any]], names: Mapping[int, str], colours: Mapping[int, int], plot: Plot
) -> list[Lane]:
    heights = {colour: plot.bottom + GAP + ROW * (lane + 0.5) for lane, colour in enumerate(names)}
    paths: defaultdict[int, list[str]] = defaultdict(list)
    for _, operator, began, ended, *_ in slots:
        colour = colours.get(operator, OTHERS)
        left, right = plot.x(began), plot.x(ended)
        # A hair of space tells one slot from the next, as far as there is room for it.
        right = right - 0.5 if right - left > 4 else max(right, left + 1)
        paths[colour].append(f"M{left:.1f} {heights[colour]:.1f}H{right:.1f}")
    return [Lane(name, colour, heights[colour], "".join(paths[colour])) for colour, name in names.items()]
