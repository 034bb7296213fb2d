"""The report's tables: paid against won, the clock, the operators, what there is to compare with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count

from apps.dashboard import words
from apps.dashboard.figures import Speed, headline, sizes, speed, told_sum
from apps.dashboard.report.story import OTHERS, Told, titled
from apps.tuning.journal import ordered
from apps.tuning.live import made_with
from apps.tuning.models import TuningRun
from workers.messages.causes import UNBUILT

MOST = 10
"""Operators with a bar of their own; the others share one."""


@dataclass(frozen=True)
class Share:
    """What part of the slots' time operators were paid, and what part of the gain they won; `rest`: several together."""

    name: str
    colour: int
    time: float
    gain: float
    rest: bool = False


@dataclass(frozen=True)
class Row:
    """An operator; `won` are seconds off the network's latency for a minute of its slots, None before its second: a first
    slot begins at what was tried once, and its gain is no rate."""

    operator: Told
    name: str
    colour: int
    speed: Speed
    won: float | None


@dataclass(frozen=True)
class Compared:
    """A baseline, and how many times faster the headline's latency is."""

    name: str
    seconds: float
    spread: float
    threads: int
    ratio: float | None


def shares(operators: Sequence[Told], colours: Mapping[int, int]) -> list[Share]:
    """The costly first, the cheap ones together."""
    time = sum(operator["seconds"] for operator in operators) or 1.0
    gain = sum(operator["gain"] for operator in operators) or 1.0
    rows = [
        Share(titled(one), colours.get(one["index"], OTHERS), one["seconds"] / time, one["gain"] / gain)
        for one in sorted(operators, key=lambda one: -one["seconds"])
        if one["seconds"] or one["gain"]
    ]
    if len(rows) <= MOST + 1:
        return rows
    rest = rows[MOST:]
    together = Share(
        f"{len(rest)} others", OTHERS, sum(one.time for one in rest), sum(one.gain for one in rest), rest=True
    )
    return [*rows[:MOST], together]


def scale(shown: Sequence[Share]) -> float:
    """The longest bar, but for the one of the others together, which is cut where it is longer."""
    return max((max(one.time, one.gain) for one in shown if not one.rest), default=1.0)


def spent(seconds: Mapping[str, float]) -> list[tuple[str, float, float]]:
    """(words, seconds, share) of what the clock went into, largest first."""
    whole = sum(seconds.values()) or 1.0
    ranked = sorted(seconds.items(), key=lambda item: -item[1])
    return [(words.named(words.SPENT, name), took, took / whole) for name, took in ranked]


def rows(run: TuningRun, operators: Sequence[Told], colours: Mapping[int, int]) -> list[Row]:
    """By their part of the latency, largest first."""
    ranked = sorted(operators, key=lambda one: -one["weight"] * (one["best"] or 0.0))
    whole = told_sum(run, [(one["weight"], one["best"]) for one in operators])
    return [
        Row(
            operator=one,
            name=titled(one),
            colour=colours.get(one["index"], OTHERS),
            speed=speed(run, whole, one["weight"], one["flops"], one["best"], one["at_once"]),
            won=60 * one["gain"] / one["seconds"] if one["slots"] > 1 and one["seconds"] else None,
        )
        for one in ranked
    ]


def compared(run: TuningRun) -> list[Compared]:
    ours = headline(run)
    return [
        Compared(line["name"], line["seconds"], line["spread"], line["threads"], ours.over(line["seconds"]))
        for line in ordered(run.baselines)
    ]


def failures(run: TuningRun) -> list[tuple[str, int]]:
    """(words, count) by kind, most first."""
    failed = run.measurements.filter(seconds=None).exclude(cause__in=UNBUILT).order_by().values_list("cause")
    counted = failed.annotate(count=Count("pk")).order_by("-count")
    return [(words.named(words.CAUSES, cause), count) for cause, count in counted]


def facts(run: TuningRun) -> list[tuple[str, Any]]:
    """With what the run was made; the page leaves out what is not known."""
    made, machine, hardware = made_with(run), run.machine, run.hardware
    return [
        ("Graphics card" if words.is_gpu(machine["tvm"]) else "Processor", hardware.get("name") or run.machine_name),
        ("System", " on ".join(filter(None, [hardware.get("system"), hardware.get("machine")]))),
        ("Instruction sets", ", ".join(hardware.get("flags") or ())),
        ("TVM target", words.target_words(machine["tvm"])),
        ("Input sizes", sizes(run)),
        (words.units(machine["tvm"]).capitalize(), made["threads"]),
        ("Seed", run.seed),
        ("Layout", made["layout"]),
        ("Operators tuned", words.only(run)),
        ("Versions", ", ".join(f"{name} {version}" for name, version in sorted(made["versions"].items()))),
    ]
