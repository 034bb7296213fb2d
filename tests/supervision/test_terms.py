"""The real child under the real terms: what it needs is allowed, what it does not need is not."""

import json
import os
import socket
import sys
from dataclasses import replace

import pytest

from tests import zoo
from tests.folders import deep
from workers.headless.ask import ask
from workers.headless.errors import UserMistake
from workers.messages.tuning_log import FILE
from workers.sandbox import landlock, protection, seccomp, threads
from workers.supervision import supervise
from workers.supervision.footprint import Bounds
from workers.supervision.ports import Speech
from workers.supervision.terms import Unconfined, terms_of


class Memory:
    def __init__(self):
        self.events = []

    def write(self, events):
        self.events += events

    def heartbeat(self):
        return "continue"

    def of(self, kind):
        return [event for event in self.events if event["kind"] == kind]


@pytest.fixture
def work(tmp_path):
    found = tmp_path / "work"
    found.mkdir(mode=0o700)
    return found


def attempt(order, **options):
    memory, terms = Memory(), terms_of(order)
    under = {
        "limits": terms.limits, "access": terms.access, "bounds": terms.bounds,
        "env": terms.env, "cwd": order["work_dir"], "deadlines": terms.deadlines, "speech": terms.speech,
    }  # fmt: skip
    ending = supervise(order, memory, **(under | options))
    return ending, memory


def test_a_network_is_inspected_within_its_limits(tmp_path, work):
    order = {"task": "inspect", "network": str(zoo.tiny(tmp_path)), "work_dir": str(work)}
    ending, memory = attempt(order)
    assert memory.of("result"), ending
    assert memory.of("result")[0]["inspection"]["inputs"]


def test_a_file_that_is_no_network_is_refused_with_a_reason(tmp_path, work):
    path = tmp_path / "rubbish.onnx"
    path.write_bytes(b"\x08\x07rubbish" * 100)
    ending, _ = attempt({"task": "inspect", "network": str(path), "work_dir": str(work)})
    assert ending.kind == "failed"
    assert ending.last["reason"]
    assert ending.last["next_step"]


PEEK = """
import os, socket, sys, json
from workers.messages.channel import ControlReader, EventWriter
order = ControlReader().order()
found = {}
for name, path in order["paths"].items():
    try:
        open(path, "rb" if name != "new" else "wb").close()
        found[name] = True
    except OSError:
        found[name] = False
try:
    socket.socket(socket.AF_UNIX).connect(order["server"])
    found["server"] = True
except OSError:
    found["server"] = False
last = {"kind": "finished", "clock": 0.0, "reason": "exhausted", "found": found, "env": dict(os.environ)}
EventWriter.from_environment().emit(last)
"""


@pytest.mark.parametrize("task", ["inspect", "convert", "tune", "compile", "hardware"])
def test_a_child_reaches_its_network_and_its_directory_and_nothing_else(tmp_path, work, task, monkeypatch):
    if task == "convert" and landlock.supported() < landlock.SCOPED:
        pytest.skip("this kernel's Landlock is too old for a conversion")
    monkeypatch.setenv("DATABASE_URL", "postgres://secret")
    network = zoo.tiny(tmp_path)
    secret = tmp_path / "secret_key"
    secret.write_text("secret")
    paths = {"network": str(network), "secret": str(secret), "new": str(work / "new"), "passwd": "/etc/passwd"}
    paths["shared"] = "/dev/shm"
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(tmp_path / "socket"))
    server.listen()
    order = {
        "task": task,
        "network": str(network),
        "source": str(network),
        "spec": json.dumps({"network": str(network)}),
        "work_dir": str(work),
        "log": str(work / FILE),
        "paths": paths,
        "server": str(tmp_path / "socket"),
    }
    with server:
        ending, _ = attempt(order, argv=(sys.executable, "-c", PEEK))
    assert ending.last is not None, ending
    if protection.offered().landlock == 0:
        pytest.skip("this kernel has no Landlock")
    assert ending.last["found"] == {
        "network": task != "hardware", "secret": False, "new": True, "passwd": False, "shared": False,
        "server": not protection.offered().filtered,
    }  # fmt: skip
    assert not any("DATABASE" in name or "REDIS" in name for name in ending.last["env"])


