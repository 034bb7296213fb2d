"""Connections to a device for a child that has neither a network nor the device's key: they are made here and handed over."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from typing import Any

from workers.messages.device import GONE, Address, keep_alive, proofs

REACH = 10.0
"""Seconds for a device to answer when it is called."""


class Unreached(Exception):
    """`lasting` where calling again would not help."""

    def __init__(self, reason: str, next_step: str, lasting: bool = False) -> None:
        super().__init__(reason)
        self.next_step, self.lasting = next_step, lasting

    def to_json(self) -> dict[str, Any]:
        return {"reason": str(self), "next_step": self.next_step, "lasting": self.lasting}


KEY = "take the key that 'python -m workers.device' names there; where that is this one, give it this site's version"


def dial(address: Address) -> Connection:
    """A connection on which both sides have shown that they know the key. Raises Unreached."""
    try:
        reached = socket.create_connection((address.host, address.port), REACH)
    except (OSError, UnicodeError) as error:  # of a name that is none
        reason = getattr(error, "strerror", None) or error
        raise Unreached(f"the device at {address} does not answer ({reason})", GONE) from None
    # What is there may begin an answer and never end it.
    late = threading.Timer(2 * REACH, _broken_off, (reached,))
    connection = Connection(os.dup(reached.fileno()))
    try:
        reached.settimeout(None)
        keep_alive(reached)
        late.start()
        if not connection.poll(REACH):
            raise Unreached(f"what is at {address} does not speak as a device does", GONE)
        site, device = proofs(address.key.encode())
        answer_challenge(connection, site)
        deliver_challenge(connection, device)
    except BaseException as error:
        connection.close()
        if isinstance(error, AuthenticationError):
            raise Unreached(f"the device at {address} has another key", KEY, lasting=True) from None
        if isinstance(error, EOFError | OSError | AssertionError):  # it asserts what the other side begins with
            reason = str(error) or "it closed the connection"
            raise Unreached(f"the device at {address} broke off the call ({reason})", GONE) from None
        raise
    finally:
        late.cancel()
        reached.close()
    return connection


def _broken_off(reached: socket.socket) -> None:
    with suppress(OSError):  # it ended by itself
        reached.shutdown(socket.SHUT_RDWR)


@contextmanager
def switchboard(address: Address) -> Iterator[int]:
    """The file number of a child's end: for each byte that it writes it is told, in a line of JSON, `Unreached`'s fields or
    nothing, and with the latter handed a connection to the device."""
    ours, theirs = socket.socketpair()
    thread = threading.Thread(target=_serve, args=(ours, address), name="switchboard", daemon=True)
    thread.start()
    try:
        yield theirs.fileno()
    finally:
        theirs.close()  # and that ends the other
        thread.join(1.0)  # one that is calling a device ends with the call


def _serve(ours: socket.socket, address: Address) -> None:
    try:
        while ours.recv(1):
            try:
                with dial(address) as connection:
                    socket.send_fds(ours, [b"{}\n"], [connection.fileno()])
            except Unreached as unreached:
                ours.sendall(json.dumps(unreached.to_json()).encode() + b"\n")
    except OSError:
        return  # the child is gone
    finally:
        ours.close()
