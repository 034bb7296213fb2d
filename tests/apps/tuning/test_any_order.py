"""Whatever users, workers and time do in whatever order, a job's invariants hold."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from apps.core import clock
from apps.tuning import services
from apps.tuning.models import Event, Job, Measurement
from apps.tuning.states import LEGAL, State
from tests.apps.rows import Site, Told


class Life(RuleBasedStateMachine):
    """One run, its user, and workers that come, die and come back from the dead."""

    def __init__(self) -> None:
        super().__init__()
        Job.objects.all().delete()
        from django.contrib.auth.models import User

        from apps.catalog.models import Target

        User.objects.all().delete()
        Target.objects.all().delete()
        self.site = Site()
        self.run = self.site.run()
        self.now = clock.now()
        self.claims: list[tuple[services.Claim, Any]] = []
        self.written = 0

    @property
    def job(self) -> Job:
        return Job.objects.get(pk=self.run.job_id)

    @rule()
    def work(self) -> None:
        again = self.job.again
        held = services.claim(self.run.job_id, now=self.now)
        if held is not None:
            assert again is None or again < self.now
            self.claims.append((held, Told()))

    @rule(seconds=st.sampled_from([1, 10, 40]))
    def wait(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    @rule(data=st.data(), twice=st.booleans())
    def tell(self, data: Any, twice: bool) -> None:
        if not self.claims:
            return
        self.tell_as(*data.draw(st.sampled_from(self.claims)), twice)

    def tell_as(self, held: services.Claim, told: Told, twice: bool) -> None:
        good = held.fence == self.job.fence and self.job.state in ("running", "stopping")
        event = told.batch(0.5)
        event["measurements"][0]["choices"] = [held.fence, int(told.clock * 4)]
        try:
            for _ in range(1 + twice):
                services.write(held, [*told.start(), event])
        except services.LeaseLost:
            assert not good
        else:
            assert good
            self.written += 1

    @rule(
        data=st.data(),
        kind=st.sampled_from(["finished", "paused", "stopped", "failed", "crashed", "interrupted", "lost"]),
    )
    def end(self, data: Any, kind: str) -> None:
        if self.claims:
            services.conclude(data.draw(st.sampled_from(self.claims))[0], kind, now=self.now)

    @rule(word=st.sampled_from(["pause", "resume", "stop"]))
    def ask(self, word: Any) -> None:
        try:
            services.request(self.run, self.site.ada, word)
        except services.Refused:
            assert self.job.state in ("done", "failed", "paused", "stopping")

    @rule()
    def mend(self) -> None:
        services.reconcile(self.now)

    @invariant()
    def nothing_is_lost_or_doubled(self) -> None:
        seqs = [
            seq
            for model in (Event, Measurement)
            for seq in model.objects.filter(run=self.run).values_list("seq", flat=True)
        ]
        assert sorted(seqs) == list(range(1, self.job.last_seq + 1))
        self.run.refresh_from_db()
        assert self.run.trials == self.written == Measurement.objects.filter(run=self.run).count()

    @invariant()
    def told_states_follow_the_table(self) -> None:
        events = Event.objects.filter(run=self.run, kind="state").order_by("seq")
        told = [State(payload["state"]) for payload in events.values_list("payload", flat=True)]
        assert told[-1] == self.job.state
        for before, after in itertools.pairwise(told):
            assert after == before or after in LEGAL[before]


class TestLife(Life.TestCase, TestCase):  # type: ignore[misc]
    settings = settings(max_examples=25 if connection.vendor == "sqlite" else 5, stateful_step_count=25, deadline=None)


@pytest.mark.mutation
def test_a_write_without_a_fence_is_found(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services.Claim, "held", lambda self: Job.objects.filter(pk=self.job_id))
    life = Life()
    life.work()
    life.now += timedelta(minutes=1)
    life.work()
    stale, told = life.claims[0]
    with pytest.raises(AssertionError):
        life.tell_as(stale, told, twice=False)
