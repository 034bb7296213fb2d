"""A run's compiled libraries: the newest are kept, and no file without a row."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from apps.core import clock
from apps.tuning import services
from apps.tuning.models import Artifact, Job, TuningRun

KEPT = Artifact.KEPT


@pytest.fixture
def run(site: Any) -> TuningRun:
    run, held, told = site.claimed()
    services.write(held, [told.batch(0.5), told.batch(0.3, operator=1)])
    run.refresh_from_db()
    return run


def answered(run: TuningRun, content: str, passed: bool = True) -> services.Claim:
    """The best so far, asked for, compiled and kept, by a worker that has not said so yet."""
    held = services.claim(services.request_artifact(run, run.owner).pk)
    assert held is not None
    archive = Path(held.order()["work_dir"]) / "artifact.zip"
    archive.write_text(content)
    result = {"kind": "result", "clock": 5.0, "task": "compile", "passed": passed, "verdict": {}, "latency": {},
              "onnxruntime": {}, "ratio": 0.5, "archive": str(archive) if passed else None}  # fmt: skip
    services.write(held, [result])
    return held


def compiled(run: TuningRun, content: str, passed: bool = True) -> None:
    services.conclude(answered(run, content, passed), "finished")


def contents(data: Path) -> set[str]:
    return {path.read_text() for path in (data / "artifacts").glob("*.zip")}


def test_the_newest_of_a_run_are_kept_and_the_files_of_the_others_go(run: TuningRun, data_dir: Path) -> None:
    for number in range(KEPT + 2):
        compiled(run, str(number))
    newest = {str(number) for number in range(2, KEPT + 2)}
    assert {artifact.path.read_text() for artifact in run.artifacts.all()} == newest
    services.sweep(clock.now() + timedelta(minutes=59))
    assert len(contents(data_dir)) == KEPT + 2
    services.sweep(clock.now() + timedelta(minutes=61))
    assert contents(data_dir) == newest


def test_a_library_that_goes_takes_its_file_along(
    run: TuningRun, data_dir: Path, django_capture_on_commit_callbacks: Any
) -> None:
    """What is on the disk is what is counted. A file that another has too, or that came again, stays for a sweep."""
    for content in ("a", "twice", "twice"):
        compiled(run, content)
    with django_capture_on_commit_callbacks(execute=True):
        compiled(run, "b")
    newest, _, twice, first = run.artifacts.all()
    with django_capture_on_commit_callbacks(execute=True):
        services.remove_library(first, run.owner)
        services.remove_library(twice, run.owner)
    assert contents(data_dir) == {"b", "twice"}
    os.utime(newest.path)
    with django_capture_on_commit_callbacks(execute=True):
        services.remove_library(newest, run.owner)
    assert contents(data_dir) == {"b", "twice"}
    for number in range(KEPT):
        with django_capture_on_commit_callbacks(execute=True):
            compiled(run, str(number))
    assert contents(data_dir) == {"b", *map(str, range(KEPT))}


def test_what_was_rejected_pushes_nothing_out_that_is_offered(run: TuningRun) -> None:
    compiled(run, "good")
    for _ in range(KEPT + 1):
        compiled(run, "", passed=False)
    assert run.artifacts.filter(state="ready").count() == 1
    assert run.artifacts.filter(state="rejected").count() == KEPT


def test_a_library_that_is_made_after_the_clock_was_set_back_is_the_newest(run: TuningRun) -> None:
    for number in range(KEPT):
        compiled(run, str(number))
    run.artifacts.update(created=clock.now() + timedelta(hours=1))
    for content in ("back", "later"):
        compiled(run, content)
        newest = run.artifacts.first()
        assert newest is not None
        assert newest.path.read_text() == content
    assert [artifact.path.read_text() for artifact in run.artifacts.all()][:2] == ["later", "back"]


def test_another_runs_artifacts_stay(site: Any, run: TuningRun) -> None:
    other, held, told = site.claimed()
    services.write(held, [told.batch(0.5), told.batch(0.3, operator=1)])
    compiled(other, "the other's")
    for number in range(KEPT + 1):
        compiled(run, str(number))
    assert other.artifacts.get().path.read_text() == "the other's"


def test_a_file_that_two_artifacts_name_stays_until_neither_does(site: Any, run: TuningRun, data_dir: Path) -> None:
    other, held, told = site.claimed()
    services.write(held, [told.batch(0.5), told.batch(0.3, operator=1)])
    compiled(other, "alike")
    compiled(run, "alike")
    later = clock.now() + timedelta(hours=2)
    run.artifacts.all().delete()
    services.sweep(later)
    assert contents(data_dir) == {"alike"}
    other.artifacts.all().delete()
    services.sweep(later)
    assert not contents(data_dir)


@pytest.mark.parametrize("passed", [True, False])
def test_what_a_dead_worker_has_answered_is_not_compiled_again(run: TuningRun, passed: bool) -> None:
    """Its message comes again before its lease is seen to have run out."""
    held = answered(run, "library", passed)
    late = clock.now() + timedelta(minutes=1)
    Job.objects.filter(task="baseline").delete()  # else that is what a message finds
    assert services.claim(held.job_id, now=late) is None
    services.reconcile(late)
    assert services.claim(held.job_id, now=late) is None
    job = Job.objects.get(pk=held.job_id)
    assert (job.state, job.attempt, job.error) == ("done", 1, "")
    assert [artifact.state for artifact in run.artifacts.all()] == ["ready" if passed else "rejected"]


@pytest.mark.parametrize("kind", ["crashed", "failed", "interrupted", "paused", "stopped"])
def test_what_is_answered_is_done_however_its_child_ends(run: TuningRun, kind: str) -> None:
    held = answered(run, "library")
    assert services.conclude(held, kind) == "done"
    assert services.reconcile(clock.now() + timedelta(minutes=1))["interrupted"] == 0
    assert Job.objects.get(pk=held.job_id).state == "done"
    assert run.artifacts.get().path.read_text() == "library"
