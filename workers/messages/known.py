"""What earlier runs found, as a file for the next one: {"operators": [{key, space, points}]}.

`key` is an operator's structural hash, `space` says on what machine and of which knobs its choices and times are, and
`points` are [sketch, choices, seconds | null, identity of the program]. A run is given the same file at every attempt.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from workers.messages.believed import Believed
from workers.messages.causes import INVALID

POINTS = 300
"""Of one operator: as many as its cost model still learns from in less time than a trial takes."""
TOTAL = 20_000
"""Of all operators: about two megabytes."""
FEWEST = 32
LASTING = (INVALID, "build")
"""Causes of failures that the configuration alone is to blame for. A time that ran out, a crash, memory and a device that
went away may be the hour's: what failed so is no point, and may be tried again."""

HAIR = 1e-6
"""Of what was told and is not believed: what comes right behind the best keeps its order there."""

Point = list[Any]
Name = tuple[str, str]


def share(operators: int) -> int:
    """Points an operator when there are so many of them."""
    return max(FEWEST, min(POINTS, TOTAL // max(operators, 1)))


def room(name: Name, own: Collection[Name], most: int) -> int:
    """Points of one operator, where the network's `own` have `most`; all have where none is known to be."""
    return most if not own or name in own else FEWEST


class Findings:
    """One operator's measurements in one run, added in the order in which they were told: of each what a point has, and nothing
    of those that say nothing: duplicates, and failures that need not last or come in a later round."""

    def __init__(self) -> None:
        self._believed, self._points = Believed[tuple[int, ...]](), list[Point]()

    def add(self, measurement: Mapping[str, Any]) -> None:
        if measurement["cause"] and (measurement["round"] or measurement["cause"] not in LASTING):
            return
        if measurement["seconds"] is not None:
            configuration = measurement["sketch"], *measurement["choices"]
            self._believed.add(configuration, measurement["seconds"], measurement["round"])
        self._points.append([measurement[name] for name in ("sketch", "choices", "seconds", "identity")])

    def points(self) -> list[Point]:
        """Oldest first. Nothing is as fast as what the run `Believed` in the end, so that this is measured first; what was told
        to be faster comes right behind it, in its order."""
        return [self._as_believed(point) for point in self._points]

    def _as_believed(self, point: Point) -> Point:
        sketch, choices, seconds, identity = point
        if seconds is None or seconds >= self._believed.seconds:
            return point
        return [sketch, choices, self._believed.seconds + HAIR * seconds, identity]


def points_of(measurements: Iterable[Mapping[str, Any]]) -> list[Point]:
    """Of one operator's measurements in one run, all at once."""
    findings = Findings()
    for measurement in measurements:
        findings.add(measurement)
    return findings.points()


def chosen(points: Iterable[Point], most: int) -> list[Point]:
    """At most `most` of points that come newest first: half of them the fastest, the rest the newest.

    Of one configuration the newest counts. The best alone would teach a cost model nothing about what is bad.
    """
    distinct: dict[tuple[int, ...], Point] = {}
    for point in points:
        distinct.setdefault((point[0], *point[1]), point)
    newest = list(distinct.values())
    fastest = sorted((p for p in newest if p[2] is not None), key=lambda p: float(p[2]))[: (most + 1) // 2]
    taken = {id(point) for point in fastest}
    rest = [point for point in newest if id(point) not in taken]
    return fastest + rest[: most - len(fastest)]


def records(found: Mapping[Name, Sequence[Point]], own: Collection[Name] = ()) -> list[dict[str, Any]]:
    """Records of all operators, by (key, space); points come newest first. Where some are known to be the network's `own`,
    these have all the room, and others, which may be like some of them, FEWEST points each."""
    most = share(len(own or found))
    kept = ((name, chosen(points, room(name, own, most))) for name, points in sorted(found.items()))
    return [{"key": key, "space": space, "points": points} for (key, space), points in kept if points]


def encode_known(rows: Sequence[Mapping[str, Any]]) -> str:
    """The file's text."""
    return json.dumps({"operators": rows}, separators=(",", ":"), sort_keys=True, allow_nan=False)


def decode_known(text: str) -> list[dict[str, Any]]:
    """Inverse of `encode_known`."""
    found = json.loads(text)["operators"]
    assert isinstance(found, list)
    return found
