"""What is done beside a run: its artifact's compilation and its baselines."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.models import Max

from apps.core.content import Stored
from apps.tuning import quota
from apps.tuning.journal.recorder import RunRecorder
from apps.tuning.journal.rows import artifact_row, baseline, measured_whole, said
from apps.tuning.models import Artifact, Job
from apps.tuning.sweep import forget
from workers.messages.events import Event as Told


class BesideRecorder(RunRecorder):
    """Told among the run's events, on its clock."""

    def take(self, event: Told, made: str, archive: Stored | None) -> None:
        kind = event["kind"]
        if kind not in ("phase", "log", "end_to_end", "baseline", "result"):
            return
        told = {**event, "clock": self.run.clock}
        if kind == "end_to_end":
            payload = measured_whole(self.run, told)
        elif kind == "baseline":
            payload = baseline(self.run, told)
        elif kind == "result" and self._held.task == Job.Task.BASELINE:
            self._held.fenced(answered=True)
            return
        elif kind == "result":
            kind, payload = "artifact", self._artifact(event, archive)
        else:
            kind, payload = "log", said(event)
        self.keep(kind, made, self.run.clock, payload)

    def _artifact(self, event: Told, archive: Stored | None) -> dict[str, Any]:
        """Raises NoRoom where the account has none for it, however much there was when it was begun."""
        passed = bool(event["passed"])
        if passed and archive is None:
            raise ValueError("a result that passed has no archive")
        state = Artifact.State.READY if passed else Artifact.State.REJECTED
        # Of each state by itself: what was rejected must not push out what is offered.
        forget(Artifact.objects.filter(pk__in=[older.pk for older in self.run.pushed_out(state)]))
        artifact = Artifact.objects.create(
            run=self.run,
            job_id=self._held.job_id,
            state=state,
            sha256=archive.sha256 if passed and archive else "",
            size=archive.size if passed and archive else 0,
            verdict=event["verdict"],
            latency=event["latency"],
            onnxruntime=event["onnxruntime"] or {},
            ratio=event["ratio"],
        )
        newest = self.run.artifacts.exclude(pk=artifact.pk).aggregate(newest=Max("created"))["newest"]
        if newest is not None and newest >= artifact.created:  # the clock was set back: it is the newest all the same
            Artifact.objects.filter(pk=artifact.pk).update(created=newest + timedelta(microseconds=1))
        if passed:
            quota.check_kept(self.run.owner, self.run, artifact.size)
        self._held.fenced(answered=True)
        return artifact_row(artifact)
