"""How often each part of a run's method changed something: a run's report in words, for the page and the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workers.messages.composition import EVOLVING

BELIEVING = ("dynatune", "dynatune-paper", "epsilon_greedy", "softmax")
"""Schedulers that ask a belief."""
COMPARED = (*BELIEVING, "gradient")
"""Schedulers that tell where round-robin would have given a slot."""
UNCOUNTED = ("random", EVOLVING)
"""Explorers whose walks nobody follows: one has none, the other is TVM's own where TVM is."""
ADAPTING = ("adaptive",)
"""Evaluators that stop where more runs would say no more; the others stop early at most what is hopeless."""
ENDS = {
    "complete": "to their end",
    "converged": "until they agreed",
    "rejected": "ended as hopeless",
    "late": "ended as too slow",
}
"""Of timings, by why they ended: what an evaluator says of them, and "late" where no time was left. There are no others."""
WORK = {
    "plan": "putting plans together",
    "learn": "taking in results",
    "explore": "walking",
    "features": "looking up features",
    "sample": "sampling",
    "fit": "fitting",
    "predict": "predicting",
}
"""Of the search, by the names of its accounts."""
SHOWN = 0.05
"""Seconds; parts of the search that took less are left out."""
EARLY = ("converged", "rejected")
"""What an evaluator says of a timing that it ended; others ran to their end or out of time."""


@dataclass(frozen=True)
class Effect:
    """`idle` is a sentence where a part changed nothing, else empty."""

    text: str
    idle: str = ""

    @property
    def line(self) -> str:
        return f"{self.text}. {self.idle}" if self.idle else self.text


def walkable(search: Mapping[str, Any]) -> int:
    """Of the explorer's candidates those that a walk could have reached: not of sketches that were scored whole."""
    return int(search.get("explorer", 0)) - int(search.get("enumerated", 0))


def effects_of(report: Mapping[str, Any]) -> list[Effect]:
    """Of a report of `pipeline.TuningLoop`; parts that have nothing to tell are left out.

    A report without `parts` says what was counted, and not whether it should have been more.
    """
    parts, search = report.get("parts", {}), report.get("search", {})
    found = [
        _scheduler(report, parts.get("scheduler")),
        _explorer(report, search, parts.get("explorer")),
        _sampler(search, parts.get("sampler")),
        _chance(search, report.get("contextual", False)),
        _evaluator(report.get("timings", {}), parts.get("evaluator")),
        _search(report.get("searched", {})),
    ]
    return [effect for effect in found if effect is not None]


def _whole(count: int) -> str:
    """As the site writes it: with narrow spaces."""
    return f"{count:,}".replace(",", "\u202f")


def _scheduler(report: Mapping[str, Any], name: str | None) -> Effect | None:
    counted = ("slots", "decided_by_belief", "differs_from_round_robin", "belief_differs")
    slots, believed, differs, both = (int(report.get(key, 0)) for key in counted)
    if "slots" not in report:
        return None
    text = f"slots: {_whole(slots)}"
    if name is None or name in BELIEVING:
        text += f", {_whole(believed)} decided by the belief"
        if "belief_differs" in report:
            text += f" ({_whole(both)} of them unlike round-robin)"
    if name is None or name in COMPARED:
        text += f", {_whole(differs)} unlike round-robin"
    if slots and name in COMPARED and not differs and report.get("operators", 2) > 1:
        return Effect(text, "The scheduler changed nothing: every slot went where it would have gone in turn.")
    if slots and name in BELIEVING and not believed:
        return Effect(text, "The belief changed nothing: no slot was decided by it.")
    if slots and name in BELIEVING and not both and "belief_differs" in report and report.get("operators", 2) > 1:
        return Effect(text, "The belief changed nothing: what it decided went where it would have gone in turn.")
    return Effect(text)


def _explorer(report: Mapping[str, Any], search: Mapping[str, Any], name: str | None) -> Effect | None:
    if not search.get("evaluations"):
        if name is None or name in UNCOUNTED or not (search and report.get("slots")):
            return None
        return Effect("explorer: no walk", "It changed nothing: no operator was measured often enough to learn from.")
    if "reached" not in search or "improved" in search:  # not counted from its start, see `search` of earlier versions
        return None
    reached, whole, could = int(search.get("reached", 0)), int(search.get("enumerated", 0)), walkable(search)
    if whole > 0 == could:
        return Effect(f"explorer: {_whole(whole)} candidates of sketches scored whole, no walk")
    text = f"explorer: {_whole(reached)} of {_whole(could)} candidates reached by walking"
    if whole:
        text += f", {_whole(whole)} more of sketches scored whole"
    return Effect(text, "" if reached else "The explorer changed nothing: it found what it began with.")


def _sampler(search: Mapping[str, Any], name: str | None) -> Effect | None:
    chosen, unlike, left_out = (int(search.get(key, 0)) for key in ("explorer", "not_greedy", "left_out"))
    changed = unlike or left_out
    if not chosen or name == "greedy" or (name is None and not changed):
        return None
    text = f"sampler: {_whole(unlike)} of {_whole(chosen)} candidates chosen against greedy"
    if left_out:
        text += f", {_whole(left_out)} left out as superfluous"
    if (calls := search.get("samplings")) and (clusters := search.get("clusters")):
        text += f", {clusters / calls:.1f} clusters of {search['handed'] / calls:.0f} candidates in the mean"
        text += f", {_whole(int(search.get('synthesised', 0)))} synthesised"
    return Effect(text, "" if changed else "The sampler changed nothing: it chose as greedy would have.")


def _chance(search: Mapping[str, Any], contextual: bool) -> Effect | None:
    """Of the contextual optimizer, which sets the share of chance by the cost model's doubt."""
    steered = search.get("steered", 0)
    if not contextual or not steered:
        return None
    text = f"contextual optimizer: {100 * search.get('chance', 0) / steered:.0f} % by chance in the mean"
    idle = (
        "The contextual optimizer changed nothing: the cost model was never in doubt, and chance had its fixed share."
    )
    return Effect(text, "" if search.get("doubted", 1) else idle)


def _evaluator(timings: Mapping[str, Any], name: str | None) -> Effect | None:
    stopped = {why: int(count) for why, count in timings.get("stopped", {}).items()}
    timed = sum(stopped.values())
    if not timed:
        return None
    ends = ", ".join(f"{_whole(count)} {ENDS.get(why, why)}" for why, count in sorted(stopped.items()))
    text = f"evaluator: {_whole(int(timings.get('runs', 0)))} runs in {_whole(timed)} timings, {ends}"
    changed = name not in ADAPTING or any(stopped.get(why) for why in EARLY)
    return Effect(text, "" if changed else "The evaluator changed nothing: every timing went on to its end.")


def _search(searched: Mapping[str, float]) -> Effect | None:
    told = sorted(((seconds, part) for part, seconds in searched.items() if seconds >= SHOWN), reverse=True)
    return (
        Effect(f"search: {', '.join(f'{seconds:.1f} s {WORK.get(part, part)}' for seconds, part in told)}")
        if told
        else None
    )
