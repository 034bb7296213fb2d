"""Files that nobody will read again: halves of files, uploads whose request died, files of networks and artifacts that no
row names, directories of jobs that nobody is at."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from secrets import token_hex
from stat import S_ISDIR, S_ISREG
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F, QuerySet

from apps.catalog.models import Network
from apps.core import clock
from apps.tuning.models import Artifact, Job
from apps.tuning.states import HELD, OVER
from workers.messages.folders import remove_tree

UNNAMED = timedelta(hours=1)
"""No copy stands still for as long, and between a file and its row there is one transaction; a file that comes again is young
again."""
WORK = timedelta(hours=1)
"""Time after a job's end; most directories go with the job."""
GONE = ".gone"
_NETWORK = re.compile(r"[0-9a-f]{64}\.(onnx|pt2)")
_ARTIFACT = re.compile(r"[0-9a-f]{64}\.zip")


def sweep(now: datetime | None = None) -> int:
    """Removes them; safe at any time. Returns how many."""
    now, data = now or clock.now(), Path(settings.DATA_DIR)
    halves = [*data.glob("networks/partial-*"), *data.glob("artifacts/partial-*"), *data.glob("uploads/*")]
    unnamed = [*_networks(data / "networks"), *_artifacts(data / "artifacts")]
    for left in data.glob(f"work/*{GONE}"):
        remove_tree(left)
    count = sum(_file(path, now - UNNAMED) for path in (*halves, *unnamed))
    return count + sum(_work(path, now) for path in data.glob("work/*"))


def forget(libraries: QuerySet[Artifact]) -> None:
    """Inside a transaction: deletes them, and when that is committed their files, of which nobody counts the bytes any more."""
    gone = list(libraries)
    libraries.delete()
    transaction.on_commit(partial(_unlink, gone), robust=True)


def _unlink(gone: Sequence[Artifact]) -> None:
    """Not what another library has too, or what came again after its row was made and has none yet: those are a sweep's."""
    for library in gone:
        if library.sha256 and not Artifact.objects.filter(sha256=library.sha256).exists():
            _file(library.path, library.created)


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
        job = Job.objects.select_for_update(no_key=True).filter(pk=key).first()
        # Who waits or is paused has a new one when it goes on: nothing of a run is in its directory alone.
        if job is not None and (
            job.state in HELD or (job.state in OVER and not (job.ended and job.ended < now - WORK))
        ):
            return False
        try:
            aside = _aside(path)
        except OSError:  # it is gone, or of somebody else's
            return False
    return remove_tree(aside)


def discard(work: Path) -> None:
    """Removes the directory of a job that is over; one that is made anew meanwhile stays."""
    with suppress(OSError):  # it is gone, or of somebody else's
        remove_tree(_aside(work))


def _aside(work: Path) -> Path:
    """It has no job's name from now on. What is in it may take long to remove: no lock is held for that, and who resumes the
    job has a new one."""
    return work.rename(work.with_name(f"{work.name}.{token_hex(4)}{GONE}"))
