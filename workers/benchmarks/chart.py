"""Lines, points, bars and stacks as plain SVG."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from workers.benchmarks.interval import Interval
from workers.messages.whole import write_whole

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 900, 480, 70, 250, 40, 60
COLOURS = (
    "#1f6fb2", "#d1661b", "#2c8f4e", "#b03a6f", "#6b54b0", "#7a6a2f", "#1aa3a3", "#c43c3c", "#555555", "#8fb339", "#e0a800",
    "#9a6fd0",
)  # fmt: skip
DASHED, PALE = ' stroke-dasharray="5 3"', ' fill-opacity="0.45"'
"""Lines, and all else, of those for which no colour is left."""
LEAST_TICKS = 3
LETTER = 0.55
"""Width over size of a letter, roughly."""
Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Scale:
    """Values onto pixels, linear or logarithmic; a linear one begins at 0, and a logarithmic one may be less than a decade."""

    low: float
    high: float
    begin: float
    end: float
    log: bool

    @classmethod
    def of(cls, values: Sequence[float], begin: float, end: float, log: bool) -> Scale:
        high = max(values)
        if log:
            low = min(value for value in values if value > 0)
            return cls(low / 1.05, max(high, 1.2 * low) * 1.05, begin, end, True)
        return cls(0.0, (high or 1.0) * 1.05, begin, end, False)

    def place(self, value: float) -> float:
        if self.log:
            part = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        else:
            part = value / self.high
        return self.begin + part * (self.end - self.begin)

    def ticks(self) -> list[float]:
        if self.log:
            decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            for steps in ((1, 2, 5), range(1, 10), [0.2 * fifths for fifths in range(5, 50)]):
                found = [step * 10.0**decade for decade in decades for step in steps]
                ticks = [tick for tick in found if self.low <= tick <= self.high]
                if len(ticks) >= LEAST_TICKS:
                    break
            return ticks
        step = 10.0 ** math.floor(math.log10(self.high))
        step = next(size * step for size in (0.1, 0.2, 0.5, 1.0) if self.high / (size * step) <= 8 or size == 1.0)
        return [step * count for count in range(int(self.high / step) + 1)]


@dataclass(frozen=True)
class Line:
    """One run or series: its points, where it ends when that is beyond the last of them, and its bounds, (low, high) at each
    point. Equal names, one colour."""

    name: str
    points: Points
    end: float | None = None
    bounds: Points = ()


def lines(
    series: Sequence[Line],
    title: str,
    words: tuple[str, str],
    path: Path,
    log: tuple[bool, bool] = (True, True),
    stepped: bool = True,
) -> None:
    """`words` under and beside the axes; steps begin with a dot. Writes nothing when there are no points."""
    drawn = [line for line in series if line.points]
    if not drawn:
        return
    flat = [point for line in drawn for point in line.points]
    ends = [line.end for line in drawn if line.end is not None]
    across = Scale.of([*(x for x, _ in flat), *ends, 1e-9 * (not log[0])], LEFT, WIDTH - RIGHT, log[0])
    edges = [edge for line in drawn for pair in line.bounds for edge in pair]
    up = Scale.of([*(y for _, y in flat), *edges, 1e-9 * (not log[1])], HEIGHT - BOTTOM, TOP, log[1])
    names = list(dict.fromkeys(line.name for line in drawn))
    parts = [*_across(across), *_up(up, words[1]), _below(words[0])]
    for line in drawn:
        parts += _band(line, across, up, names.index(line.name), stepped)
    for line in drawn:
        parts += _drawn(line, across, up, names.index(line.name), stepped)
    _write(path, title, [*parts, *_legend(names, lined=True)])


def dots(series: Sequence[Line], title: str, words: tuple[str, str], path: Path) -> None:
    """The points of each series in its colour, none joined; both axes begin at 0."""
    flat = [point for line in series for point in line.points]
    if not flat:
        return
    across = Scale.of([x for x, _ in flat], LEFT, WIDTH - RIGHT, False)
    up = Scale.of([y for _, y in flat], HEIGHT - BOTTOM, TOP, False)
    names = list(dict.fromkeys(line.name for line in series))
    parts = [*_across(across), *_up(up, words[1]), _below(words[0])]
    for line in series:
        place = names.index(line.name)
        parts += [
            f'<circle cx="{across.place(x):.1f}" cy="{up.place(y):.1f}" r="2.5" {_fill(place)}/>'
            for x, y in line.points
        ]
    _write(path, title, [*parts, *_legend(names)])


def bars(groups: Mapping[str, Mapping[str, Interval]], title: str, word: str, path: Path) -> None:
    """Groups of bars with their intervals, and a line at 1."""
    names = list(dict.fromkeys(name for group in groups.values() for name in group))
    if not names:
        return
    drawn = [interval for group in groups.values() for interval in group.values()]
    shown = [value for interval in drawn for value in (interval.median, *(interval.bounds or ()))]
    up = Scale.of([*shown, 1.0], HEIGHT - BOTTOM, TOP, False)
    parts = [*_up(up, word)]
    room = (WIDTH - RIGHT - LEFT) / len(groups)
    width = 0.8 * room / len(names)
    for column, (label, group) in enumerate(groups.items()):
        left = LEFT + column * room + 0.1 * room
        parts.append(_label(left + 0.4 * room, label))
        for place, name in enumerate(names):
            if name in group:
                parts += _bar(left + place * width, width, group[name], up, place)
    parts.append(_rule(up.place(1.0)))
    _write(path, title, [*parts, *_legend(names)])


def stacks(columns: Mapping[str, Mapping[str, float]], title: str, path: Path) -> None:
    """Shares that add up to 1, a column a name."""
    parts_named = list(dict.fromkeys(part for column in columns.values() for part in column))
    if not parts_named:
        return
    up = Scale(0.0, 1.0, HEIGHT - BOTTOM, TOP, False)
    parts = [*_up(up, "share")]
    room = (WIDTH - RIGHT - LEFT) / len(columns)
    for number, (label, column) in enumerate(columns.items()):
        left, bottom = LEFT + number * room + 0.1 * room, 0.0
        parts.append(_label(left + 0.4 * room, label))
        for place, part in enumerate(parts_named):
            share = column.get(part, 0.0)
            y, height = up.place(bottom + share), up.place(bottom) - up.place(bottom + share)
            parts.append(
                f'<rect x="{left:.1f}" y="{y:.1f}" width="{0.8 * room:.1f}" height="{height:.1f}" {_fill(place)} '
                f'stroke="white" stroke-width="0.5"><title>{escape(part)} {share:.1%}</title></rect>'
            )
            bottom += share
    _write(path, title, [*parts, *_legend(parts_named[:20])])


def _bar(left: float, width: float, interval: Interval, up: Scale, place: int) -> Iterator[str]:
    top, bottom, middle = up.place(interval.median), up.place(0.0), left + width / 2
    yield (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{0.9 * width:.1f}" height="{bottom - top:.1f}" '
        f"{_fill(place)}><title>{interval}</title></rect>"
    )
    if interval.bounds is not None:
        low, high = (up.place(bound) for bound in interval.bounds)
        yield f'<line x1="{middle:.1f}" x2="{middle:.1f}" y1="{low:.1f}" y2="{high:.1f}" stroke="black"/>'


def _fill(place: int) -> str:
    return f'fill="{COLOURS[place % len(COLOURS)]}"{PALE if place >= len(COLOURS) else ""}'


def _corners(points: Points, across: Scale, up: Scale, stepped: bool) -> list[tuple[float, float]]:
    """In pixels."""
    corners: list[tuple[float, float]] = []
    for x, y in ((across.place(x), up.place(y)) for x, y in points):
        if stepped and corners:
            corners.append((x, corners[-1][1]))
        corners.append((x, y))
    return corners


def _band(line: Line, across: Scale, up: Scale, place: int, stepped: bool) -> Iterator[str]:
    """Between the bounds, under the lines."""
    if not line.bounds:
        return
    low, high = (
        _corners([(x, pair[side]) for (x, _), pair in zip(line.points, line.bounds, strict=True)], across, up, stepped)
        for side in (0, 1)
    )
    text = " ".join(f"{x:.1f},{y:.1f}" for x, y in (*low, *reversed(high)))
    yield f'<polygon points="{text}" fill="{COLOURS[place % len(COLOURS)]}" fill-opacity="0.13"/>'


def _drawn(line: Line, across: Scale, up: Scale, place: int, stepped: bool) -> Iterator[str]:
    colour = COLOURS[place % len(COLOURS)]
    corners = _corners(line.points, across, up, stepped)
    if stepped:
        yield f'<circle cx="{corners[0][0]:.1f}" cy="{corners[0][1]:.1f}" r="3" fill="{colour}"/>'
    if line.end is not None:
        corners.append((max(across.place(line.end), corners[-1][0]), corners[-1][1]))
    dash = DASHED if place >= len(COLOURS) else ""
    text = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
    yield f'<polyline points="{text}" fill="none" stroke="{colour}" stroke-width="1.6"{dash}/>'


def _across(scale: Scale) -> Iterator[str]:
    for tick in scale.ticks():
        x = scale.place(tick)
        yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#ddd"/>'
        yield f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{tick:g}</text>'


def _up(scale: Scale, word: str) -> Iterator[str]:
    for tick in scale.ticks():
        y = scale.place(tick)
        yield f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>'
    middle = (TOP + HEIGHT - BOTTOM) / 2
    yield f'<text transform="translate(18 {middle}) rotate(-90)" text-anchor="middle">{escape(word)}</text>'


def _below(word: str) -> str:
    return f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 22}" text-anchor="middle">{escape(word)}</text>'


def _label(x: float, text: str) -> str:
    y = HEIGHT - BOTTOM + 14
    return f'<text x="{x:.1f}" y="{y}" text-anchor="end" transform="rotate(-25 {x:.1f} {y})">{escape(text)}</text>'


def _rule(y: float) -> str:
    return f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="black" stroke-dasharray="4 3"/>'


def _legend(names: Sequence[str], lined: bool = False) -> Iterator[str]:
    for place, name in enumerate(names):
        y, x = TOP + 10 + 18 * place, WIDTH - RIGHT + 15
        size = min(11.0, (RIGHT - 40) / (LETTER * len(name)))  # of long names as small as they need
        yield f'<text x="{x + 20}" y="{y}" font-size="{size:.1f}">{escape(name)}</text>'
        if lined and place >= len(COLOURS):
            stroke = f'stroke="{COLOURS[place % len(COLOURS)]}" stroke-width="2.5"{DASHED}'
            yield f'<line x1="{x}" x2="{x + 14}" y1="{y - 5}" y2="{y - 5}" {stroke}/>'
            continue
        yield f'<rect x="{x}" y="{y - 9}" width="14" height="8" {_fill(place)}/>'


def _write(path: Path, title: str, parts: Sequence[str]) -> None:
    text = "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="11">',
            '<rect width="100%" height="100%" fill="white"/>',
            f'<text x="{LEFT}" y="22" font-size="14">{escape(title)}</text>',
            *parts,
            "</svg>\n",
        ]
    )
    write_whole(path, text)
