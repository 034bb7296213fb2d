"""Programs that are built here and timed on a device: the same outcomes as of a machine's own workers, whatever breaks."""

from __future__ import annotations

import math
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest

from tests import zoo
from tests.device.running import Running, device
from tests.processes import alive, comes_true
from tests.tvm_backend.local import backend_over, local_backend, lock_in, spec_of, target
from workers.child.__main__ import passing
from workers.device.__main__ import MOST, UNPROVEN
from workers.engine.ports import Candidate
from workers.engine.space import Configuration
from workers.sandbox.lock import MeasureLock
from workers.sandbox.spawn import ROOT

pytestmark = pytest.mark.tvm


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    target()
    with device(tmp_path_factory.mktemp("device")) as one:
        yield one


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def backend(
    running: Running, said: list[str], tmp_path: Path, zoo_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    from workers.engine import compile_limit
    from workers.tvm_backend.remote.pool import DevicePool

    # The device is this machine: while it starts anew, and other tests run, compiling may take longer than a limit allows.
    monkeypatch.setattr(compile_limit, "MOST", 60.0)
    spec = replace(spec_of(zoo.tiny(zoo_cache)), target=running.target())
    threads = spec.target["num-cores"]
    pool = DevicePool(running.call, spec.target, threads, lock_in(tmp_path), plan=2, say=said.append)
    made = backend_over(pool, spec, tmp_path)
    yield made
    made.close()


def convolutions(backend: Any, seed: int, count: int = 6, **fields: Any) -> list[Candidate]:
    index = next(o.index for o in backend.operators() if "conv" in o.name)
    rows = backend.operators()[index].sketches[0].random(np.random.default_rng(seed), count).tolist()
    return [Candidate(index, Configuration(0, tuple(row)), "random", **fields) for row in rows]


def before_it_runs(monkeypatch: pytest.MonkeyPatch, id: int, do: Callable[[], None], times: int = 1) -> None:
    """`do` just before the device is told to run that candidate: afterwards it might have answered."""
    from workers.tvm_backend.remote.line import Line

    send, done = Line.send, list[int]()

    def sending(self: Any, verb: str, timeout: float, **arguments: Any) -> None:
        if verb == "run" and arguments["id"] == id and len(done) < times:
            done.append(id)
            do()
        send(self, verb, timeout, **arguments)

    monkeypatch.setattr(Line, "send", sending)


def signalled(monkeypatch: pytest.MonkeyPatch, running: Running, id: int, number: int, times: int) -> None:
    """The signal reaches the device's process before it runs that candidate."""

    def hit() -> None:
        for pid in running.children():
            os.kill(pid, number)

    before_it_runs(monkeypatch, id, hit, times)


def runs(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the device is told to run from now on."""
    from workers.tvm_backend.remote.line import Line

    send, ran = Line.send, list[dict[str, Any]]()

    def sending(self: Any, verb: str, timeout: float, **arguments: Any) -> None:
        if verb == "run":
            ran.append(arguments)
        send(self, verb, timeout, **arguments)

    monkeypatch.setattr(Line, "send", sending)
    return ran


def libraries(ran: list[dict[str, Any]]) -> list[list[int]]:
    """The programs of each that was sent."""
    return [[program["id"] for program in order["library"]["programs"]] for order in ran if order["library"]]


def in_company(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs are compiled together, however busy the machine is: for that it is to be known what one takes."""
    monkeypatch.setattr("workers.tvm_backend.company.SECONDS", math.inf)
    backend.measure(convolutions(backend, seed=18, count=1), {})


def mapped(running: Running) -> list[str]:
    """Libraries that processes of the device hold."""
    lines = (line for pid in running.children() for line in Path(f"/proc/{pid}/maps").read_text().splitlines())
    return [line for line in lines if "/programs-" in line]


def test_outcomes_are_those_of_a_machines_own_workers(backend: Any, tmp_path: Path, zoo_cache: Path) -> None:
    given = convolutions(backend, seed=0)
    there = backend.measure(given, {})
    local = local_backend(zoo.tiny(zoo_cache), tmp_path / "local")
    try:
        here = local.measure(given, {})
    finally:
        local.close()
    assert [o.identity for o in there] == [o.identity for o in here]
    assert [o.configuration for o in there] == [o.configuration for o in here]
    ratios = []
    for one, other in zip(there, here, strict=True):
        assert one.seconds
        assert other.seconds
        ratios.append(one.seconds / other.seconds)
        assert one.runs > 1 or one.stopped in ("rejected", "late")
    assert 0.1 < median(ratios) < 10
    assert all(o.cause == "duplicate" for o in backend.measure(given, {})), "it was tried before"


def test_programs_run_while_others_are_compiled(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from workers.tvm_backend.members import Member

    send, told = Member.send, list[str]()

    def sending(self: Any, verb: str, timeout: float, **arguments: Any) -> None:
        told.append(verb)
        send(self, verb, timeout, **arguments)

    monkeypatch.setattr(Member, "send", sending)
    outcomes = backend.measure(convolutions(backend, seed=1, count=12), {})
    assert all(o.seconds for o in outcomes)
    last = len(told) - 1 - told[::-1].index("compile")
    assert "run" in told[:last], "the device waited until all was compiled"


def test_rivals_are_timed_in_turns(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    first = convolutions(backend, seed=2, count=2)
    backend.measure(first, {})
    ran = runs(monkeypatch)
    outcomes = backend.measure([replace(one, round=1) for one in first], {})
    assert [order["id"] for order in ran] == [0, 1] * 3
    assert sorted(program for library in libraries(ran) for program in library) == [0, 1], "each is sent once"
    assert all(o.seconds for o in outcomes)


def test_a_library_of_several_programs_is_sent_once(
    backend: Any, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_company(backend, monkeypatch)
    ran = runs(monkeypatch)
    outcomes = backend.measure(convolutions(backend, seed=19, count=12), {})
    assert all(o.seconds for o in outcomes)
    assert max(map(len, libraries(ran))) > 1
    assert sorted(program for library in libraries(ran) for program in library) == list(range(12))
    assert not mapped(running), "each would keep its room on the device for hours"


def test_a_device_whose_process_is_another_by_now_is_sent_what_is_left_of_a_library(
    backend: Any, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.tvm_backend.remote.line import Line

    in_company(backend, monkeypatch)
    ran, send, broken = runs(monkeypatch), Line.send, list[int]()

    def sending(self: Any, verb: str, timeout: float, **arguments: Any) -> None:
        if verb == "run" and arguments["library"] is None and not broken:
            broken.append(arguments["id"])
            for pid in running.children():
                os.kill(pid, signal.SIGKILL)
        send(self, verb, timeout, **arguments)

    monkeypatch.setattr(Line, "send", sending)
    outcomes = backend.measure(convolutions(backend, seed=20, count=12), {})
    assert all(o.seconds for o in outcomes), [(o.cause, o.error) for o in outcomes]
    first, again = (library for library in libraries(ran) if broken[0] in library)
    told = [order["id"] for order in ran]
    assert again == [program for program in first if program not in told[: told.index(broken[0])]]


def test_batch_after_batch_each_program_is_its_own(backend: Any) -> None:
    """Numbers of candidates begin anew with every batch, and so did names of libraries."""
    for seed in range(3):
        plan = [
            Candidate(one.index, configuration, "start", round=seed)
            for one in backend.operators()[seed % 2 :: 2]
            for configuration in one.start[:2]
        ]
        timed = [o for o in backend.measure(plan, {}) if o.cause not in ("duplicate", "invalid")]
        assert timed
        assert all(o.seconds for o in timed)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_program_that_ends_the_devices_process_twice_takes_the_blame(
    backend: Any, running: Running, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    signalled(monkeypatch, running, 2, number, times=2)
    outcomes = backend.measure(convolutions(backend, seed=3), {})
    assert [o.cause for o in outcomes] == ["", "", "crash", "", "", ""]


def test_a_connection_that_breaks_once_is_no_bad_program(
    backend: Any, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    signalled(monkeypatch, running, 2, signal.SIGKILL, times=1)
    assert all(o.seconds for o in backend.measure(convolutions(backend, seed=4), {}))


def test_a_program_that_hangs_is_ended_by_the_device(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from workers.tvm_backend import pool

    monkeypatch.setattr(pool, "RUN_TIMEOUT", 0.005)  # none is as quick, the machine's moment included
    (outcome,) = backend.measure(convolutions(backend, seed=5, count=1), {})
    assert (outcome.cause, outcome.error) == ("timeout", "it did not finish within 0.005 s")


def test_a_line_that_falls_silent_is_no_bad_program(
    backend: Any, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what hangs there, where its own alarm does not reach it, is ended: it would hold the device."""
    from workers.tvm_backend import pool
    from workers.tvm_backend.remote import line

    monkeypatch.setattr(pool, "RUN_TIMEOUT", 4.0)
    monkeypatch.setattr(line, "SILENCE", 0.5)
    before = set(running.children())
    signalled(monkeypatch, running, 1, signal.SIGSTOP, times=1)
    outcomes = backend.measure(convolutions(backend, seed=15), {})
    assert all(o.seconds for o in outcomes), [(o.cause, o.error) for o in outcomes]
    assert comes_true(lambda: not before & set(running.children()), 5.0)


def test_a_device_without_room_ends_the_attempt_and_no_program(
    backend: Any, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.tvm_backend.remote.line import DeviceGone

    for folder in running.folder.glob("tuningsite-device-*/connection-*"):
        shutil.rmtree(folder, ignore_errors=True)  # some are just being cleared away
    with pytest.raises(DeviceGone, match=r"cannot take programs: .*No such file") as gone:
        backend.measure(convolutions(backend, seed=16), {})
    assert passing(gone.value, "tune")
    assert not [task for task in backend._pool.tasks if task.outcome]


def test_an_order_that_lasts_too_long_is_ended_on_the_device_with_what_it_started(running: Running) -> None:
    from workers.tvm_backend.remote.line import DeviceGone

    line = running.call()
    process = line.greeting["process"]["pid"]
    waits = b"import sys, time\nopen(sys.argv[1], 'w').write('began')\ntime.sleep(600)\n"
    line.ask("put", 5.0, name="run.py", data=b64encode(waits).decode(), begins=True)
    (base,) = running.folder.glob("tuningsite-device-*")
    began = base / line.greeting["process"]["folder"] / "began"
    line.send("script", 8.0, arguments=["began"], seconds=60.0)
    assert comes_true(began.exists, 7.0)
    (started,) = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    assert comes_true(lambda: not alive(process), 12.0)
    assert comes_true(lambda: not alive(int(started)), 5.0)
    with pytest.raises(DeviceGone, match="ended the device's process"):
        line.ask("drop", 5.0)
    line.close()


def test_a_graphics_cards_script_that_ends_its_process_is_tried_again_before_it_is_blamed(
    running: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A card's library runs in the process of the connection, so that a crash and a cable that is out look alike."""
    from workers.child import elsewhere
    from workers.child.peers import ArtifactFailed

    for name in ("model.so", "metadata.json"):
        (tmp_path / name).touch()
    (tmp_path / "run.py").write_text("import time\ntime.sleep(600)\n")
    line = running.call()
    there = elsewhere.Elsewhere(line, tmp_path, print)
    line.greeting["gpu"] = "a card"
    monkeypatch.setattr(elsewhere, "call", running.call)
    process = line.greeting["process"]["pid"]
    runs = lambda: Path(f"/proc/{process}/task/{process}/children").read_text().split()  # noqa: E731

    def end() -> None:
        comes_true(runs, 60.0)
        os.kill(process, signal.SIGKILL)

    ending = threading.Thread(target=end)
    ending.start()
    with pytest.raises(ArtifactFailed, match="ended the device's process") as failed:
        there._script("--runs", "1")
    ending.join()
    assert passing(failed.value, "compile")
    line.close()


def test_a_device_that_starts_anew_is_found_again(
    backend: Any, running: Running, monkeypatch: pytest.MonkeyPatch, said: list[str]
) -> None:
    from workers.tvm_backend.remote import line

    starting = threading.Timer(1.0, lambda: running.start(running.address.port))

    def anew() -> None:
        running.end(signal.SIGKILL)
        starting.start()

    monkeypatch.setattr(line, "PAUSES", (0.5,) * 160)
    before_it_runs(monkeypatch, 3, anew)
    try:
        outcomes = backend.measure(convolutions(backend, seed=6), {})
    finally:
        if starting.ident:
            starting.join()  # it is the device of later tests
    assert all(o.seconds for o in outcomes), [(o.cause, o.error) for o in outcomes]
    assert f"the device at {running.address} does not answer" in said[0]


def test_a_device_that_stays_away_ends_the_attempt_and_no_program(
    backend: Any, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.tvm_backend.remote import line

    monkeypatch.setattr(line, "PAUSES", (0.1, 0.1))
    before_it_runs(monkeypatch, 1, lambda: running.end(signal.SIGKILL))
    try:
        with pytest.raises(line.DeviceGone) as gone:
            backend.measure(convolutions(backend, seed=7), {})
        assert passing(gone.value, "tune"), "the next attempt may find it"
        assert not [task for task in backend._pool.tasks if task.outcome and task.outcome.cause]
    finally:
        running.start(running.address.port)


def test_two_sites_do_not_time_at_once(backend: Any, running: Running, tmp_path: Path) -> None:
    with MeasureLock(running.lock).exclusive():
        other = threading.Thread(target=backend.measure, args=(convolutions(backend, seed=8, count=2), {}))
        other.start()
        assert comes_true(MeasureLock(running.lock).wanted, 60.0)
        time.sleep(1.0)
        assert other.is_alive()
    other.join(60.0)
    assert not other.is_alive()
    assert backend.spent()["wait"] > 0.8


SOON = """
import sys
from workers.device import __main__, orders
orders.SILENCE = 1.0
sys.exit(__main__.main())
"""


def test_a_site_that_holds_the_device_and_falls_silent_loses_it(tmp_path: Path) -> None:
    """Its connection is still there, as through a tunnel whose other end vanished."""
    from workers.tvm_backend.remote.line import DeviceGone

    with device(tmp_path, program=("-c", SOON)) as own:
        silent, other = own.call(), own.call()
        silent.ask("hold", 5.0)
        assert other.ask("hold", 10.0)["waited"] < 5.0
        with pytest.raises(DeviceGone, match="ended the device's process, or the connection broke"):
            silent.ask("drop", 5.0)
        for line in (silent, other):
            line.close()


def test_another_machine_than_was_measured_is_said(running: Running, backend: Any) -> None:
    from workers.tvm_backend.remote.line import DeviceRefused

    backend._pool._begun["target"] = {**running.target(), "num-cores": 96}
    with pytest.raises(DeviceRefused, match="another machine than the one that was measured") as refused:
        backend._pool._begin()
    assert "start another run" in refused.value.next_step


@pytest.mark.parametrize(("how", "left"), [(signal.SIGTERM, 0), (signal.SIGKILL, 1)])
def test_what_runs_on_it_ends_with_it_and_it_leaves_nothing_unless_it_is_killed(
    tmp_path: Path, how: int, left: int
) -> None:
    """What that leaves the next one removes."""
    with device(tmp_path) as own:
        line = own.call()
        line.ask("put", 5.0, name="run.py", data=b64encode(b"import time; time.sleep(600)").decode(), begins=True)
        line.send("script", 60.0, arguments=[], seconds=60.0)
        process = line.greeting["process"]["pid"]
        started = Path(f"/proc/{process}/task/{process}/children")
        assert comes_true(lambda: started.read_text().split(), 15.0)
        script = int(started.read_text())
        folder = Path(f"/proc/{script}/cwd").resolve()
        own.end(how)
        assert comes_true(lambda: not alive(script), 5.0)
        assert folder.exists() == left
        line.close()


@pytest.mark.parametrize(("content", "mode"), [("k" * 32, 0o644), ("short", 0o600)])
def test_a_file_that_is_no_key_of_ones_own_is_left_and_said(tmp_path: Path, content: str, mode: int) -> None:
    path = tmp_path / "key"
    path.write_text(content)
    path.chmod(mode)
    argv = [sys.executable, "-m", "workers.device", "--port", "0", "--key", str(path)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2
    assert f"{path}: it is no key that only you may read" in done.stderr
    assert path.read_text() == content


def test_another_version_is_named(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    from workers.tvm_backend.remote import line

    monkeypatch.setattr(line, "PROTOCOL", 0)
    with pytest.raises(line.DeviceRefused, match=r"has protocol [1-9], apache-tvm .* and this site protocol 0"):
        running.call()


def test_who_shows_no_key_is_put_out_and_reads_nothing(running: Running) -> None:
    with socket.create_connection(("127.0.0.1", running.address.port)) as stranger:
        stranger.settimeout(30.0)
        assert comes_true(running.children, 10.0)
        said = b""
        with suppress(ConnectionResetError):
            while part := stranger.recv(4096):
                said += part
        assert b"apache-tvm" not in said


def test_who_knocks_and_says_nothing_keeps_nobody_out(running: Running) -> None:
    with ExitStack() as knocking:
        for _ in range(MOST + UNPROVEN):
            knocking.enter_context(socket.create_connection(("127.0.0.1", running.address.port)))
        line = running.call()
        assert len(running.children()) <= UNPROVEN + 1
        line.close()
