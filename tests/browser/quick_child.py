"""A child that tells a made-up run as fast as its supervisor takes it."""

from __future__ import annotations

import base64
from itertools import islice

import numpy as np

from tests.browser import journal
from workers.messages.channel import ControlReader, EventWriter

CHECKPOINT = 4  # slots between two, five seconds of a run
STATE = 2000  # bytes of an operator's search: 128 chains of 12 knobs, compressed


def main() -> None:
    order = ControlReader().order()
    events = EventWriter.from_environment()
    rng = np.random.default_rng(0)
    state = [base64.b64encode(rng.bytes(STATE)).decode() for _ in range(order["operators"])]
    clock = 0.0
    for number, (batch, slot) in enumerate(islice(journal.slots(order["operators"]), order["slots"])):
        events.emit(batch)
        checkpoint = {"checkpoint": {"slot": number, "proposers": state}} if number % CHECKPOINT == 0 else {}
        events.emit(slot | checkpoint)
        clock = slot["clock"]
    events.emit({"kind": "finished", "clock": clock, "reason": "trials", "report": {}})


if __name__ == "__main__":
    main()
