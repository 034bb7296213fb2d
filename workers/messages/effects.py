"""How often each part of a run's method changed something: a run's report in words, for the page and the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

BELIEVING = ("dynatune", "dynatune-paper", "epsilon_greedy", "softmax")
"""Schedulers that ask a belief."""
COMPARED = (*BELIEVING, "gradient")
"""Schedulers that tell where round-robin would have given a slot."""
UNCOUNTED = ("random", "metaschedule")
"""Explorers whose walks nobody follows: one has none, the other is TVM's own where TVM is."""


@dataclass(frozen=True)
class Effect:
    """`idle` is a sentence where a part changed nothing, else empty."""

    text: str
    idle: str = ""

    @property
    def line(self) -> str:
        return f"{self.text}. {self.idle}" if self.idle else self.text


def effects_of(report: Mapping[str, Any]) -> list[Effect]:
    """Of a report of `pipeline.TuningLoop`; parts that have nothing to tell are left out.

    A report without `parts` says what was counted, and not whether it should have been more.
    """
    parts, search = report.get("parts", {}), report.get("search", {})
    found = [_scheduler(report, parts.get("scheduler")), _explorer(report, search, parts.get("explorer"))]
    return [effect for effect in [*found, _sampler(search, parts.get("sampler"))] if effect is not None]


def _scheduler(report: Mapping[str, Any], name: str | None) -> Effect | None:
    counted = ("slots", "decided_by_belief", "differs_from_round_robin")
    slots, believed, differs = (int(report.get(key, 0)) for key in counted)
    if "slots" not in report:
        return None
    text = f"slots: {slots}"
    if name is None or name in BELIEVING:
        text += f", {believed} decided by the belief"
    if name is None or name in COMPARED:
        text += f", {differs} unlike round-robin"
    if slots and name in COMPARED and not differs and report.get("operators", 2) > 1:
        return Effect(text, "The scheduler changed nothing: every slot went where it would have gone in turn.")
    if slots and name in BELIEVING and not believed:
        return Effect(text, "The belief changed nothing: no slot was decided by it.")
    return Effect(text)


def _explorer(report: Mapping[str, Any], search: Mapping[str, Any], name: str | None) -> Effect | None:
    walks, improved = int(search.get("walks", 0)), int(search.get("improved", 0))
    if not search.get("evaluations"):
        if name is None or name in UNCOUNTED or not (search and report.get("slots")):
            return None
        return Effect("explorer: no walk", "It changed nothing: no operator was measured often enough to learn from.")
    text = f"explorer: {walks} walks, {improved} led to something better than they began with"
    return Effect(text, "" if improved else "The explorer changed nothing: it found what it began with.")


def _sampler(search: Mapping[str, Any], name: str | None) -> Effect | None:
    chosen, unlike, left_out = (int(search.get(key, 0)) for key in ("explorer", "not_greedy", "left_out"))
    changed = unlike or left_out
    if not chosen or name == "greedy" or (name is None and not changed):
        return None
    text = f"sampler: {unlike} of {chosen} candidates chosen against greedy"
    if left_out:
        text += f", {left_out} left out as superfluous"
    return Effect(text, "" if changed else "The sampler changed nothing: it chose as greedy would have.")
