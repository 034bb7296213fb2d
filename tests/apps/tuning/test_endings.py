"""Every rule of what becomes of a job when an attempt at it has ended."""

from __future__ import annotations

from typing import Any

import pytest

from apps.tuning import endings
from apps.tuning.endings import PAUSES, TURN, After, after
from apps.tuning.models import Job
from workers.messages.names import ATTEMPTS

KINDS = ("finished", "paused", "stopped", "failed", "crashed", "interrupted", "expired")
SHORT = ("inspect", "convert", "hardware", "compile", "baseline")
DETAIL = "signal 11"
NOWHERE = "3 attempts in a row got nowhere; the last one: signal 11"
WAIT = "wait, it is tried again by itself"


def job(task: str = "tune", state: str = "running", wanted: str = "continue", fruitless: int = 1, **more: Any) -> Job:
    return Job(task=task, state=state, wanted=wanted, fruitless=fruitless, **more)


def ended(kind: str, **about: Any) -> After:
    return after(job(**about), kind, DETAIL, {"reason": "trials", "next_step": "buy some"})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("state", ["running", "stopping"])
@pytest.mark.parametrize("task", SHORT)
def test_who_answered_is_done_however_it_left(task: str, state: str, kind: str) -> None:
    about = {"task": task, "state": state, "fruitless": ATTEMPTS, "answered": True}
    assert ended(kind, **about) == After("done", ATTEMPTS)
    assert ended(kind, **about, error="no room", next_step="make some") == After(
        "failed", ATTEMPTS, error="no room", next_step="make some"
    )


@pytest.mark.parametrize("wanted", ["continue", "pause", "stop", "keep"])
@pytest.mark.parametrize("task", ["tune", *SHORT])
def test_a_fault_that_the_child_told_of_is_final(task: str, wanted: str) -> None:
    found = ended("failed", task=task, wanted=wanted)
    assert found == After("failed", 1, error="trials", next_step="buy some")
    assert after(job(task), "failed", DETAIL).error == DETAIL


@pytest.mark.parametrize("kind", ["finished", "paused", "stopped"])
@pytest.mark.parametrize("task", SHORT)
def test_a_short_task_that_ends_without_its_result_failed(task: str, kind: str) -> None:
    found = ended(kind, task=task)
    assert (found.state, found.pause) == ("failed", None)
    assert "without a result" in found.error
    assert found.next_step


@pytest.mark.parametrize(
    ("kind", "state", "wanted", "found"),
    [
        ("finished", "running", "continue", After("done", 1, "trials")),
        ("finished", "running", "pause", After("done", 1, "trials")),
        ("finished", "stopping", "stop", After("done", 1, "trials")),
        ("stopped", "running", "continue", After("done", 1, "stopped")),
        ("stopped", "running", "pause", After("done", 1, "stopped")),
        ("stopped", "stopping", "keep", After("done", 1, "stopped")),
        ("paused", "running", "continue", After("queued", 0)),
        ("paused", "running", "pause", After("paused", 0)),
        ("paused", "stopping", "stop", After("done", 1, "stopped")),
        (
            "turn",
            "running",
            "continue",
            After("queued", 1, error=TURN, next_step="wait, it goes on by itself from where it is"),
        ),
        ("turn", "running", "pause", After("paused", 0)),
        ("turn", "stopping", "stop", After("done", 1, "stopped")),
        ("interrupted", "running", "continue", After("interrupted", 0)),
        ("interrupted", "running", "pause", After("paused", 0)),
        ("interrupted", "stopping", "keep", After("done", 1, "stopped")),
        ("crashed", "running", "pause", After("paused", 0)),
        ("crashed", "stopping", "stop", After("done", 1, "stopped")),
        ("expired", "running", "continue", After("queued", 1)),
        ("expired", "running", "pause", After("paused", 0)),
        ("expired", "stopping", "keep", After("done", 1, "stopped")),
    ],
)
def test_a_run_goes_on_as_its_user_wants(kind: str, state: str, wanted: str, found: After) -> None:
    assert ended(kind, state=state, wanted=wanted) == found


@pytest.mark.parametrize(
    ("kind", "fruitless", "found"),
    [
        ("crashed", 1, After("queued", 1, "", f"attempt 1 of 3 got nowhere: {DETAIL}", WAIT, PAUSES[0])),
        ("crashed", 2, After("queued", 2, "", f"attempt 2 of 3 got nowhere: {DETAIL}", WAIT, PAUSES[1])),
        ("crashed", 3, After("failed", 3, "", NOWHERE, "look at the log; resume to try again")),
        ("expired", 0, After("queued", 0)),
        ("expired", 2, After("queued", 2)),
        ("expired", 3, After("failed", 3, "", NOWHERE, "look at the log; resume to try again")),
        ("interrupted", 0, After("interrupted", 0)),
        ("interrupted", 3, After("interrupted", 2)),
        ("paused", 3, After("queued", 0)),
        ("turn", 0, After("queued", 0, "", TURN, "wait, it goes on by itself from where it is")),
        ("turn", 3, After("failed", 3, "", NOWHERE, "look at the log; resume to try again")),
    ],
)
def test_attempts_that_got_nowhere_are_counted(kind: str, fruitless: int, found: After) -> None:
    assert ended(kind, fruitless=fruitless) == found


def test_a_run_that_is_given_up_after_turns_says_why() -> None:
    found = after(job(fruitless=ATTEMPTS), "turn")
    assert found.error == f"{ATTEMPTS} attempts in a row got nowhere; the last one: {TURN}"


def test_a_run_that_measured_something_and_crashed_goes_on_at_once_and_says_why() -> None:
    found = after(job(fruitless=0, attempt=7), "crashed", DETAIL)
    assert found == After("queued", 0, "", f"attempt 7 crashed: {DETAIL}", WAIT)


@pytest.mark.parametrize("kind", ["crashed", "expired"])
def test_a_short_task_that_gets_nowhere_can_be_asked_for_again(kind: str) -> None:
    found = ended(kind, task="compile", fruitless=ATTEMPTS)
    assert found == After("failed", ATTEMPTS, "", NOWHERE, "ask for it again")
    found = ended(kind, task="baseline", fruitless=ATTEMPTS)
    assert found.next_step == "look at the log, and have it measured again"


def test_a_child_may_say_anything() -> None:
    found = after(job(), "failed", last={"reason": ["\0\ud800"] * 9999, "next_step": "a\0b\ud800"})
    assert len(found.error) == endings.LONGEST
    assert found.next_step == "ab?"
    assert after(job(), "finished", last={"reason": "\0no\ud800"}).reason == "no?"
    assert after(job(), "crashed", "\0" * 9 + "x").error.endswith(": x")
