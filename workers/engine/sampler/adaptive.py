"""Chameleon's Adaptive Sampling and Sample Synthesis (section 3.3, Algorithm 1)."""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from workers.engine.space import Choices, Sketch
from workers.messages.composition import MOST

MODES = {"literal": 1, "stepped": 8}
COLUMNS = ("knobs", "features")
SNAPS = ("space", "candidate", "best")
FEWEST = 8


class Adaptive:
    """Clusters the candidates and measures one configuration a cluster, of as few clusters as tell them apart.

    K-means runs with k from 8 to 63, never more than `count`, until `threshold` x L2 loss >= the previous loss (2.5;
    Table 7). `mode` is the step of k: "literal", 1 as printed, stops at 9 almost always, for the loss would have to
    fall 2.5-fold with one cluster more; "stepped", 8 as in the authors' program, at 16 mostly. `columns` is what is
    clustered: "knobs", all indices scaled by their knobs' sizes (the paper says configurations), or "features", the knobs'
    features, standardised.

    A centroid becomes a configuration by `snap`: "space" rounds the cluster's mean indices, which is the paper's reading
    and may give one that is visited or already in the plan; "candidate" takes the cluster's candidate nearest to the
    centroid; "best" its best-scored one, which is no longer the paper's. What is visited or in the plan is replaced by
    the per-knob mode of the candidates (Sample Synthesis), and if that is too, by the cluster's candidate nearest to
    the centroid that is neither. Candidates are what the explorer thinks fast, so what the cost model knows to be
    invalid is not among them.

    The method `chameleon-paper` has the paper's way; the program's is `AdaptiveProgram`. The default is what measured best:
    best speed after 160 measurements of a synthetic convolution, evolutionary search, plans of 32 of 256 candidates, ten
    seeds: 86 GFLOP/s, against 72 for the paper's way, 69 for greedy sampling (78 in plans of 9) and 82 for the diversity
    filter, of 89 at best.

    `figures`: "clusters" is the chosen k, "synthesised" how many of the plan are modes. Needs more candidates than it
    returns: a plan of 64, as the paper and the program have it, or a `pool` of `Search` of 4 or more.
    """

    def __init__(
        self,
        seed: int = 0,
        mode: str = "stepped",
        columns: str = "features",
        snap: str = "best",
        threshold: float = 2.5,
        restarts: int = 1,
    ) -> None:
        if mode not in MODES or columns not in COLUMNS or snap not in SNAPS:
            legal = (f"{name} one of {', '.join(known)}" for name, known in _LEGAL.items())
            raise ValueError("; ".join(legal))
        if threshold < 1 or restarts < 1:
            raise ValueError("threshold and restarts start at 1")
        self._seed = seed
        self._step = MODES[mode]
        self._columns = columns
        self._snap = snap
        self._threshold = threshold
        self._restarts = restarts
        self.figures: dict[str, int] = {}

    def sample(
        self,
        sketch: Sketch,
        candidates: Choices,
        scores: NDArray[np.float64],
        count: int,
        visited: Collection[tuple[int, ...]],
    ) -> Choices:
        count = min(count, len(candidates))
        table = self._table(sketch, candidates)
        labels, centres = self._clusters(table, count)
        away = np.square(table - centres[labels]).sum(axis=1)
        mode = self._mode(candidates)
        plan: dict[tuple[int, ...], None] = {}
        synthesised = 0
        for cluster in range(len(centres)):
            members = np.flatnonzero(labels == cluster)
            if not len(members):  # equal rows may leave a cluster empty
                continue
            members = members[np.argsort(away[members], kind="stable")]
            found = self._representative(candidates[members], members)
            if found in visited or found in plan:
                found = mode
                synthesised += found not in visited and found not in plan
            if found in visited or found in plan:
                rows = map(tuple, candidates[members].tolist())
                found = next((row for row in rows if row not in visited and row not in plan), found)
            if found not in visited:
                plan[found] = None
        self.figures = {"clusters": len(centres), "synthesised": synthesised}
        return np.asarray(list(plan), dtype=np.int32).reshape(len(plan), len(sketch.knobs))

    def labels(self, sketch: Sketch, candidates: Choices, count: int) -> NDArray[np.int32]:
        """Of which cluster each of `candidates` (n, k) is, (n,), where `count` may be returned at most."""
        return self._clusters(self._table(sketch, candidates), count)[0]

    def _mode(self, candidates: Choices) -> tuple[int, ...]:
        """Of each knob what most candidates have (Sample Synthesis)."""
        return tuple(int(np.bincount(column).argmax()) for column in candidates.T)

    def _representative(self, nearest_first: Choices, members: NDArray[np.intp]) -> tuple[int, ...]:
        if self._snap == "space":
            row = np.floor(nearest_first.mean(axis=0) + 0.5).astype(np.int32)
        elif self._snap == "best":
            row = nearest_first[int(np.argmin(members))]
        else:
            row = nearest_first[0]
        return tuple(row.tolist())

    def _table(self, sketch: Sketch, candidates: Choices) -> NDArray[np.float64]:
        """What is clustered, (n, columns)."""
        if self._columns == "knobs":
            return candidates / np.maximum(sketch.sizes - 1, 1)
        features = sketch.features(candidates).astype(np.float64)
        spread = features.std(axis=0)
        return features / np.where(spread > 0, spread, 1.0)

    def _clusters(self, table: NDArray[np.float64], count: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Labels (n,) and centres (k, columns) at the knee."""
        # A second to load, and only this sampler needs it. Its threads cost more than they bring at this size, and one
        # thread makes the sums reproducible.
        from sklearn.cluster import KMeans
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

        rng = np.random.default_rng(self._seed)
        most = min(count, MOST, len(np.unique(table, axis=0)))
        k, previous = min(FEWEST, most), math.inf
        with threadpool_limits(limits=1):
            while True:
                chance = int(rng.integers(2**31))
                means = KMeans(k, n_init=self._restarts, random_state=chance).fit(table)
                if self._threshold * means.inertia_ >= previous or k == most:
                    return means.labels_, means.cluster_centers_
                previous = float(means.inertia_)
                k = min(k + self._step, most)  # of 15, which a plan of 16 leaves it, 8 were half a plan


_LEGAL = {"mode": tuple(MODES), "columns": COLUMNS, "snap": SNAPS}
