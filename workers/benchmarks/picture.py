"""The curves of one comparison as SVG: seconds of tuning across, milliseconds up, both logarithmic."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from workers.benchmarks.curve import Curve

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 840, 480, 70, 150, 40, 50
COLOURS = ("#1f6fb2", "#d1661b", "#2c8f4e", "#b03a6f", "#6b54b0", "#7a6a2f")
FONT = 'font-family="sans-serif" font-size="12"'


@dataclass(frozen=True)
class Line:
    """One run: its arm, its curve, and the seconds at which its tuning ended."""

    arm: str
    curve: Curve
    end: float


class Axis:
    """A logarithmic scale from `low` to `high` onto pixels, with ticks at 1, 2 and 5."""

    def __init__(self, values: Sequence[float], begin: float, end: float) -> None:
        low, high = min(values), max(values)
        self.low, self.high = low / 1.05, max(high, 1.2 * low) * 1.05
        self._begin, self._end = begin, end

    def place(self, value: float) -> float:
        part = (math.log(value) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        return self._begin + part * (self._end - self._begin)

    def ticks(self) -> Iterator[float]:
        for decade in range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1):
            for step in (1, 2, 5):
                if self.low <= step * 10.0**decade <= self.high:
                    yield step * 10.0**decade


def draw(lines: Sequence[Line], title: str, path: Path) -> None:
    """One stepped line a run, one colour an arm; writes nothing when no run has a curve."""
    drawn = [line for line in lines if line.curve.points]
    if not drawn:
        return
    partial = path.with_suffix(".partial")
    partial.write_text(_svg(drawn, title), encoding="utf-8")
    partial.replace(path)


def _svg(lines: Sequence[Line], title: str) -> str:
    points = [point for line in lines for point in line.curve.points]
    across = Axis([seconds for seconds, _ in points] + [line.end for line in lines], LEFT, WIDTH - RIGHT)
    up = Axis([1e3 * latency for _, latency in points], HEIGHT - BOTTOM, TOP)
    arms = sorted({line.arm for line in lines})
    colours = {arm: COLOURS[place % len(COLOURS)] for place, arm in enumerate(arms)}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {FONT}>',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{LEFT}" y="20" font-size="14">{escape(title)}</text>',
        *_grid(across, up),
        *(_drawn(line, across, up, colours[line.arm]) for line in lines),
    ]
    for place, arm in enumerate(arms):
        y = TOP + 10 + 20 * place
        parts.append(f'<rect x="{WIDTH - RIGHT + 15}" y="{y - 9}" width="14" height="4" fill="{colours[arm]}"/>')
        parts.append(f'<text x="{WIDTH - RIGHT + 35}" y="{y - 3}">{escape(arm)}</text>')
    return "\n".join([*parts, "</svg>\n"])


def _grid(across: Axis, up: Axis) -> Iterator[str]:
    for tick in across.ticks():
        x = across.place(tick)
        yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#ddd"/>'
        yield f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{tick:g}</text>'
    for tick in up.ticks():
        y = up.place(tick)
        yield f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>'
    yield f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 12}" text-anchor="middle">seconds of tuning</text>'
    middle = (TOP + HEIGHT - BOTTOM) / 2
    words = "sum over the operators, ms"
    yield f'<text transform="translate(18 {middle}) rotate(-90)" text-anchor="middle">{words}</text>'


def _drawn(line: Line, across: Axis, up: Axis, colour: str) -> str:
    """Steps down where the sum became smaller, a dot where every operator had been measured, level to the end."""
    corners: list[str] = []
    level = 0.0
    for number, (seconds, latency) in enumerate(line.curve.points):
        x, y = across.place(seconds), up.place(1e3 * latency)
        corners += [f"{x:.1f},{level:.1f}"] if number else []
        corners.append(f"{x:.1f},{y:.1f}")
        level = y
    corners.append(f"{across.place(max(line.end, line.curve.points[-1][0])):.1f},{level:.1f}")
    first_x, first_y = corners[0].split(",")
    return (
        f'<polyline points="{" ".join(corners)}" fill="none" stroke="{colour}" stroke-width="1.6"/>'
        f'<circle cx="{first_x}" cy="{first_y}" r="3" fill="{colour}"/>'
    )
