"""What users ask for: runs, pauses, stops, artifacts, shapes, a new look at the machine."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from django.contrib.auth import get_user_model
from django.db import DatabaseError, transaction

from apps.catalog.models import Network, Target
from apps.core import clock
from apps.core.errors import Refused
from apps.tuning import dispatch
from apps.tuning.methods import LAYOUTS, METHODS, ROLES
from apps.tuning.models import Job, TuningRun
from apps.tuning.states import ACTIVE, State
from apps.tuning.transitions import announce, move
from workers.messages import Budget

Word = Literal["pause", "resume", "stop", "keep"]
MAX_DIMENSION = 1 << 31
MAX_TRIALS = 10_000_000
MAX_ACTIVE_RUNS = 20
"""Of one owner, waiting or running."""


def enqueue(task: str, owner: Any, **about: Any) -> Job:
    """Inside a transaction: a job and its message."""
    job = Job.objects.create(task=task, owner=owner, **about)
    dispatch.queue(job)
    return job


def create_run(
    owner: Any,
    network: Network,
    target: Target,
    method: str,
    budget: Budget,
    *,
    seed: int = 0,
    parts: Mapping[str, str] | None = None,
    layout: str = "auto",
    operators: str = "all",
    reuse: bool = True,
) -> TuningRun:
    """A run, queued; `reuse` starts it from what earlier runs found. Raises Refused for whatever cannot be tuned as
    asked.
    """
    _check_network(owner, network)
    if target.state != Target.State.READY:
        raise Refused(
            target.name, "this machine was not measured yet", "wait until its page says ready, or measure it again"
        )
    _check_choices(method, parts or {}, layout, seed)
    check_budget(budget)
    try:
        with transaction.atomic():
            _check_active(owner)
            job = Job.objects.create(task=Job.Task.TUNE, owner=owner, network=network, target=target)
            run = TuningRun.objects.create(
                job=job,
                owner=owner,
                network=network,
                target=target,
                shapes=network.shapes,
                machine=_machine(target),
                method=method,
                parts=dict(parts or {}),
                layout=layout,
                operators_asked=operators,
                seed=seed,
                budget_seconds=budget.seconds,
                budget_trials=budget.trials,
                budget_latency=budget.target_latency,
                reuse=reuse,
            )
            _find_baselines(run)
            dispatch.queue(job)
            announce(job.pk)
    except DatabaseError as error:
        raise Refused(
            network.name, f"the run cannot be kept ({error})", "reload the page: something was deleted"
        ) from error
    return run


def _find_baselines(run: TuningRun) -> None:
    """Inside a transaction: baselines of an earlier run of the same work on the same machine, or a job that takes them."""
    runs = TuningRun.objects.filter(network=run.network, target=run.target).exclude(pk=run.pk).exclude(baselines=[])
    # Compared here: whether two JSON columns are equal, whatever the order of their keys, not every database can tell.
    earlier = next((row for row in runs.order_by("-created").iterator(100) if _work(row) == _work(run)), None)
    if earlier is not None:
        TuningRun.objects.filter(pk=run.pk).update(baselines=earlier.baselines)
        run.baselines = earlier.baselines
    else:
        enqueue(Job.Task.BASELINE, run.owner, run=run, network=run.network, target=run.target)


def _machine(target: Target) -> dict[str, Any]:
    return {
        "tvm": target.tvm,
        "threads": target.threads,
        "peak_flops": target.peak_flops,
        "bandwidth": target.bandwidth,
    }


def _work(run: TuningRun) -> tuple[Any, ...]:
    """What a baseline's time depends on; a peak that was measured anew changes nothing."""
    return run.shapes, run.machine["threads"], run.machine["tvm"]


def _check_active(owner: Any) -> None:
    """Inside a transaction: the owner's row is locked, so that of two that come at once the second counts the first."""
    get_user_model().objects.select_for_update(no_key=True).filter(pk=owner.pk).first()
    active = Job.objects.filter(owner=owner, task=Job.Task.TUNE, state__in=ACTIVE).count()
    if active >= MAX_ACTIVE_RUNS:
        raise Refused(
            active,
            f"an account has at most {MAX_ACTIVE_RUNS} runs that wait or run",
            "wait until one ends, or stop one",
        )


