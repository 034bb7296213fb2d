"""From cells to ratios: seeds are paired, medians carry 95 % bootstrap intervals."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workers.benchmarks.cells import DONE, Cell
from workers.benchmarks.interval import Interval, median
from workers.benchmarks.methods.one_clock import LIVE
from workers.benchmarks.methods.reach import SLACK, curve_of, seconds_to_base

EFFECTS = (
    "slots", "decided_by_belief", "differs_from_round_robin", "belief_differs", "explorer", "enumerated", "reached",
    "not_greedy", "left_out",
)  # fmt: skip
"""How often the parts of a method changed something, as cells count it (METHODS: a part at 0 % is not working): of `slots`, and
of the candidates that an `explorer` proposed."""

NO_REGRET = 1e-6
"""s of the network's latency, below which a mean regret is none: a seed without any is the best there can be."""

OTHER_OPERATORS = "whose version of the code made other operators of it are left out; run them again"
OTHER_TERMS = (
    "with another recording or budget, or other prices, or on another machine, than the latest's are left out; run them again "
    "as the latest, or take its cells away"
)
"""Why runs are not compared with the latest, and what to do."""

Runs = dict[int, Cell]
Measure = Callable[[Cell, Cell], list[float]]


@dataclass(frozen=True)
class Share:
    """A measure of which 0 is a figure as any other. Of other measures it is a ratio to what never came."""

    measure: Measure

    def __call__(self, base: Cell, arm: Cell) -> list[float]:
        return self.measure(base, arm)


def grouped(cells: Sequence[Cell]) -> dict[tuple[str, str], dict[str, Runs]]:
    """(kind, network) -> arm -> seed -> cell, finished ones only.

    Of each network those on the same content with the same budget as the latest: a landscape recorded anew, or another
    budget, is another comparison. Of each arm those of the definition, costs and version of its latest: a median over two
    of them would be of neither.
    """
    done, current = _current(cells)
    compared = [cell for cell in done if _terms(cell) == current[_group(cell)]]
    editions = {(_group(cell), cell["key"]["arm"]): _edition(cell) for cell in compared}
    found: dict[tuple[str, str], dict[str, Runs]] = defaultdict(lambda: defaultdict(dict))
    for cell in compared:
        group, arm = _group(cell), cell["key"]["arm"]
        if _edition(cell) == editions[group, arm]:
            found[group][arm][cell["key"]["seed"]] = cell
    return {group: dict(arms) for group, arms in sorted(found.items())}


def _current(cells: Sequence[Cell]) -> tuple[list[Cell], dict[tuple[str, str], tuple[Any, ...]]]:
    """The finished ones, the latest last, and what those of a group share that are compared."""
    done = sorted((cell for cell in cells if cell["state"] == DONE), key=lambda cell: str(cell.get("ended")))
    return done, {_group(cell): _terms(cell) for cell in done}


def _group(cell: Cell) -> tuple[str, str]:
    return cell["key"]["layout"], cell["name"]


def _terms(cell: Cell) -> tuple[Any, ...]:
    """What all arms of a comparison share: of the budget what stands before the arm's definition and costs; live the
    operators too, which the version of an arm decides and which are compared by their places."""
    key = cell["key"]
    operators = tuple(row["key"] for row in cell["operators"]) if key["layout"] == LIVE else ()
    return key.get("network"), key.get("budget", "").partition(" of ")[0], key.get("cpu"), key.get("cores"), operators


def _edition(cell: Cell) -> tuple[Any, ...]:
    return cell["key"].get("budget"), cell["key"].get("version")


def version_of(runs: Runs) -> str:
    """Of the code that made the cells of an arm, as `grouped` left them."""
    return str(next(iter(runs.values()))["key"].get("version"))


def ratios(base: Mapping[int, Cell], arm: Mapping[int, Cell], measure: Measure) -> list[float]:
    """One value a seed that both have: the median of what `measure` finds (over operators, or the run's one)."""
    found = [measure(base[seed], arm[seed]) for seed in sorted(base.keys() & arm.keys())]
    return [float(median(values)) for values in found if values]


def own_seconds(base: Cell, arm: Cell) -> list[float]:
    """Seconds until `base` is within SLACK of its final latency."""
    near = near_the_end(base)
    return [] if near is None else [near]


def scored_a_search(base: Cell, arm: Cell) -> list[float]:
    """How many times fewer configurations a search scores until its best score is within 1 % of the best it will meet
    (Chameleon, Figure 7a): by operator in a replay, over the whole of a live run."""
    every = zip(base["operators"], arm["operators"], strict=True)
    rows = [pair for pair in every if all(operator.get("calls") for operator in pair)]
    pairs = [[row["scored_to_best"] / row["calls"] for row in pair] for pair in rows]
    totals = [cell.get("search", {}) for cell in (base, arm)]
    if not pairs and all(total.get("walks") for total in totals):
        pairs = [[total["evaluations_to_best"] / total["walks"] for total in totals]]
    return [mine / max(theirs, 1.0) for mine, theirs in pairs if mine > 0]


