"""How far an operator's best gets in a slot: the theory of records, corrected by what came of the run's earlier slots.

The posterior of a learning curve says where the curve may go. Where the best will be is another question: most slots bring
nothing, and what the others bring is luck, with a long tail. In 15 recorded runs of up to three minutes (905 slots) 77 % of the
slots brought nothing, and 17 % of the bests lay in the middle 80 % of the posterior.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from workers.engine.ports import State

TYPICAL, DOUBT = 0.03, 2.0
"""Gain of a record (of the logarithm of the time) and the number of records that it counts as, beside an operator's own; in
the recorded runs the median was 0.026."""
LARGEST = 0.3
"""Most that one record counts: a jump tells little of the size of the next gain."""
FIRST = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Chances that stand for the slots before the first: as a right formula would have them."""
LASTING = 200
"""Slots that are remembered: a search of late is not what it was."""
SURE = 0.998


class Records:
    """What the operators of one run will come to.

    Of configurations that are drawn alike, with an exponential tail of the logarithm of their speed of scale s, the best of n
    gains at most g by m more with the chance n / (n + m e^(-g / s)): n / (n + m) for nothing (Renyi 1962), and gains of scale s
    (the spacings of exponential records). A search draws otherwise: it learns, and it runs out. The chance for which the
    formula is asked is therefore the one that was right in this run: among the chances that it gave to what came of the slots
    so far, the quantile that was wanted (conformal prediction: Vovk et al. 2005, 2.2).
    """

    def __init__(self) -> None:
        self._seen: dict[int, tuple[int, float, int]] = {}
        self._chances: list[float] = []

    def observe(self, operator: int, curve: Sequence[float], slots: int) -> None:
        """After a slot of that operator, or what another's brought it; `curve` and `slots` as in `Progress`."""
        if not (curve and math.isfinite(curve[-1])):
            return
        count, best, before = self._seen.get(operator, (len(curve), curve[-1], slots))
        self._seen[operator] = len(curve), curve[-1], slots
        more, gain = len(curve) - count, math.log(best / curve[-1])
        if more > 0 and slots > before:
            # No gain is the least that can come: whatever was told held.
            came = count / (count + more * math.exp(-gain / scale(curve[:count]))) if gain > 0 else 0.0
            self._chances = [*self._chances, came][-LASTING:]

    def least(self, curve: Sequence[float], ahead: int, chance: float) -> float:
        """Seconds that an operator's best is not under after `ahead` more configurations, with that chance: the best so far,
        where that is likelier to stay."""
        right = min(SURE, float(np.quantile([*FIRST, *self._chances], chance, method="higher")))
        if not (curve and math.isfinite(curve[-1]) and right > 0):
            return curve[-1] if curve else math.inf
        gain = scale(curve) * math.log(ahead * right / (len(curve) * (1 - right)))
        return curve[-1] * math.exp(-max(0.0, gain))

    def state(self) -> State:
        """JSON."""
        return {"seen": {str(operator): list(seen) for operator, seen in self._seen.items()}, "chances": self._chances}

    def restore(self, state: State) -> None:
        """Inverse of `state`."""
        # Checkpoints of earlier versions do not say after how many slots: then the next one counts.
        self._seen = {int(o): (count, best, *(slots or [0])) for o, (count, best, *slots) in state["seen"].items()}
        self._chances = list(state["chances"])


def scale(curve: Sequence[float]) -> float:
    """Mean gain of a record of an operator, shrunk to what is typical."""
    times = np.asarray(curve, dtype=np.float64)
    gains = -np.diff(np.log(times[np.isfinite(times)]))
    gains = np.minimum(gains[gains > 0], LARGEST)
    return float((TYPICAL * DOUBT + gains.sum()) / (DOUBT + len(gains)))
