"""What earlier runs on the same target found of an operator: prior knowledge, never a figure of this run."""

from __future__ import annotations

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

from workers.engine.space import SPACE_VERSION, Configuration, Operator, Sketch

STARTS = 4
"""The best known programs a run measures again: the fastest figure of an earlier run is partly luck."""
LUCK = 0.1
"""A lead of a smaller part of the time may be chance: frequency and the placement of pages move a program by several per cent
between two measurements, and its own runs tell nothing of that."""
FALLEN = 1.05
"""Times what an earlier run found: the same program is not that much slower, but the moment may have been. Of SqueezeNet's
bests, measured every four seconds, one in six is 13 to 46 % over what it mostly takes; where somebody else works on the other
halves of the same cores, programs of two threads take up to twice as long."""
LOOKS = 2
"""Times that one is measured once more for that."""
ALIKE = 4
"""Operators of earlier runs that one without records of its own hears of: each has its best tried, and lends its points."""


@dataclass(frozen=True)
class Point:
    """A configuration and its time in seconds, None where it failed; `identity` is its program's structural hash."""

    configuration: Configuration
    seconds: float | None
    identity: str = ""


@dataclass(frozen=True)
class Known:
    """Points of one operator. They teach the cost model and are not proposed again, but for `starts`. `alike` is what was
    found of others with the same knobs, which may have any of it proposed.

    Fixed for the whole of a run: a resumed one must be given the same.
    """

    points: tuple[Point, ...] = field(default=())
    alike: tuple[Known, ...] = field(default=())

    @cached_property
    def best(self) -> float:
        """Seconds of the fastest program, the first of `starts`; infinite where nothing is known."""
        return min((point.seconds for point in self.points if point.seconds), default=math.inf)

    @cached_property
    def starts(self) -> tuple[Configuration, ...]:
        """Configurations of the fastest programs, best first: measured again at once."""
        return tuple(self._fastest)

    @cached_property
    def contenders(self) -> int:
        """How many of `starts` may as well be the fastest: what they are behind may be luck."""
        return sum(seconds <= (1 + LUCK) * self.best for seconds in self._fastest.values())

    @cached_property
    def _fastest(self) -> dict[Configuration, float]:
        """Seconds of the fastest programs, best first."""
        fastest = sorted((p for p in self.points if p.seconds), key=lambda p: p.seconds or math.inf)
        programs: dict[Any, Point] = {}
        for point in fastest:
            programs.setdefault(point.identity or point.configuration, point)
        figures = dict[Configuration, float]()
        for point in programs.values():
            figures.setdefault(point.configuration, point.seconds or math.inf)
        return dict(islice(figures.items(), STARTS))

    def tried_first(self, rules: Sequence[Configuration]) -> tuple[Configuration, ...]:
        """What an operator begins with for which `rules` say these: what is known of itself, then one that is meant for it,
        lest all of others fail here, and the best of each that is alike. Who has so many points had the rules' first, and of
        those that were slow no record need be left."""
        if len(self.points) > len(rules) + STARTS:
            return self.starts
        theirs = [start for other in self.alike for start in other.starts[:1]]
        return tuple(dict.fromkeys((*self.starts, *rules[:1], *theirs, *rules)))

    @cached_property
    def settled(self) -> frozenset[str]:
        """Identities of programs that need no second look."""
        again = set(self.starts)
        return frozenset(p.identity for p in self.points if p.identity) - {
            p.identity for p in self.points if p.configuration in again
        }


NOTHING = Known()


def space_of(sketches: Sequence[Sketch], *machine: Any) -> str:
    """What choices and times of an operator with these sketches mean, as 16 hexadecimal digits: their knobs, and JSON of where
    it ran."""
    knobs = [[[knob.name, knob.kind, knob.options] for knob in sketch.knobs] for sketch in sketches]
    text = json.dumps([SPACE_VERSION, machine, knobs], sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def known_points(
    records: Iterable[Mapping[str, Any]], operators: Sequence[Operator], spaces: Sequence[str]
) -> dict[int, Known]:
    """By operator, what `records` ({key, space, points: [[sketch, choices, seconds | null, identity]]}) say of it, or where
    none does, of others with its tiles and other knobs: the same convolution with another epilogue, in another network.

    Records of another space (`space_of`) are passed over, and so are points that lie outside of it.
    """
    shelves = defaultdict[str, dict[str, Known]](dict)
    of_space = dict(zip(spaces, operators, strict=True))
    for record in records:
        if (operator := of_space.get(record["space"])) and (known := _read(record["points"], operator)):
            shelves[record["space"]][record["key"]] = known
    found = {}
    for operator, space in zip(operators, spaces, strict=True):
        shelf = shelves[space]
        if operator.key in shelf:
            found[operator.index] = shelf[operator.key]
        elif shelf and any(knob.kind == "tile" for sketch in operator.sketches for knob in sketch.knobs):
            largest = sorted(shelf.values(), key=lambda known: -len(known.points))
            found[operator.index] = Known(alike=tuple(largest[:ALIKE]))
    return found


def _read(points: Iterable[Sequence[Any]], operator: Operator) -> Known | None:
    """None where nothing that lies in the operator's space ran."""
    read = [
        Point(Configuration(int(sketch), tuple(int(c) for c in choices)), seconds, identity)
        for sketch, choices, seconds, identity in points
    ]
    inside = tuple(point for point in read if operator.holds(point.configuration))
    return Known(inside) if any(point.seconds for point in inside) else None
