import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.processes import comes_true
from workers.messages import events
from workers.messages.channel import ControlReader, EventWriter
from workers.messages.events import decode, encode

ROOT = Path(__file__).resolve().parents[2]


def test_events_of_many_threads_do_not_mix() -> None:
    reading, writing = os.pipe()
    writer = EventWriter(writing)

    def talk(name: int) -> None:
        for _ in range(50):
            writer.emit({"kind": "log", "clock": 0.0, "text": str(name) * 10_000})

    threads = [threading.Thread(target=talk, args=(name,)) for name in range(4)]
    collector: list[bytes] = []
    with os.fdopen(reading, "rb") as wire:
        gathering = threading.Thread(target=lambda: collector.extend(wire))
        gathering.start()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        os.close(writing)
        gathering.join()
    texts = [decode(line.decode())["text"] for line in collector]
    assert len(texts) == 200
    assert all(text == text[0] * 10_000 for text in texts)


def test_control_words_get_stronger_and_are_never_taken_back() -> None:
    reading, writing = os.pipe()
    control = ControlReader(reading)
    os.write(writing, b'{"vice": "none"}\n"nonsense"\n')
    assert control.order() == {"vice": "none"}
    assert control.wanted() == "continue"
    for said, wanted in (("pause", "pause"), ("stop", "stop"), ("pause", "stop")):
        os.write(writing, json.dumps(said).encode() + b"\n")
        assert comes_true(lambda wanted=wanted: control.wanted() == wanted, 5)
    os.close(writing)


def test_a_supervisor_that_went_away_means_stop() -> None:
    reading, writing = os.pipe()
    control = ControlReader(reading)
    os.write(writing, b"{}\n")
    control.order()
    os.close(writing)
    assert comes_true(lambda: control.wanted() == "stop", 5)


def test_no_order_is_an_error() -> None:
    reading, writing = os.pipe()
    os.close(writing)
    with pytest.raises(EOFError, match="order"):
        ControlReader(reading).order()


def test_a_listening_child_exits_cleanly() -> None:
    program = "from workers.messages.channel import ControlReader; ControlReader().order()"
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdin=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        assert child.stdin is not None
        assert child.stderr is not None
        child.stdin.write(b"{}\n")
        child.stdin.flush()
        assert child.stderr.read() == b""
        assert child.wait() == 0


def test_every_phase_that_is_told_is_named_in_the_interface():
    code = "".join(path.read_text() for path in (ROOT / "workers").rglob("*.py"))
    told = set(re.findall(r'(?:"phase", name=|\bphase\(|\breport\()"([a-z-]+)"', code))
    named = re.search(r"^phase .*?(?=^\w)", events.__doc__, re.MULTILINE | re.DOTALL)[0]
    assert told == set(re.findall(r'"([a-z-]+)"', named))


@pytest.mark.parametrize(
    ("text", "kept"), [("a\0b", False), ("a\\u0000b", True), ("\\\0", False), ("\\\\u0000", True), ("\0\\u0000", False)]
)
def test_a_null_character_is_no_event_and_a_backslash_before_u0000_is_text(text: str, kept: bool) -> None:
    """PostgreSQL's JSON cannot keep the one; the other is in messages that quote JSON."""
    line = encode({"kind": "log", "clock": 0.0, "level": "info", "text": text})
    if kept:
        assert decode(line)["text"] == text
    else:
        with pytest.raises(ValueError, match="null character"):
            decode(line)
