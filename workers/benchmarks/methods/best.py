"""Whether the recommended method is the best: time to within 5 % of the lowest latency that any method reached."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.benchmarks.interval import RESAMPLES
from workers.benchmarks.methods.compare import Runs, curve_of
from workers.benchmarks.methods.replayed import CURVE
from workers.engine.methods import BEST
from workers.landscapes.calibration import ORACLE

NEAR = 0.05
AUTO = "auto"
MOST = 1000.0
"""What a ratio to a method that never came there counts as."""

Groups = Mapping[tuple[str, str], Mapping[str, Runs]]
Units = list[tuple[str, int]]
Times = NDArray[np.float64]


def rivals(groups: Groups, kind: str) -> dict[str, dict[str, Any]]:
    """Of each rival, the ratio of its median time to the recommended method's, over all networks x seeds of this kind that all
    methods have: {name: {median, bounds, count}}; bounds are of 95 % by a bootstrap that draws networks and seeds, the same
    ones for both. {} without the recommended method, or without a rival."""
    times, units = times_near(groups, kind)
    auto = _auto(times)
    if auto is None or not units:
        return {}
    return {arm: _ratio(theirs, times[auto]) for arm, theirs in times.items() if arm != auto}


def by_network(groups: Groups, kind: str) -> dict[str, dict[str, Any]]:
    """Of each network, the ratio of the best rival's median time over its seeds to the recommended method's."""
    times, units = times_near(groups, kind)
    auto = _auto(times)
    others = [arm for arm in times if arm != auto]
    if auto is None or not others:
        return {}
    found = {}
    for network in dict.fromkeys(name for name, _ in units):
        rows = [place for place, (name, _) in enumerate(units) if name == network]
        best = min(others, key=lambda arm: float(np.median(times[arm][rows])))
        found[f"{network} ({kind}), {best}"] = _ratio(times[best][rows], times[auto][rows])
    return found


def times_near(groups: Groups, kind: str) -> tuple[dict[str, Times], Units]:
    """Seconds of each method, inf where it never came there, and the (network, seed) that they are of.

    On curves every seed is a network of its own, for it draws which recorded searches are replayed: there the lowest latency
    is that of the seed, elsewhere that of the network. The oracle is no method: it knows what comes.
    """
    networks = {name: arms for (of, name), arms in groups.items() if of == kind}
    shared = [set(arms) - {ORACLE} for arms in networks.values()]
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


def _auto(times: Mapping[str, Times]) -> str | None:
    """The recommended method may have been run by its own name."""
    return next((arm for arm in (AUTO, BEST.name) if arm in times), None)


def _ratio(theirs: Times, ours: Times) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, len(ours), (RESAMPLES, len(ours)))
    ratios = _over(np.median(theirs[drawn], axis=1), np.median(ours[drawn], axis=1))
    low, high = np.quantile(ratios, [0.025, 0.975], method="nearest")
    return {
        "median": float(_over(np.median(theirs), np.median(ours))),
        "bounds": (float(low), float(high)),
        "count": len(ours),
    }


def _over(theirs: Any, ours: Any) -> NDArray[np.float64]:
    """Ratios, up to 1000; where neither came there they are alike, and where only the other did the ratio is 0."""
    a, b = np.asarray(theirs, dtype=np.float64), np.asarray(ours, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.where(np.isinf(a) & np.isinf(b), 1.0, a / b)
    return np.asarray(np.minimum(found, MOST), dtype=np.float64)
