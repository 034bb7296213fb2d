"""The machines, and when they are measured."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.db import transaction

from apps.catalog.models import Target
from apps.core.errors import Refused
from apps.core.machine import fingerprint
from apps.tuning.models import Job
from apps.tuning.requests.queue import enqueue
from apps.tuning.states import ACTIVE


def ensure_local_target() -> Target:
    """This machine; the first call has it measured. Pages ask again and again: what is known is read without a lock."""
    known = Target.objects.filter(kind="local").first()
    if known is not None and (known.state != Target.State.NEW or _being_measured(known)):
        return known
    with transaction.atomic():
        target, _ = Target.objects.get_or_create(kind="local", defaults={"name": "This machine"})
        if target.state == Target.State.NEW and not _being_measured(target):
            enqueue(Job.Task.HARDWARE, None, target=target)
    return target


def remeasure_if_changed() -> bool:
    """Measures this machine again where it is not the one that was measured; what is known stays in use until then.

    For the start of the site, and no more often: where its processes see different machines they never agree.
    """
    with transaction.atomic():
        target = Target.objects.select_for_update().filter(kind="local", state=Target.State.READY).first()
        measured = target and target.hardware.get("fingerprint")
        if target is None or measured in (None, fingerprint()) or _being_measured(target):
            return False
        enqueue(Job.Task.HARDWARE, None, target=target)
        return True


def may_remeasure(user: Any) -> bool:
    """Whether it is this user's to say: of who runs the site, and of the only account.

    A measurement holds up everybody's runs, and gives everybody another peak.
    """
    others = get_user_model().objects.filter(is_active=True).exclude(pk=user.pk)
    return bool(user.is_staff) or not others.exists()


def remeasure(target: Target, user: Any) -> Job:
    """Measures the machine again; what is known stays in use until then. Raises Refused for who may not ask for it."""
    if not may_remeasure(user):
        raise Refused(target.name, "only who runs this site can have it measured again", "ask them to")
    with transaction.atomic():
        row = Target.objects.select_for_update().get(pk=target.pk)
        if row.state == Target.State.FAILED:
            Target.objects.filter(pk=row.pk).update(state=Target.State.NEW, error="", next_step="")
        return _being_measured(row) or enqueue(Job.Task.HARDWARE, user, target=row)


def _being_measured(target: Target) -> Job | None:
    return Job.objects.filter(target=target, task=Job.Task.HARDWARE, state__in=ACTIVE).first()
