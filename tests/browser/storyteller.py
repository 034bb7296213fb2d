"""A process that plays the worker for a real site: makes an account, a network, a target, runs, and tells their events.

Orders come as JSON lines on standard input, an answer to each goes to standard output.
"""

from __future__ import annotations

import hashlib
import json
import resource
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import django

django.setup()

from django.contrib.auth import get_user_model  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402

from apps.catalog.models import Network, Target  # noqa: E402
from apps.core import signin  # noqa: E402
from apps.tuning import services  # noqa: E402
from apps.tuning.models import Artifact, Job, TuningRun  # noqa: E402
from tests.browser import journal  # noqa: E402
from workers.actors.journal import DatabaseJournal  # noqa: E402
from workers.messages.events import decode, encode  # noqa: E402
from workers.messages.spec import Budget  # noqa: E402
from workers.supervision import batch as supervision_batch  # noqa: E402
from workers.supervision import supervise  # noqa: E402

INSPECTION = {
    "inputs": [{"name": "data_0", "dtype": "float32", "shape": [1, 3, 224, 224]}],
    "outputs": [{"name": "softmaxout_1", "dtype": "float32", "shape": [1, 1000, 1, 1]}],
    "dynamic": [],
    "opset": 9,
    "ir_version": 4,
    "producer": "light_squeezenet of the onnx package, random weights",
    "nodes": 66,
    "operators": {
        "Conv": 26,
        "Relu": 26,
        "Concat": 8,
        "MaxPool": 3,
        "Dropout": 1,
        "GlobalAveragePool": 1,
        "Softmax": 1,
    },
    "parameters": 1235496,
    "parameter_bytes": 4941984,
    "flops": 7.03e8,
}
HARDWARE = {
    "name": "AMD EPYC 9575F",
    "system": "Linux",
    "machine": "x86_64",
    "cores": 2,
    "memory": 16 << 30,
    "flags": ["avx2", "fma", "avx512f", "avx512bw", "avx512vnni"],
    "target": {"kind": "llvm", "mcpu": "znver5", "num-cores": 2},
}


