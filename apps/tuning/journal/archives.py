"""Files that an answer names, copied before its transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from django.conf import settings

from apps.catalog.models import Network
from apps.core.amounts import shown
from apps.core.content import Stored
from apps.core.errors import NoRoom
from apps.tuning import quota
from apps.tuning.files import LIMIT, TooMuch, keep_archive
from apps.tuning.leases import Claim
from apps.tuning.models import Artifact, Job, TuningRun
from workers.messages.events import Event as Told

Archives = Mapping[int, Stored]
"""Kept files by the place of their answer in the batch."""


def archives_of(held: Claim, events: Sequence[Told]) -> Archives:
    """The file of the first answer; of a child that answers without end no other is copied.

    Before the transaction: a large file must not hold a lock on the database. Raises NoRoom for one that the account has no
    room for even now.
    """
    number = next((i for i, event in enumerate(events) if _answers(held, event)), None)
    if number is None or not held.held().exists():
        return {}
    if held.task == Job.Task.COMPILE:
        if not events[number].get("archive") or Artifact.objects.filter(job_id=held.job_id).exists():
            return {}
        return {number: _library(held, events[number]["archive"])}
    network = Network.objects.filter(jobs=held.job_id, state=Network.State.INSPECTING).first()
    if network is None or not network.unconverted:
        return {}
    return {number: _converted(held, network, events[number]["onnx"])}


def _converted(held: Claim, network: Network, file: str) -> Stored:
    room = quota.used(network.owner).room + network.size  # it takes the place of what was uploaded
    return _kept(held, file, "networks", ".onnx", settings.UPLOAD_LIMIT, room, network.file_name)


def _library(held: Claim, file: str) -> Stored:
    run = TuningRun.objects.select_related("owner").get(compile_jobs=held.job_id)
    return _kept(held, file, "artifacts", ".zip", LIMIT, quota.room_of_library(run), run)


def _kept(held: Claim, file: str, folder: str, ending: str, limit: int, room: int, value: object) -> Stored:
    try:
        return keep_archive(file, held.work_dir, Path(settings.DATA_DIR) / folder, min(limit, room), ending)
    except TooMuch:
        if room >= limit:
            raise
        raise NoRoom(value, f"it has more than the {shown(room)} that are left to you", quota.NEXT) from None


def _answers(held: Claim, event: Told) -> bool:
    if held.task not in (Job.Task.COMPILE, Job.Task.CONVERT) or event["kind"] != "result":
        return False
    return bool(event["task"] == held.task)
