"""Whose uploaded file is read next."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from apps.catalog.models import Network
from apps.catalog.services import create_network
from apps.core import clock
from apps.tuning import services
from apps.tuning.models import Job, Outbox
from apps.tuning.reconcile import PATIENCE
from apps.tuning.waiting import Wait, wait_of
from tests.apps.rows import Site
from tests.apps.threads import in_threads


def upload(owner: User, name: str) -> Any:
    """The key of the job that reads it; its content is its name's."""
    network = create_network(owner, name, [name.encode()])
    return Job.objects.filter(network=network).latest("created").pk


def taken(message: Any) -> services.Claim:
    held = services.claim(message)
    assert held is not None
    return held


def taken_of(message: Any) -> tuple[str, str]:
    """Whose file is read where this message comes, and which."""
    network = Network.objects.get(jobs=taken(message).job_id)
    assert network.owner is not None
    return network.owner.username, network.name


def test_many_uploads_of_one_account_keep_another_waiting_for_one_of_them_at_most(site: Site) -> None:
    messages = [upload(site.ada, f"{number}.onnx") for number in range(3)]
    messages += [upload(site.bob, "0.onnx")]
    assert taken_of(messages[0]) == ("ada", "0")
    assert taken_of(messages[1]) == ("bob", "0")
    assert taken_of(messages[2]) == ("ada", "1"), "nobody else waits"
    assert taken_of(messages[3]) == ("ada", "2"), "whose message was taken for another's finds one, too"
    assert services.claim(messages[3]) is None


def test_accounts_take_turns_though_there_are_more_than_are_read_at_a_time(site: Site) -> None:
    late = User.objects.create_user("late", password="a long password")
    messages = [upload(owner, f"{number}.onnx") for owner in (site.ada, site.bob, late) for number in range(3)]
    read = []
    for message in messages:
        held = taken(message)
        read.append(Job.objects.get(pk=held.job_id).owner)
        services.conclude(held, "failed", last={"kind": "failed", "clock": 0.0, "reason": "no network"})
    assert read == 3 * [site.ada, site.bob, late]


def test_an_account_has_one_conversion_at_a_time_and_what_is_quick_beside_it(site: Site, settings: Any) -> None:
    settings.ALLOW_TORCH_EXPORT = True
    first, second, quick = (upload(site.ada, name) for name in ("a.pt2", "b.pt2", "c.onnx"))
    other = upload(site.bob, "d.pt2")
    held = taken(first)
    assert held.job_id == first
    assert wait_of(Job.objects.get(pk=second)) == Wait(1, None, True)
    assert taken(second).job_id == other
    assert taken(second).job_id == quick
    assert services.claim(second) is None
    services.conclude(held, "failed", last={"kind": "failed", "clock": 0.0, "reason": "no network"})
    assert taken(second).job_id == second


def test_what_is_next_is_found_when_what_was_read_is_gone(site: Site) -> None:
    first, last = upload(site.ada, "a.onnx"), upload(site.ada, "b.onnx")
    services.conclude(taken(first), "failed", last={"kind": "failed", "clock": 0.0, "reason": "no network"})
    services.remove_network(Network.objects.get(jobs=first), site.ada)
    found = services.claim_read()
    assert found is not None
    assert found.job_id == last


def test_who_chose_a_second_conversion_by_what_was_true_before_leaves_it(
    site: Site, settings: Any, monkeypatch: Any
) -> None:
    settings.ALLOW_TORCH_EXPORT = True
    first, second = (upload(site.ada, name) for name in ("a.pt2", "b.pt2"))
    assert taken(first).job_id == first
    chosen = [second, None]
    monkeypatch.setattr("apps.tuning.leases.next_read", lambda ready: chosen.pop(0))
    assert services.claim(second) is None
    assert chosen == []


def test_no_message_is_sent_again_for_what_waits_for_a_conversion_of_its_account(site: Site, settings: Any) -> None:
    settings.ALLOW_TORCH_EXPORT = True
    held, second = taken(upload(site.ada, "a.pt2")), upload(site.ada, "b.pt2")
    Outbox.objects.filter(job=second).update(sent_at=clock.now() - 2 * PATIENCE)
    assert services.reconcile()["resent"] == 0
    services.conclude(held, "failed", last={"kind": "failed", "clock": 0.0, "reason": "no network"})
    assert services.reconcile()["resent"] == 1


def at_once(messages: list[Any]) -> set[Any]:
    """The keys of the jobs that are claimed where these come."""
    found = in_threads(len(messages), lambda number: services.claim(messages[number]))
    return {held.job_id for held in found if held is not None}


@pytest.mark.django_db(transaction=True)
def test_of_many_messages_that_come_at_once_each_finds_a_job() -> None:
    site = Site()
    messages = [upload(site.ada, f"{number}.onnx") for number in range(4)]
    assert at_once(messages) == set(messages)


@pytest.mark.django_db(transaction=True)
def test_of_an_accounts_conversions_that_are_asked_for_at_once_one_begins(settings: Any) -> None:
    settings.ALLOW_TORCH_EXPORT = True
    site = Site()
    messages = [upload(site.ada, f"{number}.pt2") for number in range(4)]
    assert at_once(messages) == {messages[0]}
