"""Who calls devices for children that may not: and what it says where there is none to be reached."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge

import pytest

from workers.messages.device import Address, proofs
from workers.supervision import switchboard as board
from workers.supervision.switchboard import Unreached, dial, switchboard

KEY = "k" * 32


@contextmanager
def listening(key: str = KEY, calls: int = 1, host: str = "127.0.0.1") -> Iterator[Address]:
    """What has a device's manners, and says its number in place of a greeting."""
    server = socket.create_server((host, 0))

    def serve() -> None:
        for number in range(calls):
            connection = Connection(server.accept()[0].detach())
            try:
                site, device = proofs(key.encode())
                deliver_challenge(connection, site)
                answer_challenge(connection, device)
                connection.send_bytes(f"{number}".encode())
            except (AuthenticationError, EOFError, OSError):
                pass
            finally:
                connection.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    with server:
        yield Address(host, server.getsockname()[1], key)
        thread.join(10.0)


def _said(server: socket.socket, words: bytes) -> None:
    with server.accept()[0] as taken:
        taken.sendall(words)
        with suppress(ConnectionError):
            taken.recv(1)


def asked(number: int) -> tuple[dict[str, object], list[int]]:
    with socket.socket(fileno=os.dup(number)) as end:
        end.sendall(b"\n")
        said, handed, _, _ = socket.recv_fds(end, 1 << 16, 1)
    return json.loads(said), list(handed)


def test_each_call_is_a_connection_of_its_own() -> None:
    with listening(calls=2) as address, switchboard(address) as end:
        for number in range(2):
            said, (handed,) = asked(end)
            assert said == {}
            with Connection(handed) as connection:
                assert connection.recv_bytes() == f"{number}".encode()


def test_another_key_is_lasting_and_nobody_there_is_not() -> None:
    with listening() as address, switchboard(replace(address, key="x" * 32)) as end:
        said, handed = asked(end)
        assert (said["lasting"], handed) == (True, [])
        assert "has another key" in str(said["reason"])
    with switchboard(address) as end:
        said, handed = asked(end)
        assert (said["lasting"], handed) == (False, [])
        assert "does not answer (Connection refused)" in str(said["reason"])


def test_who_pretends_to_be_the_device_without_its_key_is_handed_to_nobody() -> None:
    """Both sides prove it."""
    server = socket.create_server(("127.0.0.1", 0))

    def pretend() -> None:
        with Connection(server.accept()[0].detach()) as connection:
            connection.send_bytes(b"#CHALLENGE#" + b"0" * 20)
            connection.recv_bytes()
            connection.send_bytes(b"#WELCOME#")
            connection.recv_bytes()
            connection.send_bytes(b"0" * 16)

    threading.Thread(target=pretend, daemon=True).start()
    with server, pytest.raises(Unreached, match="has another key"):
        dial(Address("127.0.0.1", server.getsockname()[1], KEY))


def reflected() -> list[Connection | Unreached]:
    """What becomes of two calls to someone without the key: what the first challenges, the second is to answer."""
    server, called = socket.create_server(("127.0.0.1", 0)), list[Connection | Unreached]()

    def call() -> None:
        try:
            called.append(dial(Address("127.0.0.1", server.getsockname()[1], KEY)))
        except Unreached as unreached:
            called.append(unreached)

    calls = [threading.Thread(target=call, daemon=True) for _ in range(2)]
    with server:
        for one in calls:
            one.start()
        first, second = (Connection(server.accept()[0].detach()) for _ in calls)
    with first, second:
        first.send_bytes(b"#CHALLENGE#" + b"0" * 20)
        first.recv_bytes()
        first.send_bytes(b"#WELCOME#")
        second.send_bytes(first.recv_bytes())
        first.send_bytes(second.recv_bytes())
        first.recv_bytes()
    for one in calls:
        one.join(10.0)
    return called


def test_who_has_the_site_answer_its_own_challenge_is_handed_to_nobody() -> None:
    one, other = map(str, reflected())
    assert "has another key" in one + other
    assert "broke off the call" in one + other


@pytest.mark.mutation
def test_with_one_key_for_both_ways_the_site_would_answer_its_own_challenge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board, "proofs", lambda key: (key, key))
    accepted = [one for one in reflected() if isinstance(one, Connection)]
    assert len(accepted) == 1
    accepted[0].close()


def test_what_says_nothing_and_what_stops_in_the_middle_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board, "REACH", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = Address("127.0.0.1", silent.getsockname()[1], KEY)
        with pytest.raises(Unreached, match="does not speak as a device does"):
            dial(address)
    with socket.create_server(("127.0.0.1", 0)) as telnet:
        address = Address("127.0.0.1", telnet.getsockname()[1], KEY)
        greets = threading.Thread(target=lambda: _said(telnet, b"\xff\xfd\x01\xff\xfd\x1f" * 9), daemon=True)
        greets.start()
        with pytest.raises(Unreached, match="broke off the call"):
            dial(address)
        greets.join(5.0)
    with socket.create_server(("127.0.0.1", 0)) as half:
        address = Address("127.0.0.1", half.getsockname()[1], KEY)
        taken = list[socket.socket]()

        def begin() -> None:
            taken.append(half.accept()[0])
            taken[0].send(b"\0\0")

        threading.Thread(target=begin, daemon=True).start()
        with pytest.raises(Unreached, match="broke off the call"):
            dial(address)
        taken[0].close()


@pytest.mark.parametrize("host", ["board..local", "b" * 64, "nowhere.invalid"])
def test_a_name_that_is_none_is_said(host: str) -> None:
    with pytest.raises(Unreached, match="does not answer"):
        dial(Address(host, 9190, KEY))


def test_a_device_is_reached_by_its_name() -> None:
    with listening() as address, dial(replace(address, host="localhost")) as connection:
        assert connection.recv_bytes() == b"0"
