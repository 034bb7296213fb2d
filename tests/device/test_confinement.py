"""What was sent to a device cannot do there, whether it is loaded or started; and what one connection may do to another."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator
from multiprocessing import Pipe
from multiprocessing.connection import answer_challenge, deliver_challenge, wait
from pathlib import Path
from threading import Thread
from typing import Any
from zlib import compress

import pytest

from tests.device.running import SECRET, Running, device
from tests.folders import deep
from tests.kernel import needs
from tests.processes import alive, comes_true, eventually
from workers.device.__main__ import Key, end, end_full, heed, heed_all, listen, proven
from workers.device.environment import environment
from workers.messages.device import proofs
from workers.sandbox import threads
from workers.sandbox.spawn import ROOT
from workers.sandbox.tree import TREE_VARIABLE

pytestmark = pytest.mark.tvm


def confines(test: Any) -> Any:
    return needs("scopes")(needs("filter")(test))


SCRIPT = """
import json, os, socket, sys
key, outside, listener = sys.argv[1:]
found = []
for attempt in (
    lambda: open(key).read(),
    lambda: open(outside, "w"),
    lambda: os.unlink(key),
    lambda: os.kill(int(listener), 0),
    socket.socket,
    lambda: open("kept", "w"),
):
    try:
        attempt()
        found.append(0)
    except OSError as error:
        found.append(error.errno)
print(json.dumps(found))
"""
READER = """
import sys
for path in sys.argv[1:]:
    try:
        print(len(open(path).read()))
    except OSError as error:
        print(error.errno)
"""
ENVIRONMENT = """
import os
print(os.environ)
for pid in (os.getpid(), os.getppid()):
    print(open(f"/proc/{pid}/environ").read())
