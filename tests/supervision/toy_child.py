"""A child with many vices. Its order names one; `nonce` marks everything it starts."""

import os
import signal
import subprocess
import sys
import time
from itertools import count
from typing import Any

from workers.messages.channel import ControlReader, EventWriter
from workers.sandbox.spawn import spawn

NAP = "import time; time.sleep(600)"


def batch(number: int) -> dict[str, Any]:
    return {
        "kind": "batch",
        "clock": float(number),
        "number": number,
        "measurements": [{"number": number}],
        "spent": {},
    }


def log(text: str) -> dict[str, Any]:
    return {"kind": "log", "clock": 0.0, "level": "info", "text": text}


def main() -> None:
    wire = EventWriter.from_environment()
    control = ControlReader()
    order = control.order()
    VICES[order["vice"]](wire, control, order)


def counting(wire: EventWriter, control: ControlReader, order: dict[str, Any]) -> None:
    begin = order.get("begin", 0)
    for number in range(begin, begin + order["events"]):
        wire.emit(batch(number))
    if order.get("die"):
        os.kill(os.getpid(), signal.SIGKILL)
    wire.emit({"kind": "finished", "clock": 1.0, "reason": "trials"})


def family(wire: EventWriter, control: ControlReader, order: dict[str, Any]) -> None:
    """A worker started through spawn, and a compiler-like process that worker starts by itself."""
    lonely = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {NAP!r}, {order['nonce']!r}])"
    worker = spawn([sys.executable, "-c", lonely, order["nonce"]])
    worker.protection()
    # Left the session and lost its parent: only the token in its environment still says whose it is.
    subprocess.run(["sh", "-c", 'setsid "$0" -c "$1" "$2" &', sys.executable, NAP, order["nonce"]], check=True)
    wire.emit(log(str(os.getpid())))
    steady(wire, control, order)


def steady(wire: EventWriter, control: ControlReader, order: dict[str, Any]) -> None:
    for number in count():
        wire.emit(batch(number))
        time.sleep(0.02)
        if control.wanted() != "continue":
            reason = "paused" if control.wanted() == "pause" else "stopped"
            wire.emit({"kind": "finished", "clock": 1.0, "reason": reason})
            return


def stubborn(wire: EventWriter, control: ControlReader, order: dict[str, Any]) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    wire.emit(log("ready"))
    for number in count():
        wire.emit(batch(number))
        time.sleep(0.02)


def hoarding(wire: EventWriter, control: ControlReader, order: dict[str, Any]) -> None:
    kept = []
    for number in count():
        kept.append(b"x" * (8 << 20))
        wire.emit(batch(number))
        time.sleep(0.005)


def spinning(wire: EventWriter, control: ControlReader, order: dict[str, Any]) -> None:
    while True:
        pass


def computing(wire: EventWriter, control: ControlReader, order: dict[str, Any]) -> None:
    """Beside one it started, in a group of that one's own; says which processes."""
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"], process_group=0)
    wire.emit(log(f"{os.getpid()} {other.pid}"))
    while True:
        pass


def chattering(wire: EventWriter, control: ControlReader, order: dict[str, Any]) -> None:
    while True:
        os.write(1, b"noise " * 1000)


def raw(wire: EventWriter, control: ControlReader, order: dict[str, Any]) -> None:
    wire.emit(batch(0))
    fd = int(os.environ["TUNINGSITE_EVENTS"])
    os.write(fd, order["text"].encode())
    wire.emit(batch(1))
    time.sleep(600)


def endless(wire: EventWriter, control: ControlReader, order: dict[str, Any]) -> None:
    fd = int(os.environ["TUNINGSITE_EVENTS"])
    while True:
        os.write(fd, b"x" * (1 << 20))


def littering(wire: EventWriter, control: ControlReader, order: dict[str, Any]) -> None:
    """Files of `size` bytes in the working directory; without a name where `removed`."""
    kept = []
    for number in count():
        name = f"file-{number}"
        file = open(name, "wb", 0)
        file.write(b"x" * order["size"])
        if order.get("removed"):
            os.unlink(name)
            kept.append(file)
        else:
            file.close()
        wire.emit(batch(number))
        time.sleep(0.002)


def hanging(wire: EventWriter, control: ControlReader, order: dict[str, Any]) -> None:
    wire.emit(batch(0))
    time.sleep(600)


def lingering(wire: EventWriter, control: ControlReader, order: dict[str, Any]) -> None:
    wire.emit({"kind": "finished", "clock": 1.0, "reason": "exhausted"})
    time.sleep(600)


def leaving(wire: EventWriter, control: ControlReader, order: dict[str, Any]) -> None:
    os.close(0)
    sys.exit("last words")


def complaining(wire: EventWriter, control: ControlReader, order: dict[str, Any]) -> None:
    wire.emit({**log("no room"), "level": "error"})
    if order.get("die"):
        os.kill(os.getpid(), signal.SIGKILL)
    sys.exit(1)


def aborting(wire: EventWriter, control: ControlReader, order: dict[str, Any]) -> None:
    wire.emit(batch(0))
    os.abort()


def refusing(wire: EventWriter, control: ControlReader, order: dict[str, Any]) -> None:
    wire.emit({"kind": "failed", "clock": 0.0, "error": "no", "reason": "because", "next_step": "another"})


def telling(wire: EventWriter, control: ControlReader, order: dict[str, Any]) -> None:
    sizes = {"order_size": len(order.get("padding", "")), "measured": len(order.get("measurements", ()))}
    wire.emit({**log("environment"), "environment": dict(os.environ), **sizes})
    wire.emit({"kind": "finished", "clock": 1.0, "reason": "exhausted"})


VICES = {
    vice.__name__: vice
    for vice in (
        counting, family, steady, stubborn, hoarding, littering, spinning, computing, chattering, raw, endless, hanging,
        lingering, leaving, complaining, aborting, refusing, telling,
    )
}  # fmt: skip

if __name__ == "__main__":
    main()
