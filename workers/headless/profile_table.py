"""A profile in a terminal."""

from __future__ import annotations

from typing import Any

from workers.headless.memory import memory_lines
from workers.pipeline.accounts import grouped

SHOWN = 0.005
"""Share of the wall clock from which an account has a line of its own; all are in profile.json."""
BAR, TOP, LABEL = 24, 5, 46

WORDS = {
    "command/start": "Python and imports of the command",
    "command/inspect": "inspecting the file",
    "command/machine": "this machine and its peak",
    "command/journal": "journal and log",
    "command/archive": "figures and archive",
    "command/check": "comparing the untuned network",
    "process/start": "starting the processes",
    "process/imports": "imports of what tunes and compiles",
    "process/end": "ending the processes",
    "start/load": "TVM, the file's clean-up, workers' start",
    "start/import": "import and extraction",
    "start/spaces": "design spaces, loading them in the workers",
    "start/describe": "describing the operators",
    "start/searches": "making the searches",
    "start/resume": "taking up what was measured",
    "decision/choose": "choosing the operator",
    "decision/observe": "fitting its belief",
    "search/plan": "planning",
    "search/explore": "walking",
    "search/features": "features and acquisition",
    "search/predict": "predictions",
    "search/fit": "training the cost model",
    "search/sample": "sampling",
    "search/learn": "learning outcomes",
    "build": "building (TIR passes, LLVM, loading)",
    "wait": "waiting for the measuring lock and for good moments",
    "measure/programs": "timing (arguments, warm-up runs, runs)",
    "measure/rest": "between programs, and those without end",
    "bookkeeping/dispatch": "messages to the workers",
    "bookkeeping/books": "best times and curves",
    "bookkeeping/events": "events",
    "bookkeeping/checkpoint": "checkpoints",
    "artifact/compile": "import, compiling, linking",
    "artifact/rehearse": "timing rivals in the network",
    "artifact/verify": "verification, end-to-end latency",
    "artifact/pack": "packing",
    "broken off": "attempts that broke off",
    "unaccounted": "unaccounted",
}
"""Of an account of the loop without its phase."""


def profile_lines(figures: dict[str, Any]) -> list[str]:
    """Groups of accounts and the larger ones in them, the operators that took most, and the memory."""
    wall, accounts = figures["seconds"], figures["accounts"]
    lines = [f"where {wall:.1f} s went"]
    for group, seconds in _largest_first(grouped(accounts)):
        lines.append(_row(group, seconds, wall))
        parts = {name: s for name, s in accounts.items() if name.startswith(f"{group}/") and s >= SHOWN * wall}
        lines += [_row(f"  {_words(name)}", s, wall) for name, s in _largest_first(parts)]
    if busy := sum(s for name, s in accounts.items() if name.endswith("/build")):
        lines.append(f"compilers at work while building: {figures['compiling'] / busy:.2f}")
    dearest = sorted(figures["operators"], key=lambda row: -row["seconds"])[:TOP]
    return [*lines, *map(_paid, dearest), *memory_lines(figures["memory"])]


def _largest_first(seconds: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(seconds.items(), key=lambda item: -item[1])


def _words(account: str) -> str:
    return WORDS.get(account) or WORDS.get(account.partition("/")[2], account)


def _row(label: str, seconds: float, wall: float) -> str:
    share = seconds / wall
    return f"{label:<{LABEL}} {seconds:>8.2f} s {100 * share:>5.1f} %  {'#' * round(BAR * share)}".rstrip()


def _paid(row: dict[str, Any]) -> str:
    return (
        f"{row['name'][:LABEL]:<{LABEL}} {row['seconds']:>8.2f} s {row['configurations']:>6} configurations, "
        f"{row['gain_ms']:.3f} ms gained"
    )
