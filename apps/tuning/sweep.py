"""Files that nobody will read again: halves of files, uploads whose request died, files of networks and artifacts that no
row names, directories of jobs that are over."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F

from apps.catalog.models import Network
from apps.core import clock
from apps.tuning.models import Artifact, Job
from apps.tuning.states import OVER
from workers.messages.folders import remove_tree

UNNAMED = timedelta(hours=1)
"""No copy stands still for as long, and between a file and its row there is one transaction; a file that comes again is young
again."""
WORK = timedelta(hours=1)
"""Time after a job's end; most directories go with the job."""
_NETWORK = re.compile(r"[0-9a-f]{64}\.(onnx|pt2)")
_ARTIFACT = re.compile(r"[0-9a-f]{64}\.zip")


def sweep(now: datetime | None = None) -> int:
    """Removes them; safe at any time. Returns how many."""
    now, data = now or clock.now(), Path(settings.DATA_DIR)
    halves = [*data.glob("networks/partial-*"), *data.glob("artifacts/partial-*"), *data.glob("uploads/*")]
    unnamed = [*_networks(data / "networks"), *_artifacts(data / "artifacts")]
    count = sum(_file(path, now - UNNAMED) for path in (*halves, *unnamed))
    return count + sum(_work(path, now) for path in data.glob("work/*"))


def forget_uploads() -> None:
    """For the start of the web process: what it had of uploads when it died, nobody sends any more."""
    for path in Path(settings.FILE_UPLOAD_TEMP_DIR).glob("*"):
        with suppress(OSError):
            path.unlink()


def _networks(folder: Path) -> list[Path]:
    """Files of networks that are no network's: conversions leave them, and files that were rejected."""
    found = [path for path in folder.glob("*.*") if _NETWORK.fullmatch(path.name)]
    rows = Network.objects.exclude(state=Network.State.REJECTED).exclude(owner=None)
    named = {f"{sha256}.onnx" for sha256 in rows.values_list("sha256", flat=True)}
    named |= {f"{source}.pt2" for source in rows.filter(source=F("sha256")).values_list("source", flat=True)}
    return [path for path in found if path.name not in named]


def _artifacts(folder: Path) -> list[Path]:
    """Files of artifacts that were forgotten, or whose job was lost before it had a row."""
    found = [path for path in folder.glob("*.zip") if _ARTIFACT.fullmatch(path.name)]
    named = set(Artifact.objects.exclude(run__owner=None).values_list("sha256", flat=True))
    return [path for path in found if path.stem not in named]


def _file(path: Path, before: datetime) -> bool:
    with suppress(OSError):  # somebody else removed it, or it is not ours
        found = path.lstat()
        if S_ISREG(found.st_mode) and found.st_mtime < before.timestamp():
            path.unlink()
            return True
    return False


def _work(path: Path, now: datetime) -> bool:
    try:
        key, found = UUID(path.name), path.lstat()
    except (ValueError, OSError):
        return False
    if not S_ISDIR(found.st_mode) or found.st_mtime >= (now - WORK).timestamp():
        return False
    with transaction.atomic():
        # The lock stays until it is removed: a failed job that is resumed meanwhile would lose its new files.
        job = Job.objects.select_for_update(no_key=True).filter(pk=key).first()
        if job is not None and (job.state not in OVER or job.ended is None or job.ended >= now - WORK):
            return False
        return remove_tree(path)
