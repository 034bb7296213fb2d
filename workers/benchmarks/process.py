"""A part of a benchmark in a process group of its own, heard line by line."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from workers.sandbox.spawn import spawn
from workers.tvm_backend.runtime import pool_variables

Hear = Callable[[dict[str, Any]], None]


class PartFailed(Exception):
    """A process ended without its result; the text is its reason."""


def environment(threads: int, scratch: Path) -> dict[str, str]:
    """For a process that runs kernels of TVM; temporary files go to `scratch`. Without OMP_NUM_THREADS: TVM's search trains
    its cost model on all cores."""
    kept = {name: os.environ[name] for name in ("XDG_CACHE_HOME",) if name in os.environ}
    return {**kept, **pool_variables(threads), "TMPDIR": str(scratch)}


def lines(
    argv: Sequence[str],
    text: str,
    env: dict[str, str],
    log: Path | None,
    hear: Callable[[str], None],
    tick: Callable[[], None],
) -> int:
    """Gives the process `text`, passes each line it says to `hear` and calls `tick` every second; its exit status.

    Standard error goes to `log`, or where that is None among the lines.
    """
    with open(log or os.devnull, "wb") as errors:
        stderr = subprocess.STDOUT if log is None else errors
        with spawn(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(text.encode())
            process.stdin.close()
            rest = b""
            while True:
                ready, _, _ = select.select([process.stdout], [], [], 1.0)
                tick()
                if not ready:
                    continue
                chunk = os.read(process.stdout.fileno(), 1 << 16)
                if not chunk:
                    break
                *whole, rest = (rest + chunk).split(b"\n")
                for line in whole:
                    hear(line.decode(errors="replace").strip())
            if rest.strip():
                hear(rest.decode(errors="replace").strip())
            return process.popen.wait()


def result_of(
    module: str, order: dict[str, Any], env: dict[str, str], log: Path, hear: Hear, tick: Callable[[], None]
) -> dict[str, Any]:
    """The `result` event of `python -m module`; others go to `hear`. Raises PartFailed with the reason it gave."""
    found: dict[str, Any] = {}

    def take(line: str) -> None:
        event = json.loads(line)
        if event["kind"] in ("result", "failed"):
            found.update(event)
        else:
            hear(event)

    code = lines([sys.executable, "-m", module], json.dumps(order), env, log, take, tick)
    if found.get("kind") == "result":
        return found
    said = log.read_text(errors="replace").strip()[-300:]
    raise PartFailed(found.get("reason") or f"the process left with status {code}: {said or 'it said nothing'}")
