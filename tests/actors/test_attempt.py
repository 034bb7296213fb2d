"""What an attempt does while it cannot look at its lease."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError

from apps.catalog.models import Network
from apps.catalog.services import create_network
from apps.core import clock
from apps.tuning import services
from apps.tuning.files import keep_archive
from apps.tuning.leases import Claim
from apps.tuning.models import Artifact, Job, TuningRun
from tests.apps.rows import Site
from tests.processes import eventually
from workers.actors import attempt, lease
from workers.actors import journal as actors_journal
from workers.actors.journal import DatabaseJournal
from workers.messages.channel import LeaseLost
from workers.supervision import Ending

Claimed = Callable[[Any], Claim]


@pytest.fixture
def site(transactional_db: None, data_dir: Path) -> Site:
    return Site()


@pytest.fixture
def claimed(monkeypatch: pytest.MonkeyPatch) -> Claimed:
    """Claims a job with a lease that is nearly over."""
    monkeypatch.setattr(lease, "RENEWAL", 0.02)

    def claimed(job_id: Any) -> Claim:
        held = services.claim(job_id, now=clock.now() - timedelta(seconds=29))
        assert held is not None
        return held

    return claimed


@pytest.fixture
def held(site: Site, claimed: Claimed) -> Claim:
    return claimed(site.run().job_id)


@pytest.fixture
def compiling(site: Site, claimed: Claimed) -> Claim:
    """Of a child that has compiled a library."""
    run, tuning, told = site.claimed()
    services.write(tuning, [told.batch(0.5), told.batch(0.3, operator=1)])
    held = claimed(services.request_artifact(run, site.ada).pk)
    held.work_dir.mkdir(parents=True)
    (held.work_dir / "artifact.zip").write_bytes(b"library")
    return held


def result(held: Claim) -> dict[str, Any]:
    return {
        "kind": "result", "clock": 5.0, "task": "compile", "passed": True, "verdict": {}, "latency": {}, "ratio": 0.5,
        "onnxruntime": {}, "archive": str(held.work_dir / "artifact.zip"),
    }  # fmt: skip


def lease_of(held: Claim) -> datetime:
    until = Job.objects.values_list("lease_until", flat=True).get(pk=held.job_id)
    assert until is not None
    return until


def wait_for_renewal(held: Claim, before: datetime) -> None:
    eventually(lambda: lease_of(held) > before + timedelta(seconds=20), 20, "the renewal")


def renewing() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "lease"]


def test_the_lease_is_renewed_while_an_order_is_made(held: Claim, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a run with many measurements that takes longer than a lease lasts."""
    before = lease_of(held)

    def slow(self: Claim) -> dict[str, Any]:
        wait_for_renewal(held, before)
        raise RuntimeError("that is enough")

    monkeypatch.setattr(Claim, "order", slow)
    ending = attempt._supervised(held, DatabaseJournal(held, threading.Event()))
    assert (ending.kind, ending.detail) == ("crashed", "RuntimeError: that is enough")
    assert not renewing()