class Storyteller:
    def __init__(self) -> None:
        call_command("migrate", verbosity=0)
        self.owner, _ = get_user_model().objects.get_or_create(username="owner")
        self.target = self._target()
        self.runs: dict[str, Any] = {}

    def _target(self) -> Target:
        target = services.ensure_local_target()
        job = services.claim(target.jobs.get().pk)
        peak = {"flops": 2.4e11, "bandwidth": 4.1e10}
        event = {"kind": "result", "clock": 0.0, "task": "hardware", "hardware": HARDWARE, "peak": peak}
        services.write(job, [{**event, "versions": {"apache-tvm": "0.27.0.post1", "numpy": "2.4.6"}}])
        services.conclude(job, "finished", "", "", None)
        target.refresh_from_db()
        return target

    def network(self, name: str, **changes: Any) -> dict[str, Any]:
        inspection = {**INSPECTION, **changes.pop("inspection", {})}
        shapes = {} if inspection["dynamic"] else {port["name"]: port["shape"] for port in inspection["inputs"]}
        defaults = {
            "sha256": hashlib.sha256(name.encode()).hexdigest(),
            "size": 4956208,
            "state": "ready",
            "inspection": inspection,
            "shapes": shapes,
        }
        found, _ = Network.objects.get_or_create(owner=self.owner, name=name, defaults={**defaults, **changes})
        return {"network": str(found.pk)}

    def run(
        self,
        network: str,
        operators: int = 12,
        seconds: float = 180.0,
        method: str = "auto",
        start: bool = True,
        gain: float | None = None,
    ) -> dict[str, Any]:
        row = Network.objects.get(pk=network)
        budget = Budget(seconds=seconds, min_gain=gain)
        run = services.create_run(self.owner, row, self.target, method, budget)
        if start:
            self.begin(str(run.pk), operators)
        return {"run": str(run.pk)}

    def begin(self, run: str, operators: int = 12) -> dict[str, Any]:
        """A worker takes it."""
        held = services.claim(TuningRun.objects.get(pk=run).job_id)
        self.runs[run] = {"held": held, "slots": journal.slots(operators), "told": 0}
        services.write(held, journal.opening(operators))
        return self.figures(run)

    def tell(self, run: str, slots: int = 1, a_second: float = 0.0, at_once: int = 25) -> dict[str, Any]:
        """So many slots, each a batch and a slot event, `at_once` in a transaction, evenly over time."""
        story, began = self.runs[run], time.monotonic()
        for number in range(0, slots, at_once):
            several = [next(story["slots"]) for _ in range(min(at_once, slots - number))]
            services.write(story["held"], [event for events in several for event in events])
            services.heartbeat(story["held"])
            if a_second:
                time.sleep(max(0.0, began + (number + at_once) / a_second - time.monotonic()))
        return self.figures(run)

    def relay(self, run: str, operators: int, slots: int, batch: int) -> dict[str, Any]:
        """A child that tells so many slots as fast as it can, supervised as any: seconds until all is kept, and of this
        process's processor; beside them `plain`, what saying and reading those events as JSON takes in the same moments."""
        writes = _Counted(DatabaseJournal(self.runs[run]["held"], threading.Event()))
        supervision_batch.BATCH_EVENTS = batch
        argv = (sys.executable, "-m", "tests.browser.quick_child")
        began, busy = time.monotonic(), time.process_time()
        ending = supervise({"operators": operators, "slots": slots}, writes, argv=argv)
        processor = time.process_time() - busy - writes.plain
        took = {"seconds": time.monotonic() - began, "processor": processor, "plain": writes.plain}
        assert ending.kind == "finished", (ending, ending.log)
        return {**took, "events": writes.events, "writes": writes.count, **self.figures(run)}

    def resume(self, run: str) -> dict[str, Any]:
        """The order for another attempt: seconds to make it and to write it as text, its bytes, this process's peak."""
        began = time.monotonic()
        order = self.runs[run]["held"].order()
        made = time.monotonic()
        text = json.dumps(order)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        counts = {"measurements": len(order["measurements"]), "slots": len(order["slots"])}
        return {"made": made - began, "said": time.monotonic() - made, "bytes": len(text), "peak": peak, **counts}

    def disk(self) -> dict[str, Any]:
        """Bytes of the database."""
        if connection.vendor == "sqlite":
            return {"bytes": Path(connection.settings_dict["NAME"]).stat().st_size}
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_database_size(current_database())")
            return {"bytes": cursor.fetchone()[0]}

    def events(self, run: str, told: list[dict[str, Any]]) -> dict[str, Any]:
        services.write(self.runs[run]["held"], told)
        return self.figures(run)

    def wanted(self, run: str) -> dict[str, Any]:
        return {"wanted": services.heartbeat(self.runs[run]["held"])}

    def conclude(self, run: str, kind: str = "finished", report: dict[str, Any] | None = None) -> dict[str, Any]:
        clock = TuningRun.objects.get(pk=run).clock
        last = {"kind": "finished", "clock": clock, "reason": "stopped", "report": report or {}}
        services.write(self.runs[run]["held"], [last])
        services.conclude(self.runs[run]["held"], kind, "", "", last)
        return self.figures(run)

    def end(self, run: str, reason: str = "") -> dict[str, Any]:
        """Whatever it does now: an account has so many runs at a time. Said is that it ended for a `reason`."""
        with suppress(services.Refused):
            services.request(TuningRun.objects.get(pk=run), self.owner, "stop")
        if run in self.runs:  # a worker took it
            services.conclude(self.runs[run]["held"], "stopped")
        if reason:
            TuningRun.objects.filter(pk=run).update(finished_reason=reason)
        return self.figures(run)

    def leave(self, run: str) -> dict[str, Any]:
        """Its worker goes away, another takes it up."""
        services.conclude(self.runs[run]["held"], "expired")
        self.runs[run]["held"] = services.claim(TuningRun.objects.get(pk=run).job_id)
        return self.figures(run)

    def crash(self, run: str, detail: str) -> dict[str, Any]:
        services.conclude(self.runs[run]["held"], "crashed", detail)
        return self.figures(run)

    def fail(self, run: str, reason: str, printed: str) -> dict[str, Any]:
        last = {"kind": "failed", "clock": 0.0, "error": "OSError", "reason": reason, "next_step": "buy another"}
        services.conclude(self.runs[run]["held"], "failed", "", printed, last)
        return self.figures(run)

    def turn(self, run: str) -> dict[str, Any]:
        """Another account has the machine next."""
        services.conclude(self.runs[run]["held"], "turn")
        return self.figures(run)

    def uncompiled(self, run: str, reason: str, printed: str) -> dict[str, Any]:
        """Its best could not be compiled."""
        held = services.claim(services.request_artifact(TuningRun.objects.get(pk=run), self.owner).pk)
        last = {"kind": "failed", "clock": 0.0, "error": "OSError", "reason": reason, "next_step": "buy another"}
        services.conclude(held, "failed", "", printed, last)
        return self.figures(run)

    def uncompared(self, run: str, reason: str) -> dict[str, Any]:
        """What it is compared with could not be measured."""
        held = services.claim(Job.objects.get(run=run, task="baseline").pk)
        services.conclude(held, "failed", last={"kind": "failed", "reason": reason, "next_step": "buy another"})
        return self.figures(run)

    def figures(self, run: str) -> dict[str, Any]:
        row = TuningRun.objects.select_related("job").get(pk=run)
        return {"seq": row.job.last_seq, "trials": row.trials, "latency": row.latency, "state": row.job.state}

    def library(self, run: str, size: int = 11_700_000) -> dict[str, Any]:
        """A compiled library without a file."""
        row = TuningRun.objects.get(pk=run)
        job = Job.objects.create(task="compile", owner=self.owner, run=row, network=row.network, state="done")
        figures = {"size": size, "sha256": "b" * 64, "latency": {"median": 5e-3}, "ratio": 1.0}
        return {"library": str(Artifact.objects.create(run=row, job=job, state="ready", **figures).pk)}

    def link(self) -> dict[str, Any]:
        return {"path": f"/login/{signin.issue(self.owner)}/"}


class _Counted:
    """A journal that counts its writes and their events, and the processor's seconds that their events take as JSON alone."""

    def __init__(self, journal: DatabaseJournal) -> None:
        self._journal, self.count, self.events, self.plain = journal, 0, 0, 0.0

    def write(self, events: Any) -> None:
        self.count += 1
        self._journal.write(events)
        self.events += len(events)
        began = time.process_time()
        for event in events:
            decode(encode(event))
        self.plain += time.process_time() - began

    def heartbeat(self) -> Any:
        return self._journal.heartbeat()


def main() -> None:
    teller = Storyteller()
    sys.stdout.write("{}\n")
    sys.stdout.flush()
    for line in sys.stdin:
        order = json.loads(line)
        answer = getattr(teller, order.pop("do"))(**order)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
