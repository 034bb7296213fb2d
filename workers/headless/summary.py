"""The figures of a run that ended, and the lines that tell them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from workers.headless.display import human, of_earlier
from workers.messages.baselines import UNTUNED
from workers.messages.believed import changed_by_belief
from workers.messages.effects import effects_of
from workers.messages.events import Event
from workers.supervision import Ending


def summary(events: Iterable[Event], ending: Ending, result: Event, operators: list[dict[str, Any]]) -> dict[str, Any]:
    """Of a run that ended so, and of the archive made of it: what was saved counts where a child was ended before it said why.
    Events are looked at one by one: a long run's would fill the memory."""
    last: Event = {}
    spent: dict[str, float] = {}
    complete: float | None = None
    untuned: float | None = None
    slots = believed = differs = both = 0
    for event in events:
        kind = event["kind"]
        if kind == "slot":
            slots += 1
            believed += bool(event["decision"].get("decided_by_belief"))
            differs += bool(event["decision"].get("differs_from_round_robin"))
            both += changed_by_belief(event["decision"])
        elif kind == "baseline" and event["name"] == UNTUNED:
            untuned = event["seconds"]
        elif kind in ("batch", "finished"):
            last, spent = event, event.get("report", event).get("spent", spent)
            if complete is None and event["latency"]:
                complete = event["clock"]
    said = ending.last or {"reason": ending.kind}
    told = said.get("report", {})
    seconds, trials = last["clock"], last["trials"]
    figures = {
        "seconds": seconds,
        "trials": trials,
        "trials_a_second": trials / seconds,
        "complete_after": complete,
        "sum_of_operators": last["latency"],
        "end_to_end": result["latency"]["median"],
        "onnxruntime": result["onnxruntime"] and result["onnxruntime"]["median"],
        "ratio": result["ratio"],
        "untuned": untuned,
        "share": {name: part / seconds for name, part in spent.items()},
        "slots": slots,
        "slots_decided_by_belief": believed,
        "search": told.get("search", {}),
        "verified": result["passed"],
        "rehearsal": result["rehearsal"],
        "operators": len(operators),
        "operators_known": of_earlier(operators, "known"),
        "operators_alike": of_earlier(operators, "alike"),
        "reason": said["reason"],
    }
    decided = {"decided_by_belief": believed, "differs_from_round_robin": differs, "belief_differs": both}
    report = {**told, "slots": slots, **decided}
    return {"figures": figures, "lines": _lines(figures, result, report)}


def _lines(figures: Mapping[str, Any], result: Event, report: Mapping[str, Any]) -> list[str]:
    complete, untuned = figures["complete_after"], figures["untuned"]
    ours, theirs = figures["end_to_end"], figures["onnxruntime"]
    quartiles, share = result["latency"], figures["share"]
    lines = [
        f"{figures['operators']} operators, {figures['trials']} configurations in {human(figures['seconds'])} "
        f"({figures['trials_a_second']:.1f}/s)"
        + (f", all operators measured after {complete:.1f} s" if complete else ""),
        f"end to end {1e3 * ours:.3f} ms ± {500 * (quartiles['upper_quartile'] - quartiles['lower_quartile']):.3f}, "
        f"sum of operators {1e3 * (figures['sum_of_operators'] or 0):.3f} ms"
        + (f", ONNX Runtime {1e3 * theirs:.3f} ms: {result['ratio']:.2f} x" if theirs else "")
        + (f", TVM untuned {1e3 * untuned:.0f} ms: {untuned / ours:.0f} times as long" if untuned else ""),
        "clock: "
        + ", ".join(f"{name} {100 * part:.1f} %" for name, part in sorted(share.items(), key=lambda item: -item[1])),
        f"outputs: {result['verdict']['sentence']}",
        *(effect.line for effect in effects_of(report)),
    ]
    if result["rehearsal"]:
        lines.append(result["rehearsal"]["sentence"])
    return lines
