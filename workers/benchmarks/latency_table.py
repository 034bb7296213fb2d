"""The table of `benchmark latency`: one row a network, libraries side by side."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import geometric_mean
from typing import Any

import numpy as np

from workers.benchmarks.cells import DONE, Cell, by_versions, days_of
from workers.benchmarks.text_table import NOTHING, aligned, milliseconds, number
from workers.benchmarks.turns import OURS
from workers.messages.baselines import ONNX_RUNTIME

OTHERS = ("PyTorch", "torch.compile")
SAME_OUTPUT = 1e-3
HEAD = (
    "network", "machine", "tuned for", "TVM", "sum", "end/sum", "end/sum in turns", "ONNX Runtime", "TVM / ORT", "turns",
    *OTHERS, *(f"TVM / {name}" for name in OTHERS),
)  # fmt: skip
LOST_HEAD = ("network", "machine", "operator", "calls", "alone", "in the network", "lost")
LOST, MOST = 0.02, 5
"""Of the end to end that an operator takes longer in the network than alone, to be shown, and how many of a network are."""


def table(cells: Sequence[Cell]) -> str:
    """Rows, geometric means by method, budget and machine, and what is missing and why."""
    done = [cell for cell in cells if cell["state"] == DONE]
    parts = [aligned([HEAD, *(_row(cell) for cell in done)])] if done else []
    for terms in sorted({_terms(cell) for cell in done}):
        parts.append(_mean([cell for cell in done if _terms(cell) == terms], terms))
    if lost := [row for cell in done for row in _lost(cell)]:
        parts.append(f"\nSlower in the network than alone, in ms:\n{aligned([LOST_HEAD, *lost])}\n")
    parts += [note for cell in cells for note in _notes(cell)]
    return "".join([*parts, NOTES])


NOTES = (
    "Milliseconds end to end, median ± half the distance of the quartiles; 200 runs each in turns of 10, fewer of what\n"
    "takes over 30 ms, in processes that stand still meanwhile, all on the same number of threads. sum: weight x best\n"
    "latency over the operators, as the tuning found it. end/sum in turns: the network over its operators, timed alone, in\n"
    "turns within one process: median and its 95 % interval. turns: quartiles of the turns' ratios. lost: of the end to\n"
    "end, what an operator's calls take longer in the network than alone.\n"
)


def _terms(cell: Cell) -> str:
    return f"{cell['key']['arm']}, {cell['key']['budget']}, seed {cell['key']['seed']}, {_machine(cell)}"


def _machine(cell: Cell) -> str:
    return f"{cell['key']['cpu']}, {cell['key']['cores']} threads"


def _row(cell: Cell) -> tuple[str, ...]:
    lower, upper = np.quantile(cell["ratios"][OURS], (0.25, 0.75))
    return (
        cell["name"],
        _machine(cell),
        str(cell["key"]["budget"]),
        _shown(cell, OURS),
        milliseconds(cell["tuning"]["sum_of_operators"]),
        number(_median(cell, OURS) / cell["tuning"]["sum_of_operators"], 2),
        _in_turns(cell),
        _shown(cell, ONNX_RUNTIME),
        number(ratio(cell, ONNX_RUNTIME), 2),
        f"{lower:.2f}-{upper:.2f}",
        *(_shown(cell, name) for name in OTHERS),
        *(number(ratio(cell, name), 2) for name in OTHERS),
    )


def _median(cell: Cell, name: str) -> float:
    return float(cell["latencies"][name]["median"])


def ratio(cell: Cell, name: str) -> float | None:
    """Ours over that library's median, None where it was not measured."""
    return _median(cell, OURS) / _median(cell, name) if name in cell["latencies"] else None


def _shown(cell: Cell, name: str) -> str:
    latency: dict[str, Any] | None = cell["latencies"].get(name)
    if latency is None:
        return "failed" if name in cell["errors"] else "not given"
    spread = (latency["upper_quartile"] - latency["lower_quartile"]) / 2
    return f"{milliseconds(latency['median'])} ± {1e3 * spread:.2g}"


def _in_turns(cell: Cell) -> str:
    found = cell.get("operators")  # cells of earlier versions have none
    return f"{found['ratio']:.2f} [{found['low']:.2f}, {found['high']:.2f}]" if found else NOTHING


def _lost(cell: Cell) -> list[tuple[str, ...]]:
    """Its operators that lose most, down to LOST."""
    if not (found := cell.get("operators")):
        return []
    heard = [row for row in found["rows"] if row["inside"] is not None]
    shares = [(row, (row["inside"] - row["alone"]) / found["end_to_end"]) for row in heard]
    shown = sorted((one for one in shares if one[1] > LOST), key=lambda one: -one[1])[:MOST]
    return [
        (
            cell["name"], _machine(cell), row["name"], str(row["weight"]), milliseconds(row["alone"]),
            milliseconds(row["inside"]), f"{share:.1%}",
        )
        for row, share in shown
    ]  # fmt: skip


def _mean(cells: Sequence[Cell], terms: str) -> str:
    told = []
    for name in (ONNX_RUNTIME, *OTHERS):
        ratios = [found for cell in cells if (found := ratio(cell, name)) is not None]
        if ratios:
            told.append(f"{geometric_mean(ratios):.2f} x {name} ({len(ratios)} networks)")
    return f"geometric mean ({terms}): {', '.join(told)}{by_versions(cells)}; {days_of(cells)}\n"


def _notes(cell: Cell) -> list[str]:
    if cell["state"] != DONE:
        return [f"{cell['name']}: {cell['state']}: {cell['reason']}\n"]
    notes = [f"{cell['name']}: {name}: {error}\n" for name, error in cell["errors"].items()]
    difference = cell["torch"].get("difference")
    if difference is not None and difference > SAME_OUTPUT:
        notes.append(f"{cell['name']}: the PyTorch module has other weights than the file ({difference:.2g} off)\n")
    return notes
