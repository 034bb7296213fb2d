"""Who gets the next slot. A scheduler joins by one file and one line in `SCHEDULERS`."""

from dataclasses import replace

from workers.engine.errors import UnknownPart
from workers.engine.ports import Scheduler
from workers.engine.scheduler.dynatune import PAPER_RULE, PRODUCT_RULE, DynaTune, Rule
from workers.engine.scheduler.round_robin import RoundRobin
from workers.engine.scheduler.sequential import Sequential
from workers.engine.scheduler.setting import Factory, Setting


def _dynatune(rule: Rule) -> Factory:
    def build(setting: Setting) -> Scheduler:
        patience = rule.patience if setting.patience is None else setting.patience
        return DynaTune(setting.seed, setting.peak_flops, setting.latency, replace(rule, patience=patience))

    return build


SCHEDULERS: dict[str, Factory] = {
    "dynatune": _dynatune(PRODUCT_RULE),
    "dynatune-paper": _dynatune(PAPER_RULE),
    "sequential": lambda setting: Sequential(setting.slots_per_operator, setting.patience),
    "round_robin": lambda setting: RoundRobin(setting.patience),
}


def scheduler_named(name: str, setting: Setting) -> Scheduler:
    """A new scheduler of that name for one run; raises UnknownPart."""
    if name not in SCHEDULERS:
        raise UnknownPart(f"scheduler {name!r} is not registered; choose one of {', '.join(sorted(SCHEDULERS))}")
    return SCHEDULERS[name](setting)


__all__ = [
    "PAPER_RULE",
    "PRODUCT_RULE",
    "SCHEDULERS",
    "DynaTune",
    "Factory",
    "RoundRobin",
    "Rule",
    "Sequential",
    "Setting",
    "scheduler_named",
]
