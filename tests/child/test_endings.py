"""How a child leaves that cannot do what it was asked for: for good, or so that it is tried again."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from workers.child import peers
from workers.child.__main__ import passing
from workers.child.peers import ArtifactFailed, run_script
from workers.headless.ask import MemoryJournal
from workers.messages.events import Event
from workers.messages.names import READING
from workers.messages.orders import compile_order
from workers.messages.spec import AUTO, RunSpec
from workers.messages.tuning_log import FILE
from workers.supervision import Ending, supervise

LONG = "x" * 300
"""No file has so long a name: the system says so as it says that there is no room, and it can be had anywhere."""


SPEC = RunSpec("net.onnx", {"kind": "llvm"}, 1, 1e11, 1e10)


def ended(order: dict[str, Any]) -> tuple[Ending, list[Event]]:
    journal = MemoryJournal()
    ending = supervise(order, journal)
    return ending, [event for event in journal.events if event["kind"] == "failed" or event.get("level") == "error"]


def compiling(work_dir: Path) -> dict[str, Any]:
    return compile_order(SPEC.to_json(), work_dir, "net", AUTO, {}, None, work_dir / FILE, 0.0, None, "")


def test_what_the_system_refuses_now_is_tried_again_and_says_why(tmp_path: Path) -> None:
    ending, told = ended(compiling(tmp_path / LONG))
    assert (ending.kind, ending.cause, ending.exit_code) == ("crashed", "exit", 1)
    assert "File name too long" in ending.detail
    assert [(event["kind"], event["text"]) for event in told] == [("log", ending.detail)]


@pytest.mark.parametrize(
    "order",
    [
        {"task": "inspect", "network": f"/tmp/{LONG}"},
        {"task": "convert", "source": f"/tmp/{LONG}", "allowed": True, "work_dir": "/tmp"},
        compiling(Path("/proc/nowhere")),
        compiling(Path("/dev/null/nowhere")),
    ],
    ids=["a file that is read", "a file that is converted", "nowhere", "no directory"],
)
def test_what_will_not_change_is_told_once_and_for_all(order: dict[str, Any]) -> None:
    ending, told = ended(order)
    assert ending.kind == "failed"
    assert [event["kind"] for event in told] == ["failed"]
    assert told[0]["reason"]


@pytest.mark.parametrize("task", ["tune", "compile", "inspect"])
@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("can't start new thread"), RuntimeError("InternalError: std::bad_alloc")]
)
def test_a_machine_without_memory_is_not_what_was_asked_for_unless_a_file_was_read(error: Exception, task: str) -> None:
    assert passing(error, task) is (task not in READING)


@pytest.mark.parametrize(("end", "again"), [("9", True), ("11", False)], ids=["killed", "crashed"])
def test_a_process_that_was_killed_from_outside_is_run_again(end: str, again: bool, tmp_path: Path) -> None:
    (tmp_path / "run.py").write_text(f"import os; os.kill(os.getpid(), {end})")
    with pytest.raises(ArtifactFailed) as caught:
        run_script(SPEC, tmp_path)
    assert passing(caught.value, "compile") is again


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.EIO])
def test_a_machine_without_room_is_not_what_was_asked_for(number: int) -> None:
    assert passing(OSError(number, "said"), "tune")


@pytest.mark.parametrize(
    ("script", "again"),
    [("with open('/dev/full', 'w') as outputs:\n    outputs.write('1')", True), ("raise ValueError('wrong')", False)],
    ids=["no room for the outputs", "a mistake"],
)
def test_a_library_whose_own_script_finds_no_room_is_run_again(script: str, again: bool, tmp_path: Path) -> None:
    (tmp_path / "run.py").write_text(script)
    with pytest.raises(ArtifactFailed) as caught:
        run_script(SPEC, tmp_path)
    assert passing(caught.value, "compile") is again


def test_a_process_that_hangs_is_ended_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run.py").write_text("import time; time.sleep(600)")
    monkeypatch.setattr(peers, "PATIENCE", 0.2)
    with pytest.raises(ArtifactFailed, match=r"^run\.py did not answer within 0\.2 s and was ended$"):
        run_script(SPEC, tmp_path)


def test_onnx_runtime_is_called_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(ArtifactFailed, match=r"^ONNX Runtime( failed)?: .*net\.onnx"):
        peers.onnxruntime(SPEC, tmp_path)


@pytest.mark.tvm
def test_a_linker_that_finds_no_room_links_again(tmp_path: Path) -> None:
    from tvm.support import cc

    (tmp_path / "model.c").write_text("int model(void) { return 0; }")
    with pytest.raises(RuntimeError) as caught:
        cc.create_shared("/dev/full", [str(tmp_path / "model.c")])
    assert passing(caught.value, "compile")


@pytest.mark.parametrize("error", [FileNotFoundError(2, "gone"), PermissionError(13, "not yours"), ValueError("wrong")])
def test_what_is_gone_forbidden_or_wrong_stays_so(error: Exception) -> None:
    assert not passing(error, "tune")


@pytest.mark.parametrize("task", READING)
def test_of_a_file_that_may_mean_harm_nothing_is_tried_again(task: str) -> None:
    assert not passing(OSError(errno.ENOSPC, "said"), task)
