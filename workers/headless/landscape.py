"""`manage.py landscape record|calibrate`: measurements of this machine, to compare methods on without it."""

from __future__ import annotations

import argparse
import fcntl
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from workers.headless.arguments import check_method, input_shapes, network_file, out_directory
from workers.headless.ask import GRACE, MemoryJournal, ask, confined, made_in
from workers.headless.content import content_hash
from workers.headless.display import Display
from workers.headless.errors import Failure, UserMistake
from workers.headless.machine import spec_fields, this_machine
from workers.landscapes import Costs, CurveRecording, LandscapeError, SpaceRecording
from workers.landscapes.costs import COSTS
from workers.messages.spec import Budget, RunSpec
from workers.messages.whole import whole


def add_arguments(parser: argparse.ArgumentParser) -> None:
    words = parser.add_subparsers(dest="word", required=True)
    record = words.add_parser("record", help="record a network's landscape; run again, it goes on where it was")
    record.add_argument("network", help="an ONNX file with static shapes")
    record.add_argument("--kind", choices=("curve", "space"), required=True)
    record.add_argument("--out", required=True, help="directory of landscapes")
    record.add_argument("--trials", type=int, default=400, help="of an inner search (curve)")
    record.add_argument("--seeds", type=int, default=3, help="inner searches an operator (curve)")
    record.add_argument("--operators", type=int, default=8, help="how many, those with the most work (space)")
    record.add_argument("--configurations", type=int, default=3000, help="at most, of each operator's part (space)")
    record.add_argument("--method", default="auto", help="whose inner search is recorded, or looks for a good part")
    record.add_argument("--measure-again", action="store_true", help="measure this machine's peak anew")
    calibrate = words.add_parser("calibrate", help="time the parts of every method anew")
    calibrate.add_argument("--out", required=True, help="directory of landscapes")


def run(arguments: argparse.Namespace) -> int:
    """0 when the landscape is there, 130 when stopped; raises UserMistake or Failure."""
    out = out_directory(arguments.out)
    with _alone(out):
        return _made(arguments, out)


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """Raises UserMistake where another process records into that directory."""
    (out / "recording").mkdir(exist_ok=True)
    with (out / "recording" / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserMistake(
                f"--out {out} is in use by another recording: wait for it, or name another directory"
            ) from None
        yield


def _made(arguments: argparse.Namespace, out: Path) -> int:
    """See `run`."""
    if arguments.word == "calibrate":
        hardware = ask({"task": "hardware", "peak": False})["hardware"]
        with suppress(LandscapeError):  # what is damaged is made anew
            _of_this_machine(out, hardware["name"])
        return _calibrate(out, hardware)
    spec, hardware = _spec(arguments)
    try:
        _of_this_machine(out, hardware["name"])
    except LandscapeError as error:
        raise UserMistake(str(error)) from None
    name = recording_name(Path(arguments.network).stem, arguments.method, hardware["name"], spec.threads)
    words = ("trials", "seeds") if arguments.kind == "curve" else ("configurations", "operators")
    figures = "-".join(str(getattr(arguments, word)) for word in words)
    work = out / "recording" / f"{name}-{content_hash(spec.network)[:8]}-{arguments.kind}-{figures}"
    _not_another(out / f"{name}.{arguments.kind}.npz", work.name)
    work.mkdir(parents=True, mode=0o700, exist_ok=True)
    order = {
        "task": "landscape", "kind": arguments.kind, "spec": spec.to_json(), "work_dir": str(work), "name": name,
        "network": Path(arguments.network).stem, "hardware": hardware, "trials": arguments.trials, "seeds": arguments.seeds,
        "operators": arguments.operators, "configurations": arguments.configurations, "made": work.name,
    }  # fmt: skip
    made = _recorded(order)
    if made is None:
        Display.say("stopped; what was measured is kept, the same command goes on")
        return 130
    _keep(made_in(work, made, "recording"), out)
    return 0 if (out / COSTS).exists() else _calibrate(out, hardware)


def _not_another(kept: Path, made: str) -> None:
    """Raises UserMistake when what lies at `kept` was made by other words, or of another network of that name: hours of
    measuring."""
    if not kept.exists():
        return
    try:
        theirs = (CurveRecording if ".curve." in kept.name else SpaceRecording).read(kept).header.get("made")
    except LandscapeError as error:
        raise UserMistake(f"{error}; name another --out, or take it away") from None
    if theirs != made:
        reason = "another recording: of another network of that name, or by other words"
        raise UserMistake(f"{kept} is {reason}; name another --out, or take it away")


def _of_this_machine(out: Path, machine: str) -> None:
    """Raises UserMistake when the directory's costs, which replays charge, are another machine's, and LandscapeError when
    they are damaged."""
    theirs = Costs.read(out / COSTS).machine if (out / COSTS).exists() else machine
    if theirs not in (machine, ""):
        raise UserMistake(
            f"--out {out} holds landscapes of another machine ({theirs}, not {machine}); name another one"
        )


def recording_name(network: str, method: str, machine: str, threads: int) -> str:
    """Of a recording's files: one network recorded by two methods, or on two machines, is two recordings.

    "squeezenet-auto-amd-epyc-9b45-2-threads"
    """
    words = re.sub(r"[^a-z0-9]+", "-", machine.lower()).strip("-")
    return f"{network}-{method}-{words}-{threads}-threads"


def _recorded(order: dict[str, Any]) -> str | None:
    display, journal = Display(Budget()), MemoryJournal()
    with display.stops_on_interrupt():
        ending = confined(order, display.over(journal), GRACE)
    display.end()
    if (result := journal.result()) is not None:
        path: str | None = result["path"]
        return path
    if display.stopping:
        return None
    raise Failure(f"the recording ended early: {ending.detail}; the same command goes on\n{ending.log[-2000:]}")


def _keep(made: Path, out: Path) -> None:
    """Into the directory of landscapes, once it reads as one."""
    try:
        recording = CurveRecording.read(made) if ".curve." in made.name else SpaceRecording.read(made)
    except LandscapeError as error:
        raise Failure(str(error)) from None
    path = out / made.name
    with whole(path) as partial:
        shutil.copy(made, partial)
    Display.say(
        f"{path}: {len(recording.header['operators'])} operators, {path.stat().st_size / 1e6:.2f} MB, "
        f"noise {100 * recording.noise:.1f} %"
    )


def _calibrate(out: Path, hardware: dict[str, Any]) -> int:
    work = out / "recording" / "costs"
    work.mkdir(parents=True, mode=0o700, exist_ok=True)
    order = {"task": "landscape", "kind": "costs", "work_dir": str(work), "hardware": hardware}
    made = _recorded(order)
    if made is None:
        return 130
    Costs.read(work / COSTS).write(out / COSTS)
    Display.say(f"{out / COSTS}: what the parts of every method cost")
    return 0


def _spec(arguments: argparse.Namespace) -> tuple[RunSpec, dict[str, Any]]:
    check_method(arguments.method, {})
    for name in ("trials", "seeds", "operators", "configurations"):
        if getattr(arguments, name) < 1:
            raise UserMistake(f"--{name} {getattr(arguments, name)} must be a whole number from 1 on")
    network = network_file(arguments.network)
    inspection = ask({"task": "inspect", "network": str(network)})["inspection"]
    machine = this_machine(arguments.measure_again)
    spec = RunSpec(
        network=str(network),
        **spec_fields(machine),
        inputs=input_shapes(inspection, {}, "record a network without"),
        method=arguments.method,
    )
    return spec, machine["hardware"]
