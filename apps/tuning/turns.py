"""Turns of the machine: a run that had it for long gives it up while somebody else waits for it, and waits behind them."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet

from apps.tuning.models import Job, TuningRun
from apps.tuning.states import ACTIVE, HELD, OVER, WAITING, State
from workers.messages.names import QUEUE_MEASURE, QUEUE_PREPARE, TASKS_OF, THREADS
from workers.messages.spec import Budget

TURN = timedelta(minutes=10)
"""What a form offers first. In the first half a minute nothing is measured: the network is imported again."""
LATE = 3 * TURN
"""Whoever has waited so long, for one that had the machine all the while, waits no longer, whatever that one's child tells."""
LATER = Q(task=Job.Task.BASELINE, run__job__state=State.PAUSED)
"""What a paused run is compared with waits for it (`early`), and counts with it when it is resumed."""
END = 120.0
"""Seconds that a run may have left to be let come to its end."""
_NEVER = (0, datetime.min.replace(tzinfo=UTC))
MEASURING, PREPARING = TASKS_OF[QUEUE_MEASURE], TASKS_OF[QUEUE_PREPARE]


def next_of(jobs: QuerySet[Job], tasks: Collection[str]) -> tuple[Any, Any]:
    """Key and owner of that of the `jobs` whose turn it is: the account for which nothing of these `tasks` is done comes first,
    then the one whose turn was longest ago, with its oldest. (None, None) where there are none."""
    waiting = list(jobs.order_by("created", "pk").values_list("pk", "owner"))
    turns = had({owner for _, owner in waiting}, tasks)
    return min(waiting, key=lambda row: turns[row[1]], default=(None, None))


def had(owners: Collection[Any], tasks: Collection[str]) -> dict[Any, tuple[int, datetime]]:
    """By account, the one that comes first with the least: how many of these `tasks` are done for it, and when one was last
    begun."""
    turns = dict.fromkeys(owners, _NEVER)
    if len(turns) > 1:
        theirs = Job.objects.filter(task__in=tasks, owner__in=owners).exclude(claimed=None).order_by()
        latest = theirs.values_list("owner").annotate(
            held=Count("state", filter=Q(state__in=HELD)), last=Max("claimed")
        )
        turns |= {owner: (held, last) for owner, held, last in latest}
    return turns


def next_asked(asked: Any, ready: Q, tasks: Collection[str]) -> Any:
    """The key of what has the machine next, or a place beside it, of those of these `tasks` that are `ready`; None where none
    is. A message that `asked` for one only says that something waits, and some come twice: it decides between what one account
    has waiting."""
    jobs = Job.objects.filter(ready, task__in=tasks)
    key, owner = next_of(jobs, tasks)
    return asked if jobs.filter(pk=asked, owner=owner).exists() else key


def early(now: datetime) -> QuerySet[Job]:
    """Baselines that are not to be taken yet, as they would hold up whoever has the machine: of a run that is paused, or is to
    be, of one that waits for its first turn behind another that waits, and of one that waits where an attempt at them ended
    already, as a slow network's does beside another's run. What was asked for again is taken whatever its run does."""
    key, _ = next_of(Job.objects.filter(waiting(now), task=Job.Task.TUNE), MEASURING)
    behind = Q(run__job__state__in=WAITING, run__job__started=None) & (~Q(run__job=key) | Q(attempt__gt=0))
    again = Job.objects.filter(run=OuterRef("run"), task=Job.Task.BASELINE, state__in=OVER)
    paused = Q(run__job__state=State.PAUSED) | Q(run__job__wanted=Job.Wanted.PAUSE)
    return Job.objects.filter(paused | behind, ~Exists(again), task=Job.Task.BASELINE)


def held_up(now: datetime) -> Q:
    """What has no place beside the machine yet, whoever asks for one: that of accounts that leave the last one to others, and
    what is `early`."""
    crowded = Q(state=State.QUEUED, task__in=PREPARING, owner__in=crowding())  # one whose worker died has its place
    return crowded | Q(pk__in=early(now).values("pk"))


def over(job: Job, since: datetime, now: datetime) -> bool:
    """Whether a run that has had the machine `since` then is to give it up. Not before it has measured something, when the next
    attempt would begin where this one did, nor just before its end; but both are what its child tells, which keeps nobody
    waiting for LATE, and longer only by as many times as its attempts got nowhere. A clock that went back ends a turn early,
    not never."""
    held = now - since
    if job.task != Job.Task.TUNE or timedelta(0) <= held < TURN:
        return False
    left = eta(TuningRun.objects.get(job=job))
    others = Job.objects.filter(waiting(now), task__in=MEASURING).exclude(owner=job.owner_id)
    if job.fruitless or (left is not None and left <= END):
        late = held >= LATE * max(1, job.fruitless)
        others = others.filter(queued__lte=now - LATE) if late else others.none()
    return others.exists()


def crowding(but: Any = None) -> list[Any]:
    """Accounts that leave the last place beside the machine to others who are active: what they have there, `but` for that job,
    may take hours."""
    held = Job.objects.filter(task__in=PREPARING, state__in=HELD).exclude(pk=but).order_by().values_list("owner")
    full = [owner for owner, count in held.annotate(count=Count("pk")) if count >= THREADS[QUEUE_PREPARE] - 1]
    active = Job.objects.filter(state__in=ACTIVE).exclude(LATER).exclude(owner=None)
    return [owner for owner in full if active.exclude(owner=owner).exists()]


def waiting(now: datetime) -> Q:
    """Jobs that may be claimed at once, of those that nobody has."""
    return Q(state=State.QUEUED) & (Q(lease_until=None) | Q(lease_until__lt=now))


def eta(run: TuningRun) -> float | None:
    """Seconds of tuning until the first limit of time or trials at the pace so far; None without one."""
    return Budget(run.budget_seconds, run.budget_trials).left(run.clock, run.trials)
