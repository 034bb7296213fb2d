"""How many bytes of networks and compiled libraries an account may keep.

A file that several accounts have lies on the disk once and counts for each, once: what one deletes must not make another's
account fuller. Logs and measurements are rows of the database; they do not count. What is kept is counted in the
transaction that keeps it (check_kept); whatever is looked at before only spares work that would be in vain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db.models import Sum

from apps.catalog.models import Network
from apps.core.amounts import shown
from apps.core.errors import NoRoom
from apps.tuning.accounts import lock_account
from apps.tuning.models import Artifact, TuningRun

NEXT = "delete on the Storage page what you no longer need, or have who runs this site raise QUOTA"


@dataclass(frozen=True)
class Used:
    """Bytes of networks, and of compiled libraries."""

    networks: int
    libraries: int

    @property
    def whole(self) -> int:
        return self.networks + self.libraries

    @property
    def room(self) -> int:
        """Bytes that the account may still keep."""
        return max(0, settings.QUOTA - self.whole)


def used(owner: Any) -> Used:
    """Files of rejected networks are swept away, and do not count."""
    networks = Network.objects.filter(owner=owner).exclude(state=Network.State.REJECTED)
    libraries = Artifact.objects.filter(run__owner=owner)
    return Used(*(_bytes(rows.order_by().values_list("sha256", "size")) for rows in (networks, libraries)))


def _bytes(files: Any) -> int:
    """Of contents: two libraries of an account may have the same."""
    return files.distinct().aggregate(bytes=Sum("size"))["bytes"] or 0


def check(owner: Any, value: object, size: int) -> None:
    """Raises NoRoom, of `value`, where there is none for so many bytes more."""
    _check(value, size, used(owner).whole)


def check_kept(owner: Any, value: object, size: int) -> None:
    """Inside the transaction that keeps so many bytes, when their row is there: raises NoRoom where they were too many."""
    lock_account(owner.pk)
    _check(value, size, used(owner).whole - size)


def check_library(run: TuningRun) -> None:
    """Raises NoRoom where there is none at all. How large a library becomes nobody knows before it is compiled."""
    if not room_of_library(run):
        raise NoRoom(run.network.name, _in_use(used(run.owner).whole), NEXT)


def room_of_library(run: TuningRun) -> int:
    """Bytes that one more library of the run may have: what is free, and what those had that it pushes out."""
    pushed = sum(older.size for older in run.pushed_out(Artifact.State.READY))
    return max(0, settings.QUOTA - used(run.owner).whole + pushed)


def _check(value: object, size: int, taken: int) -> None:
    if taken + size > settings.QUOTA:
        raise NoRoom(value, f"it has {shown(size)}, and {_in_use(taken)}", NEXT)


def _in_use(taken: int) -> str:
    return f"{shown(taken)} of your {shown(settings.QUOTA)} are in use"