def measuring(base: Cell, arm: Cell) -> list[float]:
    """How much less measuring time a trial takes; 0 when the result is over SLACK worse."""
    if base["latency"] is None:
        return []
    if arm["latency"] is None or arm["latency"] > base["latency"] * (1 + SLACK):
        return [0.0]
    spent = [cell["spent"].get("measure", 0.0) / max(cell["trials"], 1) for cell in (base, arm)]
    return [spent[0] / spent[1]] if spent[1] else []


def fewer(base: Cell, arm: Cell) -> list[float]:
    """How many times fewer measurements `arm` made in all."""
    return [base["trials"] / arm["trials"]] if arm["trials"] else []


def quality(base: Cell, arm: Cell) -> list[float]:
    """How much faster the network is at the end."""
    return _faster([(base["latency"], arm["latency"])])


def operator_quality(base: Cell, arm: Cell) -> list[float]:
    """How much faster every operator is at the end."""
    pairs = zip(base["operators"], arm["operators"], strict=True)
    return _faster((mine["best"], theirs["best"]) for mine, theirs in pairs)


def quality_in_time(base: Cell, arm: Cell) -> list[float]:
    """How much faster every operator is after half of what the base spent in it: speed in equal time. Of the network halfway
    through a base that takes one operator after the other it would tell how many had not had their turn."""
    pairs = zip(base["operators"], arm["operators"], strict=True)
    return _faster((_after(mine, mine["seconds"] / 2), _after(theirs, mine["seconds"] / 2)) for mine, theirs in pairs)


def most_in_time(base: Cell, arm: Cell) -> list[float]:
    """The same of the operator that is the most faster then."""
    return [max(found)] if (found := quality_in_time(base, arm)) else []


def _after(operator: Mapping[str, Any], seconds: float) -> float | None:
    """An operator's best after so many seconds spent in it."""
    return next((best for _, spent, _, best in reversed(operator["series"]) if spent <= seconds), None)


def _faster(latencies: Iterable[tuple[float | None, float | None]]) -> list[float]:
    """Of (base, arm) in seconds; 0 where only the base has one: without those an arm would be judged by its good seeds."""
    return [mine / theirs if theirs else 0.0 for mine, theirs in latencies if mine]


def regretted(base: Cell, arm: Cell) -> list[float]:
    """How many times the mean regret of `base`, over the slots that both had, is that of `arm` (DynaTune 4.1)."""
    # What is kept of a run is every so manyth slot.
    base_table, arm_table = (np.reshape(cell.get("regret") or [], (-1, 2)).T for cell in (base, arm))
    if not (base_table.size and arm_table.size):
        return []
    slots = np.arange(1, min(base_table[0, -1], arm_table[0, -1]) + 1)
    theirs, ours = (float(np.interp(slots, *table).mean()) for table in (base_table, arm_table))
    return [max(theirs, NO_REGRET) / max(ours, NO_REGRET)]


def gained(base: Cell, arm: Cell) -> list[float]:
    """How much faster the network of `arm` is at the end than with the first configuration of every operator."""
    points = curve_of(arm).points
    return [points[0][1] / points[-1][1]] if points else []


@Share
def not_scheduling(base: Cell, arm: Cell) -> list[float]:
    """Share of the clock of `arm` that no decision took."""
    return [1 - arm["spent"].get("decision", 0.0) / arm["seconds"]] if arm["seconds"] else []


def decision_seconds(base: Cell, arm: Cell) -> list[float]:
    """Seconds of a decision of `arm`."""
    return [arm["spent"].get("decision", 0.0) / arm["slots"]] if arm.get("slots") else []


@Share
def searching(base: Cell, arm: Cell) -> list[float]:
    """Share of the clock of `arm` that went into search."""
    return [arm["spent"].get("search", 0.0) / arm["seconds"]] if arm["seconds"] else []


def affordable(base: Cell, arm: Cell) -> list[float]:
    """Part of its present search with which `arm` would be at the base's final latency as soon as `base`: from 1 on it is
    already, and at 0 it is not even with a search for nothing."""
    own, reached = own_seconds(base, arm), [seconds for seconds, came in seconds_to_base.found(base, arm) if came]
    share = searching(base, arm)
    if not (own and share and share[0]):
        return []
    if not reached:
        return [0.0]
    search = share[0] * reached[0]
    return [max(0.0, (own[0] - reached[0] + search) / search)]


