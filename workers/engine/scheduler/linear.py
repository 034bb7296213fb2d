"""Static allocation linear in the work (DynaTune 5.2): operators with more FLOPs get more time."""

from __future__ import annotations

from collections.abc import Sequence

from workers.engine.ports import Decision, Progress, State
from workers.engine.scheduler.shown import short
from workers.engine.scheduler.standing import active, counted, work


class Linear:
    """The operator that is furthest behind its share of the time, weight x work over that of all unfinished ones.

    The paper's share is the number of floating-point operations; `Operator.work` is that number where there is any, and
    the weight counts an operator as often as the network runs it, as in its latency. Ties go to the larger share.
    """

    def __init__(self, patience: int | None = None) -> None:
        counted(patience)
        self._patience = patience

    def choose(self, progress: Sequence[Progress], slot_seconds: float) -> Decision | None:
        """See `Scheduler`; `terms` has the chosen one's share and how far it is behind it, in seconds."""
        going = active(progress, self._patience)
        if not going:
            return None
        amounts = [one.operator.weight * work(one) for one in going]
        shares = [amount / sum(amounts) for amount in amounts]
        # The slot to come counts as spent already, so that the first one goes to the largest share.
        time = sum(one.seconds for one in going) + max(slot_seconds, 1e-9)
        behind = [share * time - one.seconds for share, one in zip(shares, going, strict=True)]
        place = max(range(len(going)), key=lambda i: (behind[i], shares[i], -i))
        terms = {"share": short(shares[place]), "behind_seconds": short(behind[place])}
        return Decision(going[place].operator.index, "linear", terms)

    def observe(self, progress: Progress) -> None:
        """Nothing is learned."""

    def state(self) -> State:
        """JSON; the choice follows from the seconds already spent."""
        return {}

    def restore(self, state: State) -> None:
        """Inverse of `state`."""