"""
BOUNDS = "import resource as r; print(*(r.getrlimit(kind)[0] for kind in (r.RLIMIT_FSIZE, r.RLIMIT_NPROC)))"
LEAVES = """
import subprocess as s
left = s.Popen(["sleep", "600"], process_group=0, stdout=s.DEVNULL, stderr=s.DEVNULL)
"""
LIBRARY = """
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
__attribute__((constructor)) static void loaded(void) {
    int read = open(KEY, O_RDONLY) < 0 ? errno : 0;
    int called = socket(AF_INET, SOCK_STREAM, 0) < 0 ? errno : 0;
    FILE *told = fopen("told", "w");
    fprintf(told, "%d %d", read, called);
    fclose(told);
}
"""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with device(tmp_path_factory.mktemp("device")) as one:
        yield one


@pytest.fixture
def line(running: Running) -> Iterator[Any]:
    one = running.call()
    yield one
    one.close()


def ran(line: Any, script: str, *arguments: str) -> str:
    line.ask("put", 5.0, name="run.py", data=b64encode(script.encode()).decode(), begins=True)
    answer = line.ask("script", 30.0, arguments=arguments, seconds=30.0)
    assert answer["status"] == 0, answer["output"]
    return str(answer["output"])


@confines
def test_a_script_has_neither_the_key_nor_other_files_nor_sockets(running: Running, line: Any) -> None:
    outside, listener = str(running.folder / "outside"), str(running.process.pid)
    found = json.loads(ran(line, SCRIPT, str(running.folder / "key"), outside, listener))
    assert found == [*[errno.EACCES] * 3, errno.EPERM, errno.EPERM, 0]


@confines
@pytest.mark.skipif(not shutil.which("cc"), reason="no compiler")
def test_a_library_has_neither_the_key_nor_sockets_as_it_is_loaded(running: Running, line: Any, tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(LIBRARY)
    key = f'-DKEY="{running.folder / "key"}"'
    subprocess.run(["cc", "-shared", "-fPIC", key, "a.c", "-o", "a.so"], cwd=tmp_path, check=True)
    program = {"id": 0, "name": "none", "operator": 0, "shapes": [], "constants": [], "batch": 1}
    library = {"data": b64encode(compress((tmp_path / "a.so").read_bytes())).decode(), "programs": [program]}
    line.send("run", 20.0, id=0, library=library, incumbent=None, patience=0.0, last=True)
    assert {"error", "fault"} & line.receive().keys(), "it is no program"
    assert b64decode(line.ask("get", 5.0, name="told", at=0)["data"]).split() == [b"13", b"1"]


@confines
def test_a_key_that_lies_where_modules_are_found_is_hidden(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    with device(tmp_path, modules=f"{ROOT}:{tmp_path}") as own:
        line = own.call()
        assert ran(line, READER, str(tmp_path / "other"), str(tmp_path / "key")).split() == ["0", str(errno.EACCES)]
        line.close()


def test_a_script_learns_nothing_of_the_environment_that_the_device_was_started_in(line: Any) -> None:
    """Whoever starts it may have tokens there, and the kernel keeps what a process was started with."""
    said = ran(line, ENVIRONMENT)
    assert said.count("PATH=") >= 2
    assert SECRET not in said


def test_of_its_environment_a_device_keeps_what_finds_cuda_and_what_it_is_ended_by(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = {
        "DATA_DIR": "/opt/data",
        "CUDA_HOME": "/cuda",
        "CUDA_VISIBLE_DEVICES": "1",
        "LD_LIBRARY_PATH": "/driver",
        TREE_VARIABLE: "/of",
    }
    for name, value in (kept | {"OPENAI_API_KEY": SECRET}).items():
        monkeypatch.setenv(name, value)
    assert kept.items() <= environment().items()
    assert SECRET not in environment().values()


def test_a_script_has_a_bound_on_a_file_and_on_processes(line: Any) -> None:
    size, processes = map(int, ran(line, BOUNDS).split())
    assert size == 16 * 2**30
    running = threads.of_user()
    assert running is None or running < processes < running + 100_000


def test_what_a_script_leaves_in_another_group_ends_with_it(line: Any) -> None:
    """What is timed next is timed alone."""
    left = int(ran(line, f"{LEAVES}print(left.pid)"))
    assert comes_true(lambda: not alive(left), 5.0)


def test_what_leaves_its_group_goes_with_its_connection(running: Running, line: Any) -> None:
    script = f"{LEAVES}open('left', 'w').write(str(left.pid))\nleft.wait()"
    line.ask("put", 5.0, name="run.py", data=b64encode(script.encode()).decode(), begins=True)
    line.send("script", 30.0, arguments=[], seconds=30.0)
    process = line.greeting["process"]
    (folder,) = running.folder.glob(f"tuningsite-device-*/{process['folder']}")
    left = int(eventually(lambda: (folder / "left").exists() and (folder / "left").read_text(), 15.0, "its start"))
    assert alive(left)
    os.kill(process["pid"], signal.SIGKILL)
    assert comes_true(lambda: not alive(left), 5.0)


def test_a_connection_ends_another_by_name_and_number_and_nobody_else(running: Running, line: Any) -> None:
    hung = running.call()
    own, process = line.greeting["process"], hung.greeting["process"]
    os.kill(process["pid"], signal.SIGSTOP)
    for wrong in ({"folder": "x"}, {"pid": own["pid"]}, {"pid": running.process.pid}, own):
        line.ask("bury", 5.0, **process | wrong)
    assert not comes_true(lambda: not alive(process["pid"]), 0.3)
    (base,) = running.folder.glob("tuningsite-device-*")
    assert (base / process["folder"]).exists()
    line.ask("bury", 5.0, **process)
    assert comes_true(lambda: not (base / process["folder"]).exists(), 5.0)
    assert not alive(process["pid"])
    line.ask("bury", 5.0, **process)
    assert line.ask("release", 5.0) == {}
    hung.close()


def test_a_connection_that_leaves_folders_within_folders_ends_like_any_other(tmp_path: Path) -> None:
    deep(tmp_path / "own", 1500)
    process = subprocess.Popen(["sleep", "600"], start_new_session=True)
    folders = {process.pid: str(tmp_path / "own")}
    end(process.pid, folders)
    process.wait(0.0)
    assert folders == {}
    assert list(tmp_path.iterdir()) == []


def test_a_connection_that_fills_the_disk_ends_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.device.__main__.DISK", 1 << 20)
    processes = [subprocess.Popen(["sleep", "600"], start_new_session=True) for _ in range(2)]
    folders = {}
    for process, size in zip(processes, (500_000, 2_000_000), strict=True):
        folder = tmp_path / str(size)
        folder.mkdir()
        (folder / "file").write_bytes(b"x" * size)
        folders[process.pid] = str(folder)
    before = time.monotonic()
    assert end_full(folders) >= before + 5.0
    assert list(folders.values()) == [str(tmp_path / "500000")] == [str(path) for path in tmp_path.iterdir()]
    end(*folders, folders)
    for process in processes:
        process.wait(0.0)


def test_a_connection_of_too_many_threads_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of root and in containers the kernel counts none."""
    process = subprocess.Popen(["sleep", "600"], start_new_session=True)
    (tmp_path / "own").mkdir()
    folders = {process.pid: str(tmp_path / "own")}
    monkeypatch.setattr(threads, "MANY", (1, 0))
    end_full(folders)
    assert folders
    monkeypatch.setattr(threads, "MANY", (0, 0))
    end_full(folders)
    assert folders == {}
    process.wait(0.0)


def test_what_connections_keep_is_looked_at_while_they_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def looked(folders: dict[int, str]) -> float:
        raise KeyboardInterrupt

    monkeypatch.setattr("workers.device.__main__.end_full", looked)
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(KeyboardInterrupt):
        listen(server, Key(bytearray(b"k" * 32), Path("key")))


@pytest.mark.parametrize("message", [b"", b"\xff", b"1", b"x y", b"1 x y", b"9" * 9000 + b" x", b"-1 x"])
def test_a_message_that_is_none_buries_nobody(message: bytes) -> None:
    folders, unproven = {os.getpid(): "/tmp/another"}, [os.getpid()]
    heed(message, folders, unproven)
    assert folders
    assert unproven


def test_who_says_much_is_heeded_a_few_messages_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or who calls meanwhile waited for as long as it goes on."""
    monkeypatch.setattr("workers.device.__main__.HEEDED", 4)
    hears, says = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with hears, says:
        hears.setblocking(False)
        for number in range(6):
            says.send(b"%d x" % number)
        heed_all(hears, {}, [])
        assert hears.recv(256) == b"4 x"
        heed_all(hears, {}, [])
        assert not wait([hears], 0.0)


def test_the_key_is_forgotten_by_the_process_that_has_proven_it() -> None:
    key = bytearray(b"k" * 32)
    ours, theirs = Pipe()

    def site() -> None:
        one, other = proofs(b"k" * 32)
        answer_challenge(theirs, one)
        deliver_challenge(theirs, other)

    thread = Thread(target=site)
    thread.start()
    with ours, theirs:
        assert proven(ours, key)
        thread.join(5.0)
    assert key == bytes(32)
