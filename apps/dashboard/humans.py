"""Numbers as people read them; the same rules as static/js/format.js."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeGuard

from apps.core import amounts

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
MOST_PLACES = 9
INPUTS = 2
"""As many have their sizes told."""
NONE = "–"
"""Also for what a row lacks: a template hands an empty text over for it."""


def significant(value: float, digits: int = 3) -> str:
    """Three significant digits, trailing zeros kept: 2.78, 0.0340, 123."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else NONE
    rounded = float(f"{value:.{digits - 1}e}")
    places = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
    return f"{rounded:.{places}f}"


def given(value: float) -> str:
    """As it was entered, without what binary fractions add: 0.25, 15."""
    return f"{value:.9g}"


def _number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and math.isfinite(value)


def _unit(seconds: float) -> tuple[float, str]:
    return next((unit for unit in _UNITS if abs(seconds) >= unit[0] * 0.9995), _UNITS[-1])


def latency(seconds: float | None, spread: float | None = None) -> str:
    """2.78 ms, or 2.78 ms ± 0.03: the spread to the place of the latency's last digit, or of its own first one."""
    if not _number(seconds):
        return NONE
    size, name = _unit(seconds)
    shown = significant(seconds / size)
    if not spread:
        return f"{shown} {name}"
    apart = spread / size
    places = max(len(shown.partition(".")[2]), min(MOST_PLACES, math.ceil(-math.log10(apart))))
    return f"{shown} {name} ± {apart:.{places}f}"


def duration(seconds: float | None) -> str:
    """3 min 20 s."""
    if not _number(seconds):
        return NONE
    whole = math.floor(seconds + 0.5)  # as JavaScript rounds
    hours, rest = divmod(whole, 3600)
    minutes, rest = divmod(rest, 60)
    if hours:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    if minutes:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    return f"{rest} s" if rest or not seconds else f"{significant(seconds, 2)} s"


def moment(when: datetime) -> str:
    """5 March 2026, 14:00 UTC."""
    at = when.astimezone(UTC)
    return f"{at.day} {at:%B %Y, %H:%M} UTC"


def ago(seconds: float) -> str:
    """3 h ago: the largest unit alone."""
    for size, unit in ((86400, "day"), (3600, "h"), (60, "min")):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {unit}{'s' if unit == 'day' and count > 1 else ''} ago"
    return "just now"


def ratio(value: float | None) -> str:
    """1.06 x."""
    return f"{significant(value)} x" if value and _number(value) else NONE


def slower(times: float | None) -> bool:
    """Whether what is so many times as fast takes longer, by more than rounding hides."""
    return times is not None and times < 0.995


def faster(times: float | None) -> str:
    """1.15 x faster; of what takes longer the inverse, 1.05 x slower."""
    if not times or not _number(times):
        return NONE
    if slower(times):
        return f"{significant(1 / times)} x slower"
    return f"{significant(max(1.0, times))} x faster"


def _scaled(value: float | None, unit: str) -> str:
    if not _number(value):
        return NONE
    for prefix in ("", "k", "M", "G", "T"):
        if abs(value) < 999.5 or prefix == "T":
            number = f"{value:.0f}" if not prefix else significant(value)
            return f"{number} {prefix}{unit}".rstrip()
        value /= 1000
    return NONE


def count(value: float | None) -> str:
    """1.24 M."""
    return _scaled(value, "")


def size(value: float | None) -> str:
    """4.96 MB."""
    if not _number(value):
        return NONE
    return amounts.shown(value)


def flops(value: float | None) -> str:
    """0.71 GFLOP as 710 MFLOP."""
    return _scaled(value, "FLOP")


def rate(value: float | None) -> str:
    """118 GFLOPS."""
    return _scaled(value, "FLOPS") if value else NONE


def bandwidth(value: float | None) -> str:
    """21.3 GB/s."""
    return _scaled(value, "B/s") if value else NONE


def whole(value: int | None) -> str:
    """12 345, with narrow spaces."""
    return f"{value:,}".replace(",", "\u202f") if _number(value) else NONE


def percent(share: float | None) -> str:
    """12.3 %, of a share of 1."""
    if not _number(share):
        return NONE
    return "< 0.1 %" if 0 < share < 0.001 else f"{100 * share:.1f} %"


def short(name: str) -> str:
    """An operator's name without what the compiler puts before nearly all of them."""
    return name.removeprefix("fused_")


def shortened(text: str, most: int) -> str:
    """At most so many characters, the middle left out: what begins alike is told apart by its end."""
    if len(text) <= most:
        return text
    kept = 2 * most // 5
    return f"{text[: most - 1 - kept].rstrip()}…{text[-kept:].lstrip()}"


def sizes(shapes: Mapping[str, Sequence[int]], dynamic: Iterable[Mapping[str, Any]] | None) -> str:
    """input 8x3x224x224: inputs of which the file leaves a dimension open {input, axis, symbol}; of many the first ones."""
    names = list(dict.fromkeys(open_["input"] for open_ in dynamic or () if open_["input"] in shapes))
    told = [f"{shortened(name, 24)} {'x'.join(map(str, shapes[name]))}" for name in names[:INPUTS]]
    more = [f"{len(names) - INPUTS} more"] if len(names) > INPUTS else []
    return ", ".join([*told, *more])


def stem(name: str, *more: str) -> str:
    """A name for files that no header and no file system minds: squeezenet-a-machine."""
    plain = (re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:60].rstrip("-.") for name in (name, *more))
    return "-".join(filter(None, plain)) or "network"