def test_an_attempt_that_lost_its_lease_meanwhile_writes_nothing(held: Claim, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(self: Claim) -> dict[str, Any]:
        Job.objects.filter(pk=held.job_id).update(fence=held.fence + 1)
        eventually(lambda: not renewing(), 20, "the end")
        raise RuntimeError("too late")

    monkeypatch.setattr(Claim, "order", slow)
    journal = DatabaseJournal(held, threading.Event())
    ending = attempt._supervised(held, journal)
    assert (ending.kind, ending.detail) == ("crashed", "RuntimeError: too late"), "the renewing had ended"
    assert lease_of(held) < clock.now() + timedelta(seconds=20)
    with pytest.raises(LeaseLost):
        journal.write([{"kind": "phase", "clock": 0.0, "name": "late", "text": "too late"}])
    assert not TuningRun.objects.get().events.filter(kind="phase").exists()


@pytest.mark.parametrize(
    ("leaving", "turned", "ended", "state", "said"),
    [
        (False, True, "paused", "queued", "its turn is over"),
        (False, False, "paused", "queued", ""),
        (False, True, "finished", "done", ""),
        (True, True, "paused", "interrupted", ""),
    ],
)
def test_what_ended_an_attempt_early_decides_who_comes_next(
    site: Site, monkeypatch: pytest.MonkeyPatch, leaving: bool, turned: bool, ended: str, state: str, said: str
) -> None:
    run, folders = site.run(), list[Path]()
    attempts = attempt.Attempts()

    def supervised(claim: Claim, journal: DatabaseJournal) -> Any:
        folders.append(claim.work_dir)
        claim.work_dir.mkdir(parents=True)
        (claim.work_dir / "half").touch()
        if turned:
            monkeypatch.setattr(services, "heartbeat", lambda held: "turn")
            assert journal.heartbeat() == "turn"
            monkeypatch.setattr(services, "heartbeat", lambda held: "continue")
        if leaving:
            attempts.leaving.set()
        assert journal.heartbeat() == ("pause" if leaving else "continue")
        return Ending(ended)

    monkeypatch.setattr(attempt, "_supervised", supervised)
    attempts.at(str(run.job_id))
    job = Job.objects.get(pk=run.job_id)
    assert job.state == state
    assert job.error.startswith(said)
    assert bool(job.error) == bool(said)
    assert not folders[0].exists(), "what it left may be what fills the disk"


def test_the_lease_is_renewed_while_an_archive_is_copied(compiling: Claim, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of gigabytes takes a disk longer than a lease lasts."""
    before = lease_of(compiling)

    def slow(*asked: Any) -> Any:
        wait_for_renewal(compiling, before)
        assert services.reconcile(before + timedelta(seconds=1))["expired"] == 0
        return keep_archive(*asked)

    monkeypatch.setattr("apps.tuning.journal.archives.keep_archive", slow)
    DatabaseJournal(compiling, threading.Event()).write([result(compiling)])
    assert Artifact.objects.get().path.read_bytes() == b"library"
    assert not renewing()


def test_a_lease_that_was_lost_while_an_archive_was_copied_keeps_nothing(
    compiling: Claim, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*asked: Any) -> Any:
        Job.objects.filter(pk=compiling.job_id).update(fence=compiling.fence + 1)
        eventually(lambda: not renewing(), 20, "the end")
        return keep_archive(*asked)

    monkeypatch.setattr("apps.tuning.journal.archives.keep_archive", slow)
    with pytest.raises(LeaseLost):
        DatabaseJournal(compiling, threading.Event()).write([result(compiling)])
    assert not Artifact.objects.exists()
    (asked,) = TuningRun.objects.get().events.filter(kind="artifact")
    assert asked.payload["state"] == "queued"


def test_who_has_read_a_file_reads_the_next_whose_message_was_gone(site: Site, lock_of_its_own: None) -> None:
    keys = [create_network(site.ada, f"{number}.onnx", [b"rubbish %d" % number]).pk for number in range(2)]
    attempt.Attempts().at(str(Job.objects.get(network=keys[0]).pk))
    assert [Network.objects.get(pk=key).state for key in keys] == ["rejected", "rejected"]


def test_a_database_that_cannot_be_asked_is_asked_again_while_the_lease_lasts(
    held: Claim, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, asked = DatabaseJournal(held, threading.Event()), services.heartbeat

    def locked(*_: Any) -> Any:
        raise OperationalError("database is locked")

    monkeypatch.setattr(services, "heartbeat", locked)
    held.renewed = clock.now()
    assert journal.heartbeat() == "continue"
    held.renewed = clock.now() - timedelta(seconds=26)
    with pytest.raises(OperationalError):
        journal.heartbeat()
    monkeypatch.setattr(services, "heartbeat", asked)
    assert journal.heartbeat() == "continue"


def test_what_a_broken_connection_refused_is_written_again_while_the_lease_lasts(
    held: Claim, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Any] = []

    def broken(_: Claim, events: Any) -> None:
        written.append(events)
        if len(written) < 4:
            raise OperationalError("the connection is closed")

    monkeypatch.setattr(services, "write", broken)
    monkeypatch.setattr(actors_journal, "PAUSE", 0.0)
    journal, event = DatabaseJournal(held, threading.Event()), {"kind": "phase", "clock": 0.0, "name": "a", "text": "b"}
    held.renewed = clock.now()
    journal.write([event])
    assert written == [[event]] * 4
    written.clear()
    held.renewed = clock.now() - timedelta(seconds=26)
    with pytest.raises(OperationalError):
        journal.write([event])
    assert len(written) == 1


def test_signs_of_life_are_not_kept(held: Claim, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Any] = []
    monkeypatch.setattr(services, "write", lambda _, events: written.append(events))
    beat = {"kind": "log", "clock": 0.0, "level": "info", "text": "still compiling", "beat": True}
    said = {"kind": "log", "clock": 0.0, "level": "info", "text": "compiled"}
    journal = DatabaseJournal(held, threading.Event())
    journal.write([beat])
    journal.write([beat, said])
    assert written == [[said]]


@pytest.mark.parametrize(("code", "kind"), [(-9, "crashed"), (-15, "crashed"), (-11, "failed")])
def test_a_reader_that_was_stopped_with_the_site_refuses_no_file(code: int, kind: str) -> None:
    ending = Ending("crashed", cause="signal", detail="it was ended by a signal", exit_code=code)
    assert attempt._verdict(ending, "inspect").kind == kind
