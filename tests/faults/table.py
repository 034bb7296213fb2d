"""The full table of faults on a real site: what was lost, what was doubled, how long until it went on.

`python -m tests.faults.table --out DIR` strikes every part of a site with a run as often as the table says, and prints the
table. Each strike is a line in DIR/strikes.jsonl: the same command goes on where it was ended. `--times 1` is a short form,
`--only WORD` takes the faults with that word. A machine that does something else at the time makes the seconds longer.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import zoo
from tests.processes import eventually, kill
from tests.running import MANAGE, Running

AGAIN = 120.0  # s for the next measurement; beyond it the site did not go on
ALONE = 5.0  # s after which nothing of a killed launcher may be left
FROZEN = 40.0  # s; a lease lasts 30

Record = dict[str, Any]


class Stricken:
    """A site of `up` with a run that does not end by itself."""

    def __init__(self, folder: Path) -> None:
        self.site = Running(folder)
        self.site.prepare(zoo.tiny(folder))
        self.up()
        self.key = self.site.run(seconds=1e6)
        eventually(lambda: self.site.measured() > 0, AGAIN, "the first measurement")

    def up(self) -> None:
        self.launcher = self.site.start("up", *MANAGE, "up")
        eventually(lambda: self.worker() or self.launcher.poll() is not None, 60, "the start")
        assert self.launcher.poll() is None, self.site.logs()

    def worker(self) -> list[int]:
        return self.site.of("-m workers.actors measure")

    def queue(self) -> list[int]:
        return [
            pid for pid, line in self.site.processes().items() if "valkey" in line or "redis" in line.partition(" ")[0]
        ]

    def doubled(self) -> int:
        """Measurements that are there twice, and numbers of events that are."""
        return int(
            self.site.ask("""
rows = list(Measurement.objects.values_list("run_id", "operator", "configuration", "round"))
numbers = [*Measurement.objects.values_list("run_id", "seq"), *Event.objects.values_list("run_id", "seq")]
result = len(rows) - len(set(rows)) + len(numbers) - len(set(numbers))
""")
        )


@dataclass(frozen=True)
class Fault:
    """`strike` returns the number of processes that should be gone and are not; `whom` it hits, who may still be being started
    again after the one before."""

    name: str
    times: int
    strike: Callable[[Stricken], int]
    whom: Callable[[Stricken], list[int]]


def _children(on: Stricken) -> list[int]:
    return list(on.site.children())


def _webs(on: Stricken) -> list[int]:
    return on.site.of("tuningsite.asgi:application")


def _launchers(on: Stricken) -> list[int]:
    return [on.launcher.pid]


def _worker(on: Stricken) -> int:
    children = set(on.site.children())
    kill(*on.worker())
    time.sleep(ALONE)
    return len(children & set(on.site.children()))


def _child(on: Stricken) -> int:
    kill(*_children(on))
    return 0


def _queue(on: Stricken) -> int:
    kill(*on.queue())
    return 0


def _queue_wiped(on: Stricken) -> int:
    kill(*on.queue())
    shutil.rmtree(on.site.data / "redis", ignore_errors=True)
    return 0


def _web(on: Stricken) -> int:
    kill(*_webs(on))
    return 0


def _launcher(on: Stricken) -> int:
    kill(on.launcher.pid)
    on.launcher.wait()
    time.sleep(ALONE)
    left = len(on.site.processes())
    on.up()
    return left


def _interrupt(on: Stricken) -> int:
    on.launcher.send_signal(signal.SIGINT)
    with suppress(subprocess.TimeoutExpired):
        on.launcher.wait(ALONE)
    left = len(on.site.processes())
    on.up()
    return left


def _frozen(on: Stricken) -> int:
    pids = on.worker()
    kill(*pids, number=signal.SIGSTOP)
    time.sleep(FROZEN)
    kill(*pids, number=signal.SIGCONT)
    return 0


FAULTS = (
    Fault("kill -9 the worker", 50, _worker, Stricken.worker),
    Fault("kill -9 the tuning child", 200, _child, _children),
    Fault("kill -9 the launcher", 20, _launcher, _launchers),
    Fault("Ctrl-C and start again", 20, _interrupt, _launchers),
    Fault("kill -9 the queue", 20, _queue, Stricken.queue),
    Fault("kill -9 and wipe the queue", 20, _queue_wiped, Stricken.queue),
    Fault("kill -9 the web process", 20, _web, _webs),
    Fault("freeze the worker for longer than its lease", 5, _frozen, Stricken.worker),
)


def strike(fault: Fault, on: Stricken) -> Record:
    """Once; waits until the run goes on."""
    eventually(lambda: bool(fault.whom(on)), AGAIN, f"someone to strike: {fault.name}")
    before = on.site.measured()
    began = time.monotonic()
    left = fault.strike(on)
    kept = on.site.measured()
    eventually(lambda: on.site.measured() > kept, AGAIN, f"a measurement after: {fault.name}")
    return {
        "fault": fault.name,
        "seconds": time.monotonic() - began,
        "lost": max(0, before - kept),
        "doubled": on.doubled(),
        "left": left,
    }


def table(records: list[Record]) -> str:
    """A row a fault; `lost`, `doubled` and `left` are sums, and zero is the promise."""
    lines = [f"{'fault':46}{'times':>6}{'lost':>6}{'doubled':>9}{'left':>6}{'median s':>10}{'worst s':>9}"]
    for fault in FAULTS:
        rows = [record for record in records if record["fault"] == fault.name]
        if rows:
            sums = [sum(row[name] for row in rows) for name in ("lost", "doubled", "left")]
            seconds = [row["seconds"] for row in rows]
            lines.append(
                f"{fault.name:46}{len(rows):6}{sums[0]:6}{sums[1]:9}{sums[2]:6}"
                f"{statistics.median(seconds):10.1f}{max(seconds):9.1f}"
            )
    return "\n".join(lines)


def read(path: Path) -> list[Record]:
    """Strikes kept so far; a line that was being written when the command ended is none."""
    found = []
    for line in path.read_text().splitlines() if path.exists() else ():
        with suppress(ValueError):
            found.append(json.loads(line))
    return found


def run(out: Path, times: int | None = None, only: str = "") -> list[Record]:
    """Makes the strikes that are missing, on a site of their own for each fault."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / "strikes.jsonl"
    for fault in FAULTS:
        done = sum(record["fault"] == fault.name for record in read(path))
        missing = (fault.times if times is None else times) - done
        if only not in fault.name or missing <= 0:
            continue
        with tempfile.TemporaryDirectory(prefix="faults-", ignore_cleanup_errors=True) as folder:
            on = None
            try:
                on = Stricken(Path(folder))
                for _ in range(missing):
                    line = json.dumps(strike(fault, on))
                    with path.open("a") as file:
                        file.write(f"\n{line}\n")  # a torn line before it stays a line of its own
            finally:
                if on is not None:
                    on.site.close()
    return read(path)


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.faults.table", description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="directory that keeps what was done")
    parser.add_argument("--times", type=int, help="strikes a fault, instead of the table's own numbers")
    parser.add_argument("--only", default="", help="faults whose name holds this")
    arguments = parser.parse_args()
    records = run(arguments.out, arguments.times, arguments.only)
    sys.stdout.write(table(records) + "\n")
    return int(any(record[name] for record in records for name in ("lost", "doubled", "left")))


if __name__ == "__main__":
    sys.exit(main())