@pytest.mark.parametrize("version", [0, 4, 5])
def test_nothing_is_converted_where_signals_or_tcp_stay_open(tmp_path, work, version, monkeypatch):
    """The kernel of another machine, which cannot be had here."""
    order = {"task": "convert", "source": str(zoo.tiny(tmp_path)), "allowed": True, "work_dir": str(work)}
    monkeypatch.setattr(landlock, "supported", lambda: version)
    with pytest.raises(Unconfined, match=f"Landlock version 6, the kernel offers {version or 'none'}; export"):
        terms_of(order)
    with pytest.raises(UserMistake, match="Landlock version 6"):
        ask(order)


def test_nothing_is_converted_where_sockets_stay_open(tmp_path, work, monkeypatch):
    order = {"task": "convert", "source": str(zoo.tiny(tmp_path)), "allowed": True, "work_dir": str(work)}
    monkeypatch.setattr(landlock, "supported", lambda: landlock.SCOPED)
    monkeypatch.setattr(seccomp, "supported", lambda: False)
    with pytest.raises(Unconfined, match="filter on system calls"):
        terms_of(order)


def test_every_task_has_a_bound_on_all_its_files(tmp_path, work):
    network = str(zoo.tiny(tmp_path))
    order = {
        "network": network,
        "spec": json.dumps({"network": network}),
        "log": str(work / FILE),
        "work_dir": str(work),
    }
    for task in ("inspect", "tune", "compile", "baseline", "landscape", "hardware"):
        terms = terms_of({**order, "task": task})
        assert terms.bounds.disk >= terms.limits.file_size


def test_what_tunes_has_no_end_for_its_whole_a_library_a_day_and_a_file_that_is_read_seconds(tmp_path, work):
    """A benchmark of hours may hold the measuring lock; what a file of somebody else says that it waits for is nothing."""
    network = str(zoo.tiny(tmp_path))
    order = {"network": network, "source": network, "spec": json.dumps({"network": network}), "work_dir": str(work)}
    order["log"] = str(work / FILE)
    for task in ("tune", "landscape", "hardware"):
        assert terms_of({**order, "task": task}).deadlines.total is None
    for task in ("compile", "baseline"):
        assert terms_of({**order, "task": task}).deadlines.total == 86_400
    assert terms_of({**order, "task": "inspect"}).deadlines.total < 30
    if landlock.supported() >= landlock.SCOPED:
        assert terms_of({**order, "task": "convert"}).deadlines.total < 180


def test_who_reads_a_file_of_somebody_else_shares_no_memory_and_moves_nobody(tmp_path, work):
    network = str(zoo.tiny(tmp_path))
    order = {"network": network, "source": network, "spec": json.dumps({"network": network}), "work_dir": str(work)}
    order["log"] = str(work / FILE)
    for task in ("inspect", "convert", "tune", "compile"):
        if task == "convert" and landlock.supported() < landlock.SCOPED:
            continue
        access = terms_of({**order, "task": task}).access
        assert access.shares is access.pins is (task in ("tune", "compile"))


def test_every_task_has_a_bound_on_its_processes_where_the_kernel_has_one(tmp_path, work, monkeypatch):
    """Root has none; what it is for others follows from how many threads they have. Whoever supervises counts for all."""
    network = str(zoo.tiny(tmp_path))
    tasks = ("inspect", "tune", "compile", "baseline", "landscape", "hardware")
    spec, log = json.dumps({"network": network}), str(work / FILE)
    orders = [{"task": t, "network": network, "spec": spec, "log": log} for t in tasks]
    if landlock.supported() >= landlock.SCOPED:
        orders.append({"task": "convert", "source": network})
    for running in (None, 1000):
        monkeypatch.setattr(threads, "of_user", lambda running=running: running)
        terms = {o["task"]: terms_of({**o, "work_dir": str(work)}) for o in orders}
        bounds = {task: found.limits.processes for task, found in terms.items()}
        assert all(found.bounds.threads > 500 for found in terms.values())
        if running is None:
            assert set(bounds.values()) == {None}
        else:
            assert all(bound > running + 500 for bound in bounds.values())
            assert bounds["inspect"] < bounds["tune"] < 10 * 1000 + 100 * os.cpu_count()


