"""What jobs without viewers find: of an uploaded file, and of the machine."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from apps.catalog.models import Network, Target
from apps.catalog.services import keep_converted
from apps.core import clock
from apps.core.amounts import shown
from apps.core.content import Stored
from apps.tuning import quota
from apps.tuning.journal.archives import Archives
from apps.tuning.journal.recorder import Recorder
from apps.tuning.leases import Claim
from apps.tuning.models import Job
from workers.messages.events import Event as Told
from workers.messages.machine import fingerprint

LARGEST = 1 << 18
"""Bytes of an inspection, as JSON: a page lists a hundred networks."""


class Answers(Recorder):
    """Only their result counts."""

    def __init__(self, held: Claim, job: Job) -> None:
        self._held, self._job = held, job

    def record(self, events: Sequence[Told], archives: Archives) -> None:
        for number, event in enumerate(events):
            # Code of an uploaded file may speak for a conversion: only what was asked for is an answer.
            if event["kind"] == "result" and event["task"] == self._job.task:
                self._answered(event, archives.get(number))

    def _answered(self, event: Told, archive: Stored | None) -> None:
        if event["task"] == Job.Task.INSPECT and self._job.network_id:
            self._inspected(event["inspection"])
        elif event["task"] == Job.Task.CONVERT and self._job.network is not None and archive is not None:
            network = self._job.network
            keep_converted(network, archive)
            quota.check_kept(network.owner, network.file_name, archive.size)  # it may be larger than what was uploaded
        elif event["task"] == Job.Task.HARDWARE and self._job.target is not None:
            self._measured(event, self._job.target)
        self._held.fenced(answered=True)

    def _inspected(self, inspection: dict[str, Any]) -> None:
        rows = Network.objects.filter(jobs=self._job)
        if (size := len(json.dumps(inspection))) > LARGEST:
            error = f"the names of its inputs, outputs and operators take {shown(size)}, and {shown(LARGEST)} are kept at most"
            next_step = "give them shorter names and export it again"
            rows.update(state=Network.State.REJECTED, error=error, next_step=next_step)
            return
        dynamic = inspection["dynamic"]
        shapes = {} if dynamic else {port["name"]: port["shape"] for port in inspection["inputs"]}
        known = {name: shape for name, shape in shapes.items() if shape is not None}
        rows.update(state=Network.State.READY, inspection=inspection, shapes=known, error="", next_step="")

    def _measured(self, event: Told, target: Target) -> None:
        hardware, peak, device = event["hardware"], event["peak"] or {}, target.device
        seen = {} if device else {"fingerprint": fingerprint()}
        ceilings = {"peak_flops": peak["flops"], "bandwidth": peak["bandwidth"]} if peak else {}
        taken = {"key": target.new_key, "new_key": ""} if target.new_key else {}
        Target.objects.filter(jobs=self._job).update(
            state=Target.State.READY,
            name=(f"{str(hardware['name'])[:120]} at {device}" if device else str(hardware["name"]))[:200],
            hardware={**hardware, **seen},
            tvm=hardware["target"],
            threads=hardware["cores"],
            versions=event["versions"],
            measured_at=clock.now(),
            error="",
            next_step="",
            **ceilings,
            **taken,
        )
