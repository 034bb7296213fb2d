"""The papers' claims, the targets set for this product, and what the cells say."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workers.benchmarks.cells import Cell
from workers.benchmarks.interval import Interval
from workers.benchmarks.methods.arms import AE, AE_AS, DIVERSE, DIVERSE_AE, SA, SA_AS
from workers.benchmarks.methods.compare import (
    Measure,
    gained,
    grouped,
    held,
    measurements_to_same,
    measuring,
    not_scheduling,
    operator_quality,
    quality,
    quality_in_time,
    ratios,
    seconds_to_same,
    steps_a_search,
    time_to_near,
    time_to_same,
    version_of,
)
from workers.benchmarks.methods.replayed import CURVE, SPACE
from workers.benchmarks.text_table import aligned

NOT_RUN = "not run"
NO_TARGET = "-"
EXACT = 1e-9


@dataclass(frozen=True)
class Claim:
    """`arm` against `base` by `measure` (a ratio, more is better): the median over seeds of every network at least
    `every`, except of a share `but` of them, and of none over `most`; of one at least `somewhere`; the median of the networks
    at least `median`.
    With none of these it is a figure to look at, and neither holds nor fails."""

    source: str
    text: str
    reported: str
    arm: str
    base: str
    measure: Measure
    kinds: tuple[str, ...]
    every: float | None = None
    but: float = 0.0
    most: float = math.inf
    somewhere: float | None = None
    median: float | None = None

    @property
    def target(self) -> str:
        words = []
        if self.every is not None:
            most = "" if not self.but else f" on {1 - self.but:.0%} of the networks"
            words.append(f">= {self.every:.2f}{most or ' everywhere'}")
        words += [f"<= {self.most:.2f}"] if self.most < math.inf else []
        words += [f">= {self.somewhere:.2f} somewhere"] if self.somewhere is not None else []
        words += [f"median >= {self.median:.2f}"] if self.median is not None else []
        return ", ".join(words) or NO_TARGET

    def holds(self, medians: Sequence[float]) -> bool | None:
        """Of the networks' medians, at least one; None without a target."""
        if self.target == NO_TARGET:
            return None
        needed = self.every is None or sum(m >= self.every - EXACT for m in medians) >= (1 - self.but) * len(medians)
        best = self.somewhere is None or max(medians) >= self.somewhere - EXACT
        within = max(medians) <= self.most + EXACT
        return bool(needed and within and best and (self.median is None or np.median(medians) >= self.median - EXACT))


ANY = (CURVE, "live")
SEARCH = (SPACE, "live")
EVERYWHERE = (CURVE, SPACE, "live")
_TIME = "time to the same latency"