def test_a_child_is_not_started_with_less_than_it_requires(tmp_path, work):
    order = {"task": "inspect", "network": str(zoo.tiny(tmp_path)), "work_dir": str(work)}
    terms = terms_of(order)
    ending = replace(terms, access=replace(terms.access, required=1000)).supervise(order, Memory())
    assert (ending.kind, ending.cause) == ("crashed", "start")
    assert "Landlock version 1000" in ending.detail


def test_a_module_in_the_childs_directory_is_not_imported(tmp_path, work):
    (work / "json.py").write_text("raise SystemExit('taken')")
    order = {"task": "inspect", "network": str(zoo.tiny(tmp_path)), "work_dir": str(work)}
    memory = Memory()
    ending = terms_of(order).supervise(order, memory)
    assert memory.of("result"), ending


def test_an_inspection_that_takes_too_much_memory_or_time_is_ended(tmp_path, work):
    order = {"task": "inspect", "network": str(zoo.tiny(tmp_path)), "work_dir": str(work)}
    read = "from workers.messages.channel import ControlReader; ControlReader().order()\n"
    hoard = read + "x = [bytearray(1 << 30) for _ in range(64)]"
    ending, _ = attempt(order, argv=(sys.executable, "-c", hoard))
    assert ending.kind == "crashed"
    assert "MemoryError" in ending.log or ending.cause == "memory"
    spin, limits = read + "while True: pass", terms_of(order).limits
    assert 1 < limits.cpu_seconds <= 10
    ending, _ = attempt(order, argv=(sys.executable, "-c", spin), limits=replace(limits, cpu_seconds=1))
    assert ending.cause in ("cpu", "time")


@pytest.mark.parametrize("task", ["inspect", "convert"])
def test_code_of_an_uploaded_file_may_not_talk_without_end(task, tmp_path, work):
    if task == "convert" and landlock.supported() < landlock.SCOPED:
        pytest.skip("this kernel's Landlock is too old for a conversion")
    path = str(zoo.tiny(tmp_path))
    talk = """
from workers.messages.channel import ControlReader, EventWriter
ControlReader().order()
events = EventWriter.from_environment()
while True: events.emit({"kind": "log", "clock": 0.0, "text": "more"})
"""
    order = {"task": task, "network": path, "source": path, "work_dir": str(work)}
    ending, memory = attempt(order, argv=(sys.executable, "-c", talk))
    assert (ending.kind, ending.cause) == ("crashed", "protocol")
    assert "more than the 1,000 events allowed" in ending.detail
    assert len(memory.events) == 1000


def test_an_order_is_carried_out_by_who_says_no_more_than_its_terms_allow(tmp_path, work):
    order = {"task": "inspect", "network": str(zoo.tiny(tmp_path)), "work_dir": str(work)}
    ending = replace(terms_of(order), speech=Speech(events=1)).supervise(order, Memory())
    assert "more than the 1 events allowed" in ending.detail


@pytest.mark.tvm
def test_the_machine_is_measured_under_its_terms(work):
    ending, memory = attempt({"task": "hardware", "peak": False, "work_dir": str(work)})
    assert memory.of("result"), (ending.detail, ending.log[-2000:])
    assert os.cpu_count() >= memory.of("result")[0]["hardware"]["cores"] >= 1


def test_a_lock_in_a_shared_directory_does_not_open_that_directory(tmp_path, work, monkeypatch):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    monkeypatch.setenv("TUNINGSITE_MEASURE_LOCK", str(shared / "measure.lock"))
    with pytest.raises(PermissionError, match="TUNINGSITE_MEASURE_LOCK"):
        terms_of({"task": "hardware", "work_dir": str(work)})


