"""Rows that tests need, and a child's events without a child."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import User
from django.db import connection

from apps.catalog.models import Network, Target
from apps.core.ids import new_id
from apps.tuning import services
from apps.tuning.journal.inserting import insert
from apps.tuning.models import Measurement, TuningRun
from workers.messages.spec import Budget


def plan_of(query: str) -> str:
    """How SQLite would look it up."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {query}")
        return "; ".join(row[-1] for row in cursor.fetchall())


def measure(run: TuningRun, rows: Iterable[dict[str, Any]]) -> None:
    """Measurements with these fields, written past journal and model: a run may have a hundred thousand."""
    fields = [field for field in Measurement._meta.concrete_fields if not field.primary_key]
    usual = {field.name: field.get_default() for field in fields} | {"sketch": 0, "run": run.pk}
    insert(Measurement, list(usual), ([*(usual | row).values()] for row in rows))


class Site:
    """Rows that most tests need."""

    def __init__(self) -> None:
        self.ada = User.objects.create_user("ada", password="a long password")
        self.bob = User.objects.create_user("bob", password="a long password")
        self.network = Network.objects.create(
            owner=self.ada, name="squeezenet", sha256="a" * 64, size=5, state="ready",
            inspection={"inputs": [{"name": "x", "dtype": "float32", "shape": [1, 3, 8, 8]}], "dynamic": []},
            shapes={"x": [1, 3, 8, 8]},
        )  # fmt: skip
        self.target = Target.objects.create(
            name="a machine", state="ready", threads=2, peak_flops=1e11, bandwidth=1e10, tvm={"kind": "llvm"}
        )

    def run(self, **changes: Any) -> TuningRun:
        asked: dict[str, Any] = {"method": "auto", "budget": Budget(trials=100), **changes}
        return services.create_run(
            self.ada, self.network, self.target, asked.pop("method"), asked.pop("budget"), **asked
        )

    def bobs(self, budget: Budget) -> TuningRun:
        """Another account's, of a network of its own."""
        network = Network.objects.filter(owner=self.bob).first()
        if network is None:
            network = Network.objects.get(pk=self.network.pk)
            network.pk, network.owner = new_id(), self.bob
            network.save(force_insert=True)
        return services.create_run(self.bob, network, self.target, "auto", budget)

    def claimed(self, operators: int = 2) -> tuple[TuningRun, services.Claim, Told]:
        """A run that a worker has, with its operators known."""
        run = self.run()
        held = services.claim(run.job_id)
        assert held is not None
        told = Told(operators)
        services.write(held, told.start())
        run.refresh_from_db()
        return run, held, told


class Told:
    """Events as a child tells them; every call goes on in time."""

    def __init__(self, operators: int = 2) -> None:
        self.operators = operators
        self.numbers = itertools.count()
        self.slots = itertools.count(1)
        self.clock = 0.0

    def event(self, kind: str, **payload: Any) -> dict[str, Any]:
        self.clock += 0.25
        return {"kind": kind, "clock": self.clock, **payload}

    def start(self) -> list[dict[str, Any]]:
        rows = [
            {"index": i, "name": f"conv_{i}", "key": f"k{i}", "weight": 1.0 + i, "flops": 1e6, "bytes": 1e5, "work": 1e6,
             "sketches": [3], "configurations": 1e4}
            for i in range(self.operators)
        ]  # fmt: skip
        started = self.event("started", versions={"tvm": "0.27"}, threads=2, seed=0, layout="NHWC", method="auto")
        return [started, self.event("operators", operators=rows), self.event("phase", name="tuning", text="tuning")]

    def batch(self, *seconds: float | None, operator: int = 0, **extra: Any) -> dict[str, Any]:
        measurements = [self.measurement(operator, value) for value in seconds]
        spent = {"measure": self.clock}
        return self.event(
            "batch", slot=0, measurements=measurements, spent=spent, latency=None, trials=0, failures=0, **extra
        )

    def measurement(self, operator: int, seconds: float | None, **changes: Any) -> dict[str, Any]:
        return {
            "operator": operator, "sketch": 0, "choices": [next(self.numbers), 1, 2], "identity": "i", "round": 0,
            "seconds": seconds, "spread": 0.0, "runs": 3, "stopped": "complete", "cause": "" if seconds else "timeout",
            "error": "", "build_seconds": 0.1, "measure_seconds": 0.2, "origin": "explorer", **changes,
        }  # fmt: skip

    def slot(self, operator: int = 0, **extra: Any) -> dict[str, Any]:
        began = self.clock
        decision = {"rule": "belief", "decided_by_belief": True, "scores": [0.1, 0.2]}
        return self.event("slot", slot=next(self.slots), operator=operator, began=began, ended=began + 0.25, trials=1,
                          before=None, after=0.5, decision=decision, latency=None, **extra)  # fmt: skip
