"""Filters for numbers, and the few drawings that the server makes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django import template
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.core import clock
from apps.dashboard import humans, words
from apps.dashboard.plot import monotone

register = template.Library()
_NAMES = (
    "latency", "duration", "ratio", "faster", "slower", "count", "size", "flops", "rate", "bandwidth", "whole", "percent",
    "short", "shortened", "moment", "stem",
)  # fmt: skip
for _name in _NAMES:
    register.filter(_name, getattr(humans, _name))
register.simple_tag(humans.latency, name="spread")
register.filter("again", words.again)
register.filter("of_state", words.of_state)
register.filter("ordinary", words.ordinary)
register.filter("before", words.before)
register.filter("begun_with", words.begun_with)
register.filter("is_gpu", words.is_gpu)
register.filter("units", words.units)
register.filter("target_words", words.target_words)

SPARK_WIDTH, SPARK_HEIGHT = 96, 24


@register.simple_tag
def state(value: str, reason: str = "", word: str = "") -> SafeString:
    """A state as a word and a shape."""
    shape = "stopped" if value == "done" and reason == "stopped" else value
    said = word or words.STATES.get(shape, shape)
    return format_html(
        '<span class="state" data-state="{}"><svg class="shape" aria-hidden="true"><use href="{}#{}"/></svg>{}</span>',
        value,
        static("img/states.svg"),
        shape,
        said,
    )


@register.simple_tag
def spark(points: Sequence[tuple[float, float]]) -> SafeString:
    """A step line of the best so far at (clock, latency), the latency on a logarithmic scale."""
    if len(points) < 2:
        return SafeString("")
    first, last = points[0][0], points[-1][0]
    line, _, _ = monotone(points)
    values = [math.log(max(value, 1e-15)) for _, value in line]  # a child may tell anything
    low, high = min(values), max(values)
    path, before = [], 0.0
    for number, ((time, _), value) in enumerate(zip(points, values, strict=True)):
        x = SPARK_WIDTH * (time - first) / ((last - first) or 1)
        y = 2 + (SPARK_HEIGHT - 4) * (high - value) / ((high - low) or 1)
        if number:
            path.append(f"{x:.1f},{before:.1f}")
        path.append(f"{x:.1f},{y:.1f}")
        before = y
    return format_html(
        '<svg class="spark" viewBox="0 0 {} {}" preserveAspectRatio="none" aria-hidden="true">'
        '<polyline points="{}"/></svg>',
        SPARK_WIDTH,
        SPARK_HEIGHT,
        " ".join(path),
    )


@register.simple_tag
def bar(value: float, most: float) -> SafeString:
    """A bar of the histogram; one that is longer than the longest is cut, which a gap near its end shows."""
    width = f"{min(100.0, 100 * value / most):.2f}" if most else "0"
    cut = SafeString('<rect class="cut" x="94%" width="3%" height="8"/>') if most and value > most else ""
    return format_html('<svg aria-hidden="true"><rect width="{}%" height="8" rx="2"/>{}</svg>', width, cut)


@register.filter
def ago(when: datetime) -> str:
    """How long ago that was."""
    return humans.ago((clock.now() - when).total_seconds())


@register.filter
def shape_of(sizes: Sequence[Any] | None) -> str:
    """1 x 3 x 224 x 224; an open dimension by its name, or ?."""
    if sizes is None:
        return "any shape"
    return " x ".join("?" if size is None else str(size) for size in sizes) or "a single number"