def _check_network(owner: Any, network: Network) -> None:
    if network.owner_id != owner.pk:
        raise Refused(network.pk, "there is no such network", "choose one of yours")
    if network.state != Network.State.READY:
        raise Refused(network.name, f"it is {network.state}", network.next_step or "wait until it was inspected")
    missing = [port["name"] for port in network.inspection.get("inputs", ()) if port["name"] not in network.shapes]
    if missing:
        raise Refused(network.name, f"the size of input {missing[0]} is open", "choose its sizes on the network's page")


def _check_choices(method: str, parts: Mapping[str, str], layout: str, seed: int) -> None:
    if method not in METHODS:
        raise Refused(method, "there is no such method", f"choose one of {', '.join(METHODS)}")
    for role in parts:
        if role not in ROLES:
            raise Refused(role, "it is no part of a method", f"parts are {', '.join(ROLES)}")
    if layout not in LAYOUTS:
        raise Refused(layout, "there is no such layout", f"choose one of {', '.join(LAYOUTS)}")
    if not 0 <= seed < 1 << 63:
        raise Refused(seed, "a seed is a whole number from 0 on", "choose 0 if it does not matter")


def check_budget(budget: Budget) -> None:
    """At least one limit, all of them finite and more than nothing; raises Refused."""
    limits = {"time": budget.seconds, "trials": budget.trials, "target latency": budget.target_latency}
    given = {name: limit for name, limit in limits.items() if limit is not None}
    if not given:
        raise Refused("budget", "it has no limit", "give a time, a number of trials or a latency to reach")
    for name, limit in given.items():
        if not (math.isfinite(limit) and limit > 0):
            raise Refused(limit, f"the {name} of a budget must be greater than 0", "give another number")
    if budget.trials is not None and budget.trials > MAX_TRIALS:
        raise Refused(budget.trials, f"a run measures at most {MAX_TRIALS} configurations", "give a smaller number")


def choose_shapes(network: Network, owner: Any, shapes: Mapping[str, Sequence[int]]) -> Network:
    """Sizes for the dynamic dimensions of a network; fixed ones must stay. Raises Refused."""
    if network.owner_id != owner.pk or network.state != Network.State.READY:
        raise Refused(network.name, "it cannot be given sizes now", "wait until it was inspected")
    ports = {port["name"]: port["shape"] for port in network.inspection["inputs"]}
    for name in shapes.keys() - ports.keys():
        raise Refused(name, "the network has no such input", f"it has {', '.join(ports)}")
    chosen = {name: _sizes(name, declared, shapes.get(name)) for name, declared in ports.items()}
    _check_symbols(network.inspection.get("dynamic", ()), chosen)
    Network.objects.filter(pk=network.pk).update(shapes=chosen)
    network.shapes = chosen
    return network


def _sizes(name: str, declared: Sequence[Any] | None, given: Sequence[int] | None) -> list[int]:
    sizes = list(given if given is not None else declared or ())
    if declared is not None and len(sizes) != len(declared):
        raise Refused(sizes, f"input {name} has {len(declared)} dimensions", "give as many sizes")
    for axis, size in enumerate(sizes):
        fixed = declared[axis] if declared is not None else None
        if not isinstance(size, int) or not 0 < size < MAX_DIMENSION:
            raise Refused(
                size, f"dimension {axis} of input {name} needs a whole number greater than 0", "give its size"
            )
        if isinstance(fixed, int) and fixed != size:
            raise Refused(size, f"dimension {axis} of input {name} is {fixed} in the file", "leave it as it is")
    return sizes


def _check_symbols(dynamic: Sequence[Mapping[str, Any]], chosen: Mapping[str, Sequence[int]]) -> None:
    known: dict[str, int] = {}
    for dimension in dynamic:
        symbol, size = dimension["symbol"], chosen[dimension["input"]][dimension["axis"]]
        if symbol is not None and known.setdefault(symbol, size) != size:
            raise Refused(size, f"{symbol} is {known[symbol]} elsewhere and must be one size", "give equal sizes")