CLAIMS = (
    Claim("DynaTune 5.1, Fig. 7", f"{_TIME}, DynaTune over sequential", "1.2-2.4x", "dynatune", "sequential", time_to_same,
          ANY, every=1.2, somewhere=2.4),
    *(
        Claim("DynaTune 5.2, Fig. 8", f"{_TIME}, DynaTune over {words}", "1.1-2.4x", "dynatune", base, time_to_same, ANY,
              every=1.1)
        for base, words in (("random_slots", "random"), ("round_robin", "round-robin"), ("linear", "linear"))
    ),
    *(
        Claim("DynaTune 5.3, Fig. 9", f"{_TIME}, DynaTune over dynamic allocation, {words}", "1-1.4x", "dynatune", base,
              time_to_same, ANY, every=1.0, somewhere=1.2)
        for base, words in (("dynamic_random", "random"), ("dynamic_round_robin", "round-robin"))
    ),
    Claim("DynaTune App. C, Fig. 20-21", f"{_TIME}, DynaTune over Ansor's gradient", "faster on 3 of 4", "dynatune",
          "gradient", time_to_same, ANY, every=1.0, but=0.25),
    Claim("DynaTune 5.1, Fig. 7", "time to the oracle's latency + 2 %, oracle over DynaTune", "close", "dynatune", "oracle",
          time_to_near, ANY, every=1 / 1.1),
    *(
        Claim("DynaTune App. A, Fig. 14-18", f"{_TIME}, DynaTune over {words}", "very similar", "dynatune", base,
              time_to_same, ANY, every=0.9)
        for base, words in (("epsilon_greedy", "epsilon-greedy"), ("softmax", "softmax"))
    ),
    Claim("DynaTune 5.4, Fig. 10", f"{_TIME}, DynaTune over Chameleon", "1.4-4.7x", "dynatune", "chameleon", time_to_same,
          SEARCH, every=1.4),
    # The paper's base is TVM's hand-written schedules, which are no longer in TVM: code without records is naive loops, and
    # first configurations are so much slower that nearly every run would pass.
    Claim("DynaTune 5.5, Fig. 11", "network at the end over its first configurations (paper: over untuned TVM)",
          "up to 26.7 %", "dynatune", "dynatune", gained, SEARCH),
    Claim("DynaTune 5.5, Fig. 11", "network at the end, DynaTune over sequential", "similar", "dynatune", "sequential",
          quality, SEARCH, every=0.97),
    # No claim of the paper: whether what it predicts may be shown to people.
    Claim("DynaTune 4.3", "share of slots that ended in the 80 % interval of the belief", "-", "dynatune", "dynatune", held,
          EVERYWHERE, every=0.7, most=0.9),
    Claim("DynaTune 5.5, Fig. 12", "share of the clock that is not scheduling", "98.6 %", "dynatune", "dynatune",
          not_scheduling, ANY, every=0.986),
    Claim("Chameleon 4.1, Fig. 7a", "search steps to the best, PPO under annealing", "2.88x", AE, SA, steps_a_search,
          SEARCH, median=2.88),
    Claim("Chameleon 4.2, Fig. 7b", "measurements for the same best, adaptive sampling, annealing", "1.98x", SA_AS, SA,
          measurements_to_same, SEARCH, median=1.98),
    Claim("Chameleon 4.2, Fig. 7b", "measurements for the same best, adaptive sampling, PPO", "2.33x", AE_AS, AE,
          measurements_to_same, SEARCH, median=2.33),
    Claim("Chameleon 4.2, Fig. 8", "network at the end, adaptive over diverse sampling, annealing", "13.5 %", SA_AS,
          DIVERSE, quality, SEARCH, median=1.135),
    Claim("Chameleon 4.2, Fig. 8", "network at the end, adaptive over diverse sampling, PPO", "19.0 %", AE_AS,
          DIVERSE_AE, quality, SEARCH, median=1.19),
    Claim("Chameleon 4.3, Fig. 10a", "time to the same best of an operator, Chameleon over AutoTVM", "4.82x", AE_AS, SA,
          seconds_to_same, SEARCH, median=4.82),
    Claim("Chameleon 4.3, Fig. 10a", "an operator at the end, Chameleon over AutoTVM", "1.17x", AE_AS, SA,
          operator_quality, SEARCH, median=1.17),
    Claim("Chameleon 4.3, Table 2", f"{_TIME}, Chameleon over AutoTVM", "4.45x (GPU)", AE_AS, SA, time_to_same,
          SEARCH, median=4.45),
    Claim("Chameleon 4.3, Table 3", "network at the end, Chameleon over AutoTVM", "up to 6.4 %", AE_AS, SA, quality,
          SEARCH, somewhere=1.064),
    Claim("AdaTune, evaluator", "measuring time a trial at the same result, adaptive under 500 runs", "-",
          "adatune-evaluator", SA, measuring, SEARCH, every=3.0),
    Claim("AdaTune", f"{_TIME}, AdaTune over AutoTVM", "1.3-3.9x", "adatune-paper", SA, time_to_same, SEARCH, every=1.3,
          median=2.0),
    Claim("AdaTune", "speed in equal time, AdaTune over AutoTVM", "up to 115 %", "adatune-paper", SA, quality_in_time, SEARCH,
          somewhere=2.15),
)  # fmt: skip


def evaluated(cells: Sequence[Cell], claims: Sequence[Claim] = CLAIMS) -> list[dict[str, Any]]:
    """A row a claim: {source, text, reported, target, networks: {name: interval}, apart: names of networks on which arm and
    base were made by different versions of the code, ours, holds: bool | None, cuda}."""
    groups = grouped(cells)
    rows = []
    for claim in claims:
        pairs = {
            f"{network} ({kind})": (arms[claim.base], arms[claim.arm])
            for (kind, network), arms in groups.items()
            if kind in claim.kinds and {claim.arm, claim.base} <= arms.keys()
        }
        found = {name: ratios(base, arm, claim.measure) for name, (base, arm) in pairs.items()}
        networks = {name: Interval.of(values) for name, values in found.items() if values}
        apart = [name for name in networks if len({version_of(runs) for runs in pairs[name]}) > 1]
        medians = [interval.median for interval in networks.values()]
        rows.append(
            {
                "source": claim.source,
                "text": claim.text,
                "reported": claim.reported,
                "target": claim.target,
                "networks": {name: vars(interval) for name, interval in networks.items()},
                "apart": apart,
                "ours": "; ".join(f"{name} {_ours(of, name in apart)}" for name, of in networks.items()) or NOT_RUN,
                "holds": claim.holds(medians) if medians else None,
                "cuda": NOT_RUN,
            }
        )
    return rows


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """For a terminal: a line a claim and network."""
    lines = [["claim", "paper", "target", "ours [95 %]", "holds", "CUDA"]]
    for row in rows:
        holds = NOT_RUN if not row["networks"] else {True: "yes", False: "no", None: NO_TARGET}[row["holds"]]
        lines.append([f"{row['source']}: {row['text']}", row["reported"], row["target"], "", holds, row["cuda"]])
        for name, found in row["networks"].items():
            lines.append([f"  {name}", "", "", _ours(Interval(**found), name in row["apart"]), "", ""])
    return aligned(lines)


def _ours(interval: Interval, apart: bool) -> str:
    return f"{interval}, two versions" if apart else str(interval)
