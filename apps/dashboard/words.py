"""What the engine's short names are called on pages; the run page's scripts are handed `PAGE`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from apps.core import clock
from apps.dashboard import humans
from apps.tuning.endings import TURN
from apps.tuning.models import Job, TuningRun
from apps.tuning.states import State
from apps.tuning.waiting import Wait
from workers.messages.spec import ALL, COMPUTE

STATES = {
    "queued": "waiting",
    "pausing": "pausing",
    "interrupted": "interrupted, goes on by itself",
    "inspecting": "being read",
    "new": "being measured",
}
"""States that do not say themselves what they are."""

HAPPENED = {
    "asked": "asked for",
    "started": "started",
    "on": "goes on",
    "gone": "its worker went away",
    "resumed": "resumed",
    "measured": "every operator measured once",
    "turn": TURN,
}
"""What is told of a run beside its states and its own lines."""

RULES = {
    "rescue": "nothing valid yet",
    "gamma": "its first slot",
    "bonus": "uncertain, worth a look",
    "belief": "largest gain expected",
    "speed": "highest speed expected",
    "round_robin": "its turn",
    "sequential": "next in order",
    "random": "by chance",
    "linear": "behind its share of the work",
    "warm_up": "its first slot",
    "epsilon": "by chance, to explore",
    "greedy": "largest gain expected",
    "softmax": "by chance, larger gains more often",
    "gradient": "steepest descent",
    "prior": "its first slot, worth a look",
    "tie": "all alike",
    "remainder": "what is left",
}
"""Why a scheduler chose an operator."""

SPENT = {
    "build": "building",
    "measure": "measuring",
    "search": "searching",
    "decision": "deciding",
    "wait": "waiting",
    "start": "starting up",
    "bookkeeping": "keeping books",
}
"""What the clock went into."""

REASONS = {
    "seconds": "time is up",
    "trials": "limit of configurations reached",
    "target": "the sum of operators is at the target latency",
    "gain": "little more to gain",
    "exhausted": "every operator is finished",
    "stopped": "stopped",
}
"""Why a run ended."""

CAUSES = {
    "invalid": "not a valid program",
    "build": "did not compile",
    "crash": "crashed",
    "timeout": "took too long",
    "memory": "out of memory",
    "run": "failed while it ran",
}
"""Why a configuration has no latency."""

ORIGINS = {
    "start": "what a search begins with: rules, and of older runs what earlier ones found",
    "known": "an earlier run, of whose fastest it was",
    "explorer": "the explorer",
    "random": "chance",
    "twin": "an operator with the same knobs, whose best it was",
    "confirm": "a second look at what was close to the best",
}
"""Who proposed a configuration."""

OPERATORS = {ALL: "all", COMPUTE: "convolutions and matrix products only"}
"""Which operators a run gives slots to."""

ABOUT = {
    "weight": "How often an inference calls it",
    "work_flop": "Floating-point operations of one call, in millions",
    "latency_s": "Of one call, of the fastest configuration so far",
    "share": "Its part of the sum of operators: weight times latency",
    "speed_flop_per_s": "Billions of floating-point operations a second",
    "of_peak": "Its speed, of the highest measured on its machine",
    "tried": "Configurations built and timed, failed ones included",
    "won_s_per_s": "What a minute of its slots took off the network's latency; told from its second slot on",
    "why": "What decided that it got its last slot",
    "build": "Compiling configurations",
    "measure": "Timing them on the target",
    "search": "Proposing which to try next",
    "decision": "Choosing which operator gets the next slot",
    "wait": "Until others leave the machine alone",
    "start": "Loading TVM and the network, and laying out what there is to try",
    "bookkeeping": "Writing down what was measured",
}
"""What a heading or a category means, for who points at it or has it read."""

PAGE = {
    "rules": RULES, "spent": SPENT, "reasons": REASONS, "causes": CAUSES, "states": STATES, "happened": HAPPENED,
    "about": ABOUT,
}  # fmt: skip


def named(words: dict[str, str], name: str) -> str:
    """A name that has no words of its own says itself."""
    return words.get(name) or name.replace("_", " ")


def again(job: Job | None) -> str:
    """When a job whose last attempt got nowhere is tried again; empty for others, and when that time has come."""
    left = (job.again - clock.now()).total_seconds() if job and job.again else 0.0
    return f"tries again in {humans.duration(math.ceil(left))}" if left > 0 else ""


def ordinary(job: Job) -> bool:
    """Whether a job stands still for no failure, though it says why: others have their turn."""
    return job.state == State.QUEUED and job.error == TURN


def of_state(run: TuningRun) -> str:
    """What a run does; static/js/run/words.js says it by the same rules."""
    job = run.job
    if job.state == State.RUNNING and job.wanted == Job.Wanted.PAUSE:
        return STATES["pausing"]
    if job.state == State.DONE:
        return ended(run.finished_reason)
    return again(job) or STATES.get(job.state, job.state)


def ended(reason: str) -> str:
    """That a run is over, and why."""
    return REASONS["stopped"] if reason == "stopped" else f"done: {REASONS[reason]}" if reason in REASONS else "done"


def only(run: TuningRun) -> str:
    """Which operators alone a run tunes; empty where all."""
    return "" if run.operators_asked == ALL else named(OPERATORS, run.operators_asked)


def begun_with(run: TuningRun) -> str:
    """Whether it looks at what earlier runs found; which, its first attempt chooses."""
    if not run.reuse:
        return "from nothing"
    if not run.known_from:
        return "with what earlier runs found" if run.known_from is None else "there was no earlier run"
    count = len(run.known_from)
    return f"looked at {count} earlier run{'s' if count > 1 else ''}"


def before(wait: Wait) -> str:
    """Who comes before a queued run, and for how long; nobody is named."""
    machine = "a machine is being measured first" if wait.machine else ""
    return ", then ".join(filter(None, [machine, _runs_before(wait)]))


def _runs_before(wait: Wait) -> str:
    if not wait.before:
        return ""
    runs = f"{wait.before} run{'s' if wait.before > 1 else ''} before this one"
    if wait.seconds is None:
        return runs
    return f"{runs}, about {humans.duration(60 * max(1, math.ceil(wait.seconds / 60)))}"


def is_gpu(tvm: Mapping[str, Any]) -> bool:
    """Whether TVM's target is a graphics card."""
    return tvm.get("kind") == "cuda"


def units(tvm: Mapping[str, Any]) -> str:
    """What computes side by side on a target."""
    return "multiprocessors" if is_gpu(tvm) else "threads"


def target_words(tvm: Mapping[str, Any]) -> str:
    """TVM's target as key=value, those of the processor that a graphics card hangs on as host.key=value."""
    host = tvm.get("host")
    told = {name: value for name, value in tvm.items() if name != "host"}
    if isinstance(host, Mapping):
        told |= {f"host.{name}": value for name, value in host.items()}
    return " ".join(f"{name}={value}" for name, value in told.items())