def request(job: Job, owner: Any, word: Word) -> None:
    """Pause, resume, stop, or stop and keep the best as an artifact. Asking twice is no mistake.

    Raises Refused for what cannot be.
    """
    if job.owner_id != owner.pk:
        raise Refused(job.pk, "there is no such job", "choose one of yours")
    if word not in _WORDS:
        raise Refused(word, "no such request", "ask for pause, resume, stop or keep")
    if word not in ("stop", "keep") and job.task != Job.Task.TUNE:
        raise Refused(word, f"a job that is to {job.task} can only be stopped", "stop it, or let it end")
    with transaction.atomic():
        row = Job.objects.select_for_update().get(pk=job.pk)
        if not _WORDS[word](row):
            raise Refused(word, f"the job is {row.state}", "reload the page to see what it does now")
    job.refresh_from_db()


def _pause(job: Job) -> bool:
    if job.state == State.RUNNING:
        return _want(job, "pause")
    if job.state in (State.QUEUED, State.INTERRUPTED):
        return move(job.pk, State.PAUSED)
    return job.state == State.PAUSED


def _resume(job: Job) -> bool:
    if job.state == State.RUNNING and job.wanted == Job.Wanted.PAUSE:
        return _want(job, "continue")
    if job.state in (State.PAUSED, State.FAILED):
        TuningRun.objects.filter(job=job).update(finished_reason="")
        moved = move(job.pk, State.QUEUED, wanted="continue", fruitless=0, error="", next_step="", ended=None)
        dispatch.queue(job)
        return moved
    return job.state in ACTIVE and job.state != State.STOPPING


def _stop(job: Job) -> bool:
    if job.state == State.RUNNING:
        return move(job.pk, State.STOPPING, wanted="stop")
    if job.state in (State.QUEUED, State.PAUSED, State.INTERRUPTED):
        TuningRun.objects.filter(job=job).update(finished_reason="stopped")
        return move(job.pk, State.DONE, wanted="continue", ended=clock.now())
    return job.state == State.STOPPING


def _keep(job: Job) -> bool:
    if job.state == State.RUNNING:
        return move(job.pk, State.STOPPING, wanted="keep")
    if _stop(job):
        compile_if_measured(TuningRun.objects.get(job=job))
        return True
    return False


_WORDS = {"pause": _pause, "resume": _resume, "stop": _stop, "keep": _keep}


def _want(job: Job, word: str) -> bool:
    Job.objects.filter(pk=job.pk).update(wanted=word)
    announce(job.pk)
    return True


def compile_if_measured(run: TuningRun) -> Job | None:
    """Inside a transaction: an artifact of the best so far, if every operator has a best."""
    operators = list(run.operators.values_list("best_seconds", flat=True))
    if not operators or None in operators:
        return None
    waiting = Job.objects.filter(run=run, task=Job.Task.COMPILE, state__in=ACTIVE).first()
    return waiting or enqueue(Job.Task.COMPILE, run.owner, run=run, network=run.network, target=run.target)


def request_artifact(run: TuningRun, owner: Any) -> Job:
    """Compiles the best so far; a job that does so already is returned instead. Raises Refused."""
    if run.owner_id != owner.pk:
        raise Refused(run.pk, "there is no such run", "choose one of yours")
    with transaction.atomic():
        Job.objects.select_for_update().get(pk=run.job_id)
        job = compile_if_measured(run)
    if job is None:
        open_ = run.operators.filter(best_seconds=None).count()
        what = f"{open_} operators have no valid configuration yet" if open_ else "nothing was measured yet"
        raise Refused(run, what, "wait, or give the run more time")
    return job


def ensure_local_target() -> Target:
    """This machine; the first call has it measured."""
    with transaction.atomic():
        target, _ = Target.objects.get_or_create(kind="local", defaults={"name": "This machine"})
        if target.state == Target.State.NEW and not _being_measured(target):
            enqueue(Job.Task.HARDWARE, None, target=target)
    return target


def remeasure(target: Target, user: Any) -> Job:
    """Measures the machine again; what is known stays in use until then."""
    with transaction.atomic():
        row = Target.objects.select_for_update().get(pk=target.pk)
        if row.state == Target.State.FAILED:
            Target.objects.filter(pk=row.pk).update(state=Target.State.NEW, error="", next_step="")
        return _being_measured(row) or enqueue(Job.Task.HARDWARE, user, target=row)


def _being_measured(target: Target) -> Job | None:
    return Job.objects.filter(target=target, task=Job.Task.HARDWARE, state__in=ACTIVE).first()
