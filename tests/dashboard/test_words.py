"""One word for a state, wherever it is said."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from apps.dashboard import words
from apps.tuning import services
from apps.tuning.models import Job, TuningRun
from apps.tuning.waiting import Wait
from tests.apps.rows import Site


@pytest.mark.parametrize(
    ("state", "wanted", "reason", "word"),
    [
        ("queued", "continue", "", "waiting"), ("running", "continue", "", "running"), ("running", "pause", "", "pausing"),
        ("paused", "continue", "", "paused"), ("stopping", "keep", "", "stopping"), ("failed", "continue", "", "failed"),
        ("interrupted", "continue", "", "interrupted, goes on by itself"), ("done", "continue", "stopped", "stopped"),
        ("done", "continue", "seconds", "done: time is up"), ("done", "continue", "", "done"),
    ],
)  # fmt: skip
def test_every_page_says_the_same_of_a_state(
    site: Site, ada: Client, state: str, wanted: str, reason: str, word: str
) -> None:
    run, held, told = site.claimed()
    services.write(held, [told.batch(0.004)])
    TuningRun.objects.filter(pk=run.pk).update(finished_reason=reason)
    Job.objects.filter(pk=run.job_id).update(state=state, wanted=wanted, lease_until=None)
    pages = ["/", reverse("run", args=[run.pk]), reverse("operator", args=[run.pk, 0])]
    for address in pages:
        assert f"</svg>{word}</span>" in ada.get(address).content.decode().replace(
            '<span data-part="state-word">', ""
        ), address


@pytest.mark.parametrize(
    ("wait", "text"),
    [
        (Wait(0, 0.0, True), ""),
        (Wait(1, None, True), "1 run before this one"),
        (Wait(1, 12.0, True), "1 run before this one, about 1 min"),
        (Wait(2, 390.0, True), "2 runs before this one, about 7 min"),
    ],
)
def test_who_waits_is_told_how_long(wait: Wait, text: str) -> None:
    assert words.before(wait) == text
