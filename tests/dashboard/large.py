"""A long run, written past the journal."""

from __future__ import annotations

from typing import Any

from apps.tuning.models import Job, Operator, Slot, TuningRun
from tests.apps.rows import Site, measure

MEASUREMENTS, SLOTS = 100_000, 6250


def large(site: Site) -> TuningRun:
    """A run of 30 operators and 100,000 measurements, every thousandth a new best."""
    run, _, _ = site.claimed(operators=30)
    first = Job.objects.get(pk=run.job_id).last_seq

    def measurement(n: int) -> dict[str, Any]:
        failed = n % 11 == 9
        seconds = None if failed else 1e-3 * (1.0 + 1e5 / (1 + n)) if n % 1000 < 30 else 1.0
        return {
            "seq": first + 1 + n, "operator": n % 30, "configuration": f"{n:032x}", "identity": "x", "choices": [n],
            "seconds": seconds, "runs": 3, "cause": "timeout" if failed else "", "build_seconds": 0.1,
            "measure_seconds": 0.1, "origin": "explorer", "clock": n // 16 * 1.5, "slot": n // 16,
        }  # fmt: skip

    measure(run, map(measurement, range(MEASUREMENTS)))
    Slot.objects.bulk_create(
        [
            Slot(run=run, seq=first + 16 * n, number=n + 1, operator=n % 30, began=1.5 * n, ended=1.5 * n + 1.5, trials=16,
                 before=1.0, after=1.0, rule="belief", decision={"operators": {str(i): [1.0, 1.0] for i in range(30)}})
            for n in range(SLOTS)
        ],
        batch_size=500,
    )  # fmt: skip
    Job.objects.filter(pk=run.job_id).update(last_seq=first + MEASUREMENTS)
    Operator.objects.filter(run=run).update(best_seconds=2e-3, trials=3333, slots=208, seconds=312.0)
    TuningRun.objects.filter(pk=run.pk).update(
        latency=0.9,
        trials=MEASUREMENTS,
        slots_count=SLOTS,
        clock=1.5 * SLOTS,
        spent={"build": 6000.0, "measure": 3000.0},
    )
    return TuningRun.objects.get(pk=run.pk)
