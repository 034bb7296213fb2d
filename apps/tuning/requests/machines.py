"""The machines, and when they are measured."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.db import transaction

from apps.catalog.models import Target
from apps.core.errors import Refused
from apps.tuning.models import Job
from apps.tuning.requests.queue import enqueue
from apps.tuning.states import ACTIVE, HELD
from workers.messages.device import Address
from workers.messages.machine import fingerprint


def ensure_local_target() -> Target:
    """This machine; the first call has it measured. Pages ask again and again: what is known is read without a lock."""
    known = Target.objects.filter(kind=Target.LOCAL).first()
    if known is not None and (known.state != Target.State.NEW or _being_measured(known)):
        return known
    with transaction.atomic():
        target, _ = Target.objects.get_or_create(kind=Target.LOCAL, defaults={"name": "This machine"})
        if target.state == Target.State.NEW and not _being_measured(target):
            enqueue(Job.Task.HARDWARE, None, target=target)
    return target


def remeasure_if_changed() -> bool:
    """Measures this machine again where it is not the one that was measured; what is known stays in use until then.

    For the start of the site, and no more often: where its processes see different machines they never agree.
    """
    with transaction.atomic():
        target = Target.objects.select_for_update().filter(kind=Target.LOCAL, state=Target.State.READY).first()
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
        row = Target.objects.select_for_update().filter(pk=target.pk).first()
        if row is None:
            raise Refused(target.name, "it was removed", "reload the page")
        return _being_measured(row) or _measuring(row, user)


def device_at(text: str, key: str) -> Address:
    """That of HOST or HOST:PORT; raises Refused for what is no address and for what is no key."""
    try:
        return Address.read(text, key)
    except ValueError as error:
        reason, _, next_step = str(error).rpartition("; ")
        raise Refused(text or "no address", reason, next_step) from None


def add_device(address: Address, user: Any) -> Target:
    """The device at that address, which is called and measured; one that is known already is called with the new key, as is
    one that waits to be called. Raises Refused for who may not say so, and while it is called."""
    if not may_remeasure(user):
        raise Refused(address, "only who runs this site can add devices", "ask them to")
    with transaction.atomic():
        target, new = Target.objects.select_for_update().get_or_create(
            kind=Target.DEVICE,
            host=address.host,
            port=address.port,
            defaults={"name": str(address)[:200], "key": address.key},
        )
        job = _being_measured(target)
        if job and job.state in HELD:
            raise Refused(address, "it is being tested", "wait until that is over")
        if not new:
            Target.objects.filter(pk=target.pk).update(**_keys(target, address.key))
        if job is None:
            _measuring(target, user)
    return target


def _keys(target: Target, given: str) -> dict[str, str]:
    """Of a device that took its key once runs go on with that, until it takes the one that is given now."""
    if target.measured_at is None:
        return {"key": given, "new_key": ""}
    return {"new_key": "" if given == target.key else given}


def remove_device(target: Target, user: Any) -> None:
    """Raises Refused for this machine, for what runs were tuned for, and while it is called."""
    if not may_remeasure(user):
        raise Refused(target.name, "only who runs this site can remove devices", "ask them to")
    with transaction.atomic():
        row = Target.objects.select_for_update().filter(pk=target.pk, kind=Target.DEVICE).first()
        if row is None:
            raise Refused(target.name, "it is no device that was added", "remove one of those")
        if runs := row.runs.count():
            raise Refused(row.name, f"runs were tuned for it ({runs})", _left(row, user))
        if (job := _being_measured(row)) and job.state in HELD:
            raise Refused(row.name, "it is being measured", "wait until that is over")
        row.delete()


def _left(target: Target, user: Any) -> str:
    """What is to be done about a device's runs."""
    owners = set(target.runs.values_list("owner", flat=True)) - {None}
    if not owners:
        return "they are being deleted; try again in a minute"
    if user.pk not in owners:
        return "the accounts whose they are have to delete their networks first"
    others = "; the accounts whose the others are have to delete theirs" if len(owners) > 1 else ""
    return f"delete {'the networks of yours' if others else 'their networks'} first{others}"


def _measuring(target: Target, user: Any) -> Job:
    """A new job that does it; what failed before is forgotten."""
    failed = Target.objects.filter(pk=target.pk, state=Target.State.FAILED)
    failed.update(state=Target.State.NEW, error="", next_step="")
    return enqueue(Job.Task.HARDWARE, user, target=target)


def _being_measured(target: Target) -> Job | None:
    return Job.objects.filter(target=target, task=Job.Task.HARDWARE, state__in=ACTIVE).first()
