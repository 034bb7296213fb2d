"""New runs: what can be tuned as asked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from django.db import DatabaseError, transaction

from apps.catalog.models import Network, Target
from apps.core import clock
from apps.core.errors import Refused
from apps.core.full_disk import unkept
from apps.tuning import dispatch
from apps.tuning.methods import OFFERED
from apps.tuning.models import Job, TuningRun
from apps.tuning.requests.baselines import find_baselines
from apps.tuning.requests.limits import check_active
from apps.tuning.states import OVER
from apps.tuning.transitions import announce
from workers.messages.baselines import PACKAGES
from workers.messages.methods import PRESETS
from workers.messages.spec import ALL, AUTO, COMPUTE, LAYOUTS, MAX_TRIALS, Budget

SHOWN = ("name", "system", "machine", "flags")
"""Of the hardware, what a report says."""
TWICE = timedelta(seconds=10)
"""A second press of a button within this time means the run that the first one began."""


def create_run(
    owner: Any,
    network: Network,
    target: Target,
    method: str,
    budget: Budget,
    *,
    seed: int = 0,
    parts: Mapping[str, str] | None = None,
    layout: str = AUTO,
    operators: str = ALL,
    reuse: bool = True,
    within: timedelta = timedelta(0),
) -> TuningRun:
    """A run, queued; `reuse` starts it from what earlier runs found. One that was asked for alike `within` that time is given
    in its place. Raises Refused for whatever cannot be tuned as asked.
    """
    _check_network(owner, network)
    if target.state != Target.State.READY:
        raise Refused(target.name, "it was not measured yet", "wait until its page says ready, or measure it again")
    _check_choices(method, parts or {}, layout, operators, seed)
    _check_budget(budget)
    asked: dict[str, Any] = {
        "owner": owner,
        "network": network,
        "target": target,
        "method": method,
        "layout": layout,
        "operators_asked": operators,
        "seed": seed,
        "budget_seconds": budget.seconds,
        "budget_trials": budget.trials,
        "budget_latency": budget.target_latency,
        "budget_gain": budget.min_gain,
        "reuse": reuse,
    }
    try:
        with transaction.atomic():
            if not Network.objects.select_for_update(no_key=True).filter(pk=network.pk, owner=owner).first():
                raise _unknown(network)
            if alike := _alike(asked, parts or {}, within):
                return alike
            check_active(owner)
            job = Job.objects.create(task=Job.Task.TUNE, owner=owner, network=network, target=target)
            run = TuningRun.objects.create(
                job=job, shapes=network.shapes, machine=_machine(target), parts=dict(parts or {}), **asked
            )
            find_baselines(run)
            dispatch.queue(job)
            announce(job.pk)
    except DatabaseError as error:
        next_step = "reload the page: something was deleted"
        raise unkept(error, network.name, "the run cannot be kept", next_step) from error
    return run


def _alike(asked: Mapping[str, Any], parts: Mapping[str, str], within: timedelta) -> TuningRun | None:
    """Inside a transaction that holds the network's row: of two presses that come at once the second finds the first one's."""
    lately = (clock.now() - within, clock.now() + within)  # not of a clock that was ahead
    rows = TuningRun.objects.filter(**asked, created__range=lately, job__wanted=Job.Wanted.CONTINUE)
    # Compared here: whether two JSON columns are equal not every database can tell.
    going = rows.exclude(job__state__in=OVER).order_by("-created")
    return next((run for run in going if within and run.parts == parts and run.shapes == run.network.shapes), None)


def _machine(target: Target) -> dict[str, Any]:
    return {
        "name": target.name,
        "hardware": {key: target.hardware[key] for key in SHOWN if key in target.hardware},
        "tvm": target.tvm,
        "threads": target.threads,
        "peak_flops": target.peak_flops,
        "bandwidth": target.bandwidth,
        "versions": _versions(),
    }


def _versions() -> dict[str, str]:
    """Of what baselines are taken with, as it is installed now; the site and its workers share one installation."""
    found = {}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _check_network(owner: Any, network: Network) -> None:
    if network.owner_id != owner.pk:
        raise _unknown(network)
    if network.state != Network.State.READY:
        raise Refused(network.name, f"it is {network.state}", network.next_step or "wait until it was inspected")
    missing = [port["name"] for port in network.inspection.get("inputs", ()) if port["name"] not in network.shapes]
    if missing:
        raise Refused(network.name, f"the size of input {missing[0]} is open", "choose its sizes on the network's page")


def _unknown(network: Network) -> Refused:
    return Refused(network.pk, "there is no such network", "choose one of yours")


def _check_choices(method: str, parts: Mapping[str, str], layout: str, operators: str, seed: int) -> None:
    if method not in PRESETS:
        raise Refused(method, "there is no such method", f"choose one of {', '.join(PRESETS)}")
    for role, part in parts.items():
        if role not in OFFERED:
            raise Refused(role, "it is no part of a method", f"parts are {', '.join(OFFERED)}")
        if part not in OFFERED[role]:
            word = role.replace("_", " ")
            raise Refused(part, f"it is no {word} that a run may have", f"choose one of {', '.join(OFFERED[role])}")
    if layout not in LAYOUTS:
        raise Refused(layout, "there is no such layout", f"choose one of {', '.join(LAYOUTS)}")
    if operators not in (ALL, COMPUTE):
        raise Refused(operators, "a run cannot be given these operators alone", f"choose {ALL} or {COMPUTE}")
    if not 0 <= seed < 1 << 63:
        raise Refused(seed, "a seed is a whole number from 0 on", "choose 0 if it does not matter")


def _check_budget(budget: Budget) -> None:
    """At least one limit, all of them finite and more than nothing; raises Refused."""
    limits = {
        "time": budget.seconds,
        "trials": budget.trials,
        "target latency": budget.target_latency,
        "expected gain": budget.min_gain,
    }
    given = {name: limit for name, limit in limits.items() if limit is not None}
    if not given:
        raise Refused("budget", "it has no limit", "give a time, trials, a latency to reach or a gain to be expected")
    for name, limit in given.items():
        if not (math.isfinite(limit) and limit > 0):
            raise Refused(limit, f"the {name} of a budget must be greater than 0", "give another number")
    if budget.trials is not None and budget.trials > MAX_TRIALS:
        raise Refused(budget.trials, f"a run measures at most {MAX_TRIALS} configurations", "give a smaller number")
    if budget.min_gain is not None and budget.min_gain >= 1:
        raise Refused(budget.min_gain, "no gain is the whole latency", "give a share under 1, 0.01 is 1 %")
