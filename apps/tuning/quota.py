"""How many bytes of networks and compiled libraries an account may keep.

A file that several accounts have lies on the disk once and counts for each: what one deletes must not make another's
account fuller. Logs and measurements are rows of the database; they do not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db.models import QuerySet, Sum

from apps.catalog.models import Network
from apps.core.amounts import shown
from apps.core.errors import Refused
from apps.tuning.models import Artifact

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
    return Used(_bytes(networks), _bytes(libraries))


def _bytes(rows: QuerySet[Any]) -> int:
    return rows.aggregate(bytes=Sum("size"))["bytes"] or 0


def check(owner: Any, value: object, size: int) -> None:
    """Raises Refused, of `value`, where there is no room for so many bytes more."""
    _check(value, size, used(owner).whole)


def check_kept(owner: Any, value: object, size: int) -> None:
    """Inside the transaction that keeps so many bytes: raises Refused where they were too many.

    The owner's row is locked, so that of two uploads that come at once the second counts the first.
    """
    get_user_model().objects.select_for_update(no_key=True).filter(pk=owner.pk).first()
    _check(value, size, used(owner).whole - size)


def check_library(owner: Any, value: object) -> None:
    """Raises Refused where there is no room at all. How large a library becomes nobody knows before it is compiled: one
    that was begun in time is kept."""
    found = used(owner)
    if not found.room:
        raise Refused(value, _in_use(found.whole), NEXT)


def _check(value: object, size: int, taken: int) -> None:
    if taken + size > settings.QUOTA:
        raise Refused(value, f"it has {shown(size)}, and {_in_use(taken)}", NEXT)


def _in_use(taken: int) -> str:
    return f"{shown(taken)} of your {shown(settings.QUOTA)} are in use"