def foretold(base: Cell, arm: Cell) -> int:
    """Slots of `arm` of whose end something was told."""
    return int(arm.get("foretold", 0))


@Share
def held(base: Cell, arm: Cell) -> list[float]:
    """Share of the slots of `arm` that ended where it was told before with a chance of `messages.foretold.CHANCE`."""
    return [arm["held"] / arm["foretold"]] if arm.get("foretold") else []


@Share
def without_width(base: Cell, arm: Cell) -> list[float]:
    """Share of the slots that `held` is of, of which it was told that they would bring nothing."""
    return [arm["without_width"] / arm["foretold"]] if arm.get("foretold") and "without_width" in arm else []


def gaining(base: Cell, arm: Cell) -> int:
    """Slots that `held` is of and that brought something."""
    return int(arm.get("gained", 0))


@Share
def held_of_gaining(base: Cell, arm: Cell) -> list[float]:
    """Share of those that ended where it was told before."""
    return [arm["gained_held"] / arm["gained"]] if arm.get("gained") else []


def near_the_end(cell: Cell) -> float | None:
    """Seconds until the latency was within SLACK of the run's last."""
    curve = curve_of(cell)
    return None if curve.final is None else curve.time_to(curve.final * (1 + SLACK))


def summary(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """A row an arm and network: medians and intervals of its own figures."""
    rows = []
    for (kind, network), arms in grouped(cells).items():
        for arm, runs in sorted(arms.items()):
            finals = [1e3 * cell["latency"] for cell in runs.values() if cell["latency"]]
            row: dict[str, Any] = {"kind": kind, "network": network, "arm": arm, "seeds": len(runs)}
            row["version"] = version_of(runs)
            figures = {
                "latency_ms": finals,
                "near": [near for cell in runs.values() if (near := near_the_end(cell)) is not None],
                "seconds": [cell["seconds"] for cell in runs.values()],
                "trials": [float(cell["trials"]) for cell in runs.values()],
            }
            for name, values in figures.items():
                row[name] = vars(Interval.of(values)) if values else None
            row["foretold"] = sum(cell.get("foretold", 0) for cell in runs.values())
            row["held"] = sum(cell.get("held", 0) for cell in runs.values())
            row["effects"] = {name: sum(_count(cell, name) for cell in runs.values()) for name in EFFECTS}
            row["both_counted"] = all("belief_differs" in cell for cell in runs.values())
            row["counted"] = all("differs_from_round_robin" in cell for cell in runs.values())
            row["older_prices"] = sorted({role for cell in runs.values() for role in cell.get("older_prices", ())})
            total = sum(cell["seconds"] for cell in runs.values()) or 1.0
            parts = {part for cell in runs.values() for part in cell["spent"]}
            row["share"] = {
                part: sum(cell["spent"].get(part, 0.0) for cell in runs.values()) / total for part in sorted(parts)
            }
            rows.append(row)
    return rows


def _count(cell: Cell, name: str) -> int:
    return int(cell.get(name, cell.get("search", {}).get(name, 0)))


def older_prices(rows: Sequence[Mapping[str, Any]]) -> str:
    """A line for each network of a `summary` whose cells were charged what other code took."""
    found: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        found[f"{row['network']} ({row['kind']})"].update(row["older_prices"])
    return "".join(
        f"{where}: charged by prices that are older than the code of {', '.join(sorted(roles))}; time them anew "
        "(manage.py landscape calibrate --out their folder) and run all of them again\n"
        for where, roles in found.items()
        if roles
    )


def left_out(cells: Sequence[Cell]) -> str:
    """A line for each network of which finished runs are not compared with the latest, and why."""
    done, current = _current(cells)
    terms = [(_group(cell), _terms(cell)) for cell in done]
    counts = Counter(
        (group, OTHER_OPERATORS if mine[:-1] == latest[:-1] else OTHER_TERMS)
        for group, mine in terms
        if mine != (latest := current[group])
    )
    return "".join(f"{network} ({kind}): {count} runs {why}\n" for ((kind, network), why), count in counts.items())


def versions_apart(rows: Sequence[Mapping[str, Any]]) -> str:
    """A line for each network of a `summary` whose arms were made by different versions of the code."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        found[f"{row['network']} ({row['kind']})"][row["version"]].append(row["arm"])
    lines = []
    for where, versions in found.items():
        if len(versions) > 1:
            told = "; ".join(f"{version}: {', '.join(arms)}" for version, arms in versions.items())
            lines.append(
                f"{where}: different versions of the code ({told}); run all of them again to compare within one\n"
            )
    return "".join(lines)
