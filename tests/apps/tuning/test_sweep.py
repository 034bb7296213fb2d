"""What nobody reads any more goes; what somebody may read stays."""

from __future__ import annotations

import os
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from apps.catalog.models import Network
from apps.core import clock
from apps.core.content import keep
from apps.operations import site
from apps.tuning import services, sweep
from apps.tuning.models import Job
from tests.folders import deep
from workers.messages.folders import remove_tree

OLD, NEW = timedelta(minutes=61), timedelta(minutes=59)


def left(path: Path, age: timedelta, folder: bool = False) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if folder:
        path.mkdir()
        (path / "inside").write_text("text")
    else:
        path.write_text("text")
    then = (clock.now() - age).timestamp()
    os.utime(path, (then, then))
    return path


def test_old_halves_and_uploads_go(db: None, data_dir: Path) -> None:
    names = ("networks/partial-a", "artifacts/partial-a", "uploads/a.upload")
    old = [left(data_dir / name, OLD) for name in names]
    kept = [left(data_dir / f"{name}b", NEW) for name in names] + [left(data_dir / "networks/a.onnx", OLD)]
    assert services.sweep() == len(old)
    assert not any(path.exists() for path in old)
    assert all(path.exists() for path in kept)


def test_before_the_web_process_begins_uploads_go_however_young_they_are(
    db: None, data_dir: Path, settings: Any
) -> None:
    settings.FILE_UPLOAD_TEMP_DIR = data_dir / "uploads"
    left(data_dir / "uploads" / "a.upload", timedelta(0))
    kept = left(data_dir / "networks" / "partial-a", timedelta(0))
    site.web(3).before(0)
    assert not list((data_dir / "uploads").iterdir())
    assert kept.exists(), "a worker may be writing it"


@pytest.mark.parametrize(
    ("source", "state", "kept"),
    [
        ("", "ready", {"d.onnx"}),
        ("e", "ready", {"d.onnx"}),
        ("d", "inspecting", {"d.onnx", "d.pt2"}),
        ("d", "rejected", set()),
        ("", "rejected", set()),
    ],
)
def test_files_that_no_network_names_go(site: Any, data_dir: Path, source: str, state: str, kept: set[str]) -> None:
    Network.objects.create(owner=site.ada, name="n", sha256="d" * 64, source=source * 64, size=1, state=state)
    for name in ("d.onnx", "d.pt2", "e.onnx", "e.pt2"):
        left(data_dir / "networks" / (name[0] * 63 + name), OLD)
    left(data_dir / "networks" / f"{'f' * 64}.pt2", NEW)
    services.sweep()
    assert {path.name[63:] for path in (data_dir / "networks").glob("[def]*")} == kept | {"f.pt2"}


def test_a_file_that_comes_again_does_not_go_before_its_network_is_there(site: Any, data_dir: Path) -> None:
    kept = left(data_dir / "networks" / f"{sha256(b'text').hexdigest()}.onnx", OLD)
    keep([b"text"], kept.parent, ".onnx")
    assert services.sweep() == 0
    assert kept.exists()


@pytest.mark.parametrize(
    ("state", "ended", "goes"),
    [("done", OLD, True), ("failed", OLD, True), ("done", NEW, False), ("paused", None, True),
     ("running", None, False), ("queued", None, True)],
)  # fmt: skip
def test_directories_of_jobs_that_nobody_is_at_go(
    site: Any, data_dir: Path, state: str, ended: Any, goes: bool
) -> None:
    run = site.run()
    Job.objects.filter(pk=run.job_id).update(state=state, ended=ended and clock.now() - ended)
    folder = left(data_dir / "work" / str(run.job_id), OLD, folder=True)
    assert services.sweep() == goes
    assert folder.exists() is not goes


def test_directories_of_deleted_jobs_go_and_foreign_ones_stay(db: None, data_dir: Path) -> None:
    gone, fresh = str(uuid4()), str(uuid4())
    folders = {name: left(data_dir / "work" / name, age, folder=True)
               for name, age in ((gone, OLD), (fresh, NEW), ("notes", OLD))}  # fmt: skip
    services.sweep()
    assert [name for name, folder in folders.items() if folder.exists()] == [fresh, "notes"]


def test_what_was_left_half_removed_goes_however_young(db: None, data_dir: Path) -> None:
    folder = left(data_dir / "work" / f"{uuid4()}.0a1b2c3d.gone", timedelta(0), folder=True)
    services.sweep()
    assert not folder.exists()


def test_a_directory_that_is_made_anew_while_the_old_one_goes_stays(
    site: Any, django_capture_on_commit_callbacks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, held, _ = site.claimed()
    left(held.work_dir / "old", OLD)

    def resumed(folder: Path) -> bool:
        left(held.work_dir / "new", NEW)
        return remove_tree(folder)

    monkeypatch.setattr(sweep, "remove_tree", resumed)
    with django_capture_on_commit_callbacks(execute=True):
        services.conclude(held, "finished")
    assert [path.name for path in held.work_dir.iterdir()] == ["new"]
    assert [path.name for path in held.work_dir.parent.iterdir()] == [held.work_dir.name]


def test_a_directory_deeper_than_the_stack_goes_like_any_other(
    site: Any, data_dir: Path, django_capture_on_commit_callbacks: Any
) -> None:
    """With its job, or when it is swept."""
    _, held, _ = site.claimed()
    deep(held.work_dir, 1500)
    with django_capture_on_commit_callbacks(execute=True):
        services.conclude(held, "finished")
    assert not held.work_dir.exists()
    deep(data_dir / "work" / str(uuid4()), 1500)
    assert services.sweep(clock.now() + OLD) == 1
    assert list((data_dir / "work").iterdir()) == []


def test_files_of_artifacts_that_no_row_names_go(db: None, data_dir: Path) -> None:
    """And nothing else of their directory."""
    names = {"a" * 64 + ".zip": OLD, "b" * 64 + ".zip": NEW, "notes.zip": OLD}
    files = {name: left(data_dir / "artifacts" / name, age) for name, age in names.items()}
    (data_dir / "artifacts" / ("c" * 64 + ".zip")).symlink_to(files["notes.zip"])
    assert services.sweep() == 1
    assert [name[0] for name, file in files.items() if file.exists()] == ["b", "n"]