LOCKING = """
from pathlib import Path
from workers.child.__main__ import passing
from workers.messages.channel import ControlReader, EventWriter
from workers.sandbox.lock import MeasureLock
ControlReader().order()
lock, found = MeasureLock(), []
tries = {
    "write": lambda: lock.path.open("r+b"), "remove": lock.path.unlink, "replace": lambda: lock.path.rename("elsewhere"),
    "fill": lock.path.with_name("new").touch, "make": lock.path.with_name("folder").mkdir,
}
for name, act in tries.items():
    try:
        act()
        found.append(name)
    except OSError:
        pass
try:
    with lock.exclusive():
        found.append("taken")
except OSError as error:
    found.append([passing(error, "tune"), str(error)])
EventWriter.from_environment().emit({"kind": "finished", "clock": 0.0, "reason": "exhausted", "found": found})
"""


@pytest.mark.skipif(not landlock.supported(), reason="this kernel has no Landlock")
@pytest.mark.parametrize("task", ["tune", "compile", "hardware"])
def test_a_child_takes_the_measuring_lock_and_can_do_nothing_else_where_that_lies(task, tmp_path, work, monkeypatch):
    lock = tmp_path / "none" / "measure.lock"
    monkeypatch.setenv("TUNINGSITE_MEASURE_LOCK", str(lock))
    spec = json.dumps({"network": str(zoo.tiny(tmp_path))})
    order = {"task": task, "spec": spec, "log": str(work / FILE), "work_dir": str(work)}
    terms_of(order)
    lock.with_name("others").write_bytes(bytes(2 << 20))
    ending, _ = attempt(order, argv=(sys.executable, "-c", LOCKING), bounds=Bounds(disk=1 << 20))
    assert ending.last is not None, ending
    assert ending.last["found"] == ["taken"]


@pytest.mark.skipif(not landlock.supported(), reason="this kernel has no Landlock")
def test_a_lock_that_is_removed_under_a_child_is_there_for_its_next_attempt(tmp_path, work, monkeypatch):
    lock = tmp_path / "none" / "measure.lock"
    monkeypatch.setenv("TUNINGSITE_MEASURE_LOCK", str(lock))
    order = {"task": "hardware", "work_dir": str(work)}
    terms = terms_of(order)
    lock.unlink()
    argv = (sys.executable, "-c", LOCKING)
    ending = supervise(order, Memory(), argv=argv, access=terms.access, cwd=work)
    ((passes, said),) = ending.last["found"]
    assert passes
    assert "where it was removed meanwhile, the next attempt opens the new one" in said
    ending, _ = attempt(order, argv=argv)
    assert ending.last["found"] == ["taken"]


def test_passing_files_go_with_the_child_and_what_a_killed_supervisor_left_goes_first(tmp_path, work, monkeypatch):
    kept = tmp_path / "kept"
    kept.mkdir()
    (work / "passing-before").mkdir()
    (work / "passing-before" / "network.onnx").write_bytes(b"0")
    (work / "passing-link").symlink_to(kept)
    deep(work / "passing-deep", 1500)
    (work / "tuning_log.jsonl").write_text("")

    def seen(order, journal, **terms):
        scratch = terms["env"]["TMPDIR"]
        assert [path.name for path in work.glob("passing-*")] == [os.path.basename(scratch)]
        (work / scratch / "half.onnx").write_bytes(b"0")
        deep(work / scratch / "deep", 1500)
        return scratch

    monkeypatch.setattr("workers.supervision.terms.supervise", seen)
    network = str(zoo.tiny(tmp_path))
    scratch = terms_of({"task": "inspect", "network": network, "work_dir": str(work)}).supervise(
        {"work_dir": str(work)}, Memory()
    )
    assert scratch.startswith(str(work))
    assert [path.name for path in work.iterdir()] == ["tuning_log.jsonl"]
    assert kept.exists()
