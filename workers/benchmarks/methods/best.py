"""Whether the recommended method is the best: time to within 5 % of the lowest latency that any method reached."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from workers.benchmarks.interval import FEWEST, RESAMPLES, Interval, median
from workers.benchmarks.methods.compare import Runs
from workers.benchmarks.methods.reach import curve_of
from workers.benchmarks.methods.replayed import CURVE
from workers.messages.composition import KNOWING
from workers.messages.methods import BEST

NEAR = 0.05
AUTO = "auto"
MOST = 1000.0
"""What a ratio to a method that never came there counts as; 1 / MOST where ours is the one that did not."""

Groups = Mapping[tuple[str, str], Mapping[str, Runs]]
Units = list[tuple[str, int]]
Times = NDArray[np.float64]


def rivals(groups: Groups, kind: str) -> dict[str, Interval]:
    """Of each rival, how many times as long as the recommended method it took: the median over all networks of this kind that
    all methods have of the median over their seeds. {} without the recommended method, or without a rival."""
    return _over(recommended(groups, kind), groups, kind)


def by_network(groups: Groups, kind: str) -> dict[str, Interval]:
    """Of each network, how many times as long as the recommended method its best rival took, median over the seeds: of all that
    the network has for as many seeds, whatever another lacks."""
    ours, found = recommended(groups, kind), {}
    for (of, network), every in groups.items():
        seeds = every.get(ours, {}).keys()
        arms = {name: cells for name, cells in every.items() if not _is_method(name) or seeds <= cells.keys()}
        ratios = _over(ours, {(of, network): arms}, kind)
        if ratios:
            best = min(ratios, key=lambda arm: ratios[arm].median)
            found[f"{network} ({kind}), {best}"] = ratios[best]
    return found


def lacking(groups: Groups, kind: str) -> list[str]:
    """Methods that some network of this kind lacks, so that `rivals` leaves them out."""
    networks = [arms for (of, _), arms in groups.items() if of == kind]
    some = {arm for arms in networks for arm in arms if _is_method(arm)}
    return sorted(arm for arm in some if not all(arm in arms for arms in networks))


def times_near(groups: Groups, kind: str) -> tuple[dict[str, Times], Units]:
    """Seconds of each method, inf where it never came there, and the (network, seed) that they are of.

    On curves every seed is a network of its own, for it draws which recorded searches are replayed: there the lowest latency
    is that of the seed, elsewhere that of the network.
    """
    networks = {name: arms for (of, name), arms in groups.items() if of == kind}
    shared = [set(filter(_is_method, arms)) for arms in networks.values()]
    arms = sorted(set.intersection(*shared)) if shared else []
    times: dict[str, list[float]] = {arm: [] for arm in arms}
    units: Units = []
    for name, every in networks.items():
        if not arms:
            break
        seeds = sorted(set.intersection(*(set(every[arm]) for arm in arms)))
        finals = {seed: [final for arm in arms if (final := every[arm][seed]["latency"])] for seed in seeds}
        lowest = min((final for found in finals.values() for final in found), default=0.0)
        for seed in seeds:
            if not finals[seed]:
                continue
            wanted = (min(finals[seed]) if kind == CURVE else lowest) * (1 + NEAR)
            units.append((name, seed))
            for arm in arms:
                reached = curve_of(every[arm][seed]).time_to(wanted)
                times[arm].append(np.inf if reached is None else reached)
    return {arm: np.asarray(found) for arm, found in times.items()}, units


def _is_method(arm: str) -> bool:
    """The oracle is none: it knows what comes."""
    return arm.partition("+")[0] != KNOWING


def recommended(groups: Groups, kind: str) -> str:
    """What is judged: `auto` where every network has it, else what it is by its own name."""
    return AUTO if all(AUTO in arms for (of, _), arms in groups.items() if of == kind) else BEST.name


def _over(ours: str, groups: Groups, kind: str) -> dict[str, Interval]:
    times, units = times_near(groups, kind)
    if ours not in times or not units:
        return {}
    return {arm: _ratio(theirs, times[ours], units) for arm, theirs in times.items() if arm != ours}


def _ratio(theirs: Times, ours: Times, units: Units) -> Interval:
    """In logarithms: networks differ in their times by orders of magnitude, and twice as long weighs as much as half. Bounds
    are of 95 % by a bootstrap that draws networks, and of each its seeds; None for fewer than FEWEST units."""
    logs, names = _logs(theirs, ours), np.asarray([name for name, _ in units])
    every = [logs[names == name] for name in dict.fromkeys(names.tolist())]
    middle = float(np.exp2(_middle(np.asarray([_middle(seeds) for seeds in every]))))
    if len(logs) < FEWEST:
        return Interval(middle, None, len(logs))
    rng, drawn = np.random.default_rng(0), (RESAMPLES, len(every))
    medians = np.stack([_middle(seeds[rng.integers(0, len(seeds), (*drawn, len(seeds)))]) for seeds in every])
    chosen = np.take_along_axis(medians, rng.integers(0, len(every), (1, *drawn)), axis=0)[0]
    low, high = np.exp2(np.percentile(_middle(chosen), [2.5, 97.5]))
    return Interval(middle, (float(low), float(high)), len(logs))


def _middle(logs: Times) -> Times:
    return median(logs, lambda ends: np.abs(ends) > np.log2(MOST) - 1e-9)


def _logs(theirs: Times, ours: Times) -> Times:
    """log2 of their times over ours, seed by seed, not beyond that of MOST; where neither came there they are alike."""
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = np.where(np.isinf(theirs) & np.isinf(ours), 1.0, theirs / ours)
    found: Times = np.log2(np.clip(ratios, 1 / MOST, MOST))
    return found
