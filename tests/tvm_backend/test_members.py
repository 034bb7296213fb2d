"""Answers that never end, that are too long, or none."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection

import pytest

from workers.engine.ports import Candidate
from workers.engine.space import Configuration
from workers.tvm_backend.members import LONGEST_ANSWER, LONGEST_ERROR, Dead, Task
from workers.tvm_backend.remote import line as lines
from workers.tvm_backend.remote.line import BROKEN, DeviceGone, Line, greeted

BEGUN = [b"\0\0", struct.pack("!i", 100) + b'{"seconds"']


@pytest.fixture
def device() -> Iterator[tuple[socket.socket, Connection]]:
    """A device's end of a connection, and ours."""
    theirs, ours = socket.socketpair()
    with theirs, Connection(ours.detach()) as connection:
        yield theirs, connection


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "SILENCE", 0.2)
    monkeypatch.setattr(lines, "GREETS", 0.2)


def ordered(connection: Connection, within: float) -> Line:
    line = Line(0, connection, lambda: 0)
    line.send("drop", within)
    return line


@pytest.mark.parametrize("begun", BEGUN)
def test_an_answer_that_begins_and_never_ends_is_a_broken_line(
    device: tuple[socket.socket, Connection], impatient: None, begun: bytes
) -> None:
    theirs, connection = device
    line = ordered(connection, 0.1)
    theirs.sendall(begun)
    with pytest.raises(Dead, match=r"said nothing for 0\.3 s") as dead:
        line.receive()
    assert dead.value.cause == BROKEN
    theirs.sendall(begun)
    with pytest.raises(DeviceGone, match="gave no answer to 'hold'"):
        line.ask("hold", 0.1)


def test_an_answer_that_drips_is_late_as_a_whole(device: tuple[socket.socket, Connection], impatient: None) -> None:
    theirs, connection = device
    line = ordered(connection, 0.1)
    theirs.sendall(struct.pack("!i", 1000))

    def drip() -> None:
        with suppress(OSError):
            while True:
                theirs.sendall(b" ")
                time.sleep(0.01)

    thread = threading.Thread(target=drip)
    thread.start()
    began = time.monotonic()
    with pytest.raises(Dead):
        line.receive()
    assert time.monotonic() - began < 2.0
    connection.close()
    thread.join(5.0)


@pytest.mark.parametrize(
    "answer",
    [
        struct.pack("!iQ", -1, 1 << 60),
        struct.pack("!i", LONGEST_ANSWER + 1),
        struct.pack("!i", -2),
        *(struct.pack("!i", len(said)) + said for said in (b"5", b"{", b"\xff", b"[" * 100_000)),
    ],
)
def test_what_is_no_answer_breaks_the_line_at_once(device: tuple[socket.socket, Connection], answer: bytes) -> None:
    theirs, connection = device
    line = ordered(connection, 60.0)
    theirs.sendall(answer)
    with pytest.raises(Dead, match="connection broke") as dead:
        line.receive()
    assert dead.value.cause == "crash"


@pytest.mark.parametrize("error", ["x" * 100_000, ["x" * 100_000]])
def test_of_an_error_as_much_is_taken_as_a_worker_says(
    device: tuple[socket.socket, Connection], error: str | list[str]
) -> None:
    """Of each program it goes into a row, and whatever else it ends into a log."""
    theirs, connection = device
    for name in ("error", "fault"):
        line = ordered(connection, 5.0)
        said = json.dumps({name: error}).encode()
        theirs.sendall(struct.pack("!i", len(said)) + said)
        assert len(line.receive()[name]) == LONGEST_ERROR
    said = json.dumps({"error": error, "cause": "memory"}).encode()
    theirs.sendall(struct.pack("!i", len(said)) + said)
    with pytest.raises(Dead) as dead:
        ordered(connection, 5.0).receive()
    assert len(str(dead.value)) == LONGEST_ERROR


@pytest.mark.parametrize("begun", BEGUN)
def test_a_greeting_that_never_ends_is_a_device_that_does_not_answer(
    device: tuple[socket.socket, Connection], impatient: None, begun: bytes
) -> None:
    theirs, connection = device
    theirs.sendall(begun)
    with pytest.raises(DeviceGone, match="does not answer"):
        greeted(connection)


def test_an_answer_in_pieces_is_one(device: tuple[socket.socket, Connection]) -> None:
    theirs, connection = device
    line = ordered(connection, 5.0)
    said = b'{"data": "' + b"x" * 300_000 + b'"}'
    with theirs:
        sender = threading.Thread(target=lambda: theirs.sendall(struct.pack("!i", len(said)) + said))
        sender.start()
        assert line.receive() == {"data": "x" * 300_000}
        sender.join(5.0)


@pytest.mark.parametrize("built", [(1, 2), (1, 3)])
def test_a_configuration_is_kept_once_where_the_one_that_was_asked_for_was_built(built: tuple[int, ...]) -> None:
    asked = Configuration(0, (1, 2))
    task = Task(0, Candidate(0, asked, "random"))
    task.choices = built
    task.end(1.0)
    assert task.outcome is not None
    assert task.outcome.configuration == Configuration(0, built)
    assert (task.outcome.configuration is asked) == (built == (1, 2))
