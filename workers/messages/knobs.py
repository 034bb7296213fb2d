"""The knobs of an operator as events tell them, so that a configuration can be read where there is no TVM.

A knob is {name, kind, options}: option n is what the choice n stands for, a number or a list of them. Of a tile there may be
thousands, so it is {name, kind: "tile", extent, parts, innermost}: its options are the ordered factorisations of `extent` into
so many parts whose last is at most `innermost`, in lexicographic order; from the outermost loop to the innermost. A knob of
more options than MOST that are nothing of the kind is told as {name, kind}.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

MOST = 256
"""Options that are listed, so that what is told of a large network's operators stays small."""
LARGEST, DEEPEST = 1 << 20, 8
"""Extent and parts of a tile that is read: whoever told it may have made it up, and long factorisations take time."""

Options = Sequence[Sequence[int]]


def told(name: str, kind: str, options: Options) -> dict[str, Any]:
    """A knob whose option n is the numbers options[n]."""
    if kind == "tile" and (tiling := _tiling(options)):
        return {"name": name, "kind": kind, **tiling}
    if len(options) > MOST:
        return {"name": name, "kind": kind}
    return {"name": name, "kind": kind, "options": [one[0] if len(one) == 1 else list(one) for one in options]}


def option(knob: Mapping[str, Any], choice: int) -> tuple[int, ...] | None:
    """The numbers that a choice stands for; None where the knob does not say, or has no such choice."""
    if "options" in knob:
        options = knob["options"]
        found = options[choice] if 0 <= choice < len(options) else None
        if found is None:
            return None
        return tuple(found) if isinstance(found, list) else (found,)
    if "extent" not in knob:
        return None
    return _factors(knob["extent"], knob["parts"], knob["innermost"], choice)


def _tiling(options: Options) -> dict[str, int] | None:
    """By which rule these are all; None where there is none that is read."""
    extent, parts, innermost = math.prod(options[0]), len(options[0]), max(one[-1] for one in options)
    if not _readable(extent, parts):
        return None
    alike = all(len(one) == parts and math.prod(one) == extent for one in options)
    ordered = all(tuple(one) < tuple(after) for one, after in pairwise(options))
    if not (alike and ordered and len(options) == _ways(extent, parts, innermost)[-1][extent]):
        return None
    return {"extent": extent, "parts": parts, "innermost": innermost}


def _factors(extent: int, parts: int, innermost: int, place: int) -> tuple[int, ...] | None:
    """The factorisation at this place of their order."""
    if not (_readable(extent, parts) and place >= 0):
        return None
    ways, rest, found = _ways(extent, parts, innermost), extent, list[int]()
    for after in reversed(ways[:-1]):
        for factor in (divisor for divisor in after if rest % divisor == 0):
            if place < after[rest // factor]:
                break
            place -= after[rest // factor]
        else:
            return None
        found.append(factor)
        rest //= factor
    return (*found, rest) if place < ways[0][rest] else None


def _readable(extent: int, parts: int) -> bool:
    return 0 < extent <= LARGEST and 0 < parts <= DEEPEST


@lru_cache(maxsize=256)
def _ways(extent: int, parts: int, innermost: int) -> tuple[dict[int, int], ...]:
    """For 1, 2, ... `parts`: in how many ways each divisor of `extent`, in their order, is a product of so many factors
    whose last is at most `innermost`."""
    small = [number for number in range(1, math.isqrt(extent) + 1) if extent % number == 0]
    divisors = sorted({*small, *(extent // number for number in small)})
    ways = [{number: int(number <= innermost) for number in divisors}]
    for _ in range(parts - 1):
        last = ways[-1]
        ways.append({n: sum(last[n // first] for first in divisors if n % first == 0) for n in divisors})
    return tuple(ways)
