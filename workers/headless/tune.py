"""`manage.py tune`: one network on this machine, from file to verified archive."""

from __future__ import annotations

import argparse
import errno
import json
import math
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from workers.engine.methods import METHODS, REGISTRIES
from workers.headless.arguments import device_of, out_directory, percentage, spec_of
from workers.headless.ask import GRACE, ask, confined, made_in, refusal
from workers.headless.display import Display, human
from workers.headless.errors import EndedEarly, Failure, UserMistake
from workers.headless.heard import Listened
from workers.headless.profile import ARTIFACT, TUNING, Profile
from workers.headless.profile_table import profile_lines
from workers.headless.run_directory import DEFAULT_MINUTES, RunDirectory
from workers.headless.summary import summary
from workers.messages.composition import KNOWING
from workers.messages.events import Event
from workers.messages.folders import remove_tree
from workers.messages.orders import best_of, compile_order, latency_of, unfinished
from workers.messages.spec import ALL, AUTO, COMPUTE, LAYOUTS, MEASURED, Budget, RunSpec
from workers.messages.whole import whole, write_whole
from workers.supervision import Ending, Journal, restart_until_progress_stops

LONG = 600.0
"""s of tuning from which on the network is compared with ONNX Runtime before, untuned: of a wrong import nothing is offered."""
AGAIN = (10.0, 60.0)
"""s until an archive is asked for once more, of a device that was lost."""
EARLY = "it was stopped before the network's operators were known; start it again to have an archive"
USUAL = 10.0
"""Configurations a second, roughly, where a run's limit is a number of them."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("network", help="an ONNX file")
    parser.add_argument(
        "--allow-torch-export",
        action="store_true",
        help="take a torch.export file (.pt2) too: loading one can run code of whoever made it, in a sandbox",
    )
    parser.add_argument("--out", required=True, help="directory for the archive and the run's journal")
    parser.add_argument("--method", default="auto", help=f"one of {', '.join(METHODS)}")
    offered = {role: [name for name in known if name != KNOWING] for role, known in REGISTRIES.items()}
    parts = "; ".join(f"{role}: {', '.join(names)}" for role, names in offered.items())
    parser.add_argument(
        "--part", action="append", default=[], metavar="ROLE=NAME",
        help=f"replace a part of the method, or with ROLE.PARAMETER=VALUE a number of one; {parts}",
    )  # fmt: skip
    parser.add_argument(
        "--minutes", type=float, default=None,
        help=f"of tuning; {DEFAULT_MINUTES:g} where no limit is given, with --resume those of the run",
    )  # fmt: skip
    parser.add_argument("--trials", type=int, default=None, help="end after so many configurations")
    parser.add_argument(
        "--target-ms", type=float, default=None, help="end once the sum of the operators' times is no more than this"
    )
    parser.add_argument(
        "--min-gain", metavar="PERCENT", type=percentage, default=None,
        help="end when tuning a tenth longer, at least a minute, is expected to lower the latency by less, like 1%%",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--operators", choices=(ALL, COMPUTE), default=ALL,
        help="which get slots: all, or convolutions and matrix products only, as the papers tune",
    )  # fmt: skip
    parser.add_argument(
        "--layout", choices=LAYOUTS, default=AUTO,
        help=f"of convolutions; {AUTO} is NHWC where it holds, {MEASURED} NCHW where first configurations are a tenth faster",
    )  # fmt: skip
    parser.add_argument(
        "--shape", action="append", default=[], metavar="INPUT=1,3,224,224", help="sizes of a dynamic input"
    )
    parser.add_argument(
        "--device", metavar="HOST[:PORT]",
        help="tune for a machine elsewhere, on which 'python -m workers.device' runs: programs are built here and timed there",
    )  # fmt: skip
    parser.add_argument("--device-key", metavar="FILE", help="file with that device's key")
    parser.add_argument("--measure-again", action="store_true", help="measure this machine's peak anew")
    parser.add_argument(
        "--records", action="append", default=[], metavar="DIR",
        help="start from what an earlier run found: its --out; repeatable, the latest last (fixed when a run begins)",
    )  # fmt: skip
    parser.add_argument(
        "--no-archive",
        action="store_true",
        help="end when tuning does; --resume makes the archive of what was found, and the summary",
    )
    parser.add_argument("--resume", action="store_true", help="go on with the run that is in --out")
    parser.add_argument(
        "--profile", action="store_true", help="say at the end where every second and the memory went (profile.json)"
    )


def run(arguments: argparse.Namespace) -> int:
    """0 when the archive is there, or all that was asked for; raises UserMistake or Failure."""
    profile = Profile(memory=arguments.profile)
    out = out_directory(arguments.out)
    device = device_of(arguments)
    spec, machine = spec_of(arguments, out, profile, device)
    display = Display(spec.budget)
    try:
        with profile.accounts.spending("command/journal"), RunDirectory.opened(out, device, machine) as directory:
            return _tuned(arguments, spec, directory, profile, display)
    finally:
        display.end()
        if arguments.profile and profile.told:
            figures = profile.figures()
            write_whole(out / "profile.json", json.dumps(figures, indent=1))
            for line in profile_lines(figures):
                Display.say(line)


def _tuned(
    arguments: argparse.Namespace, spec: RunSpec, directory: RunDirectory, profile: Profile, display: Display
) -> int:
    """The run's directory is held to the end: what compiles works in it too."""
    spending = profile.accounts.spending
    name = Path(arguments.network).stem
    archive = directory.path.parent / f"{name}.zip"

    def attempt(order: Mapping[str, Any]) -> Ending:
        with profile.process(TUNING, order["clock"]) as hear:
            return confined(order, Listened(display.over(directory.journal), hear), GRACE)

    with display.stops_on_interrupt():
        new = not directory.under_way()
        if new and archive.exists():
            raise UserMistake(f"{archive} is there, and no run: move it away, or name another directory (--out)")
        spec = directory.begin(spec, arguments.records, arguments.resume)
        display.budget = spec.budget
        if new and arguments.resume:
            Display.say(f"--resume: no run that measured anything is in {directory.path.parent} yet; a new one begins")
        if new and directory.device is None and _takes_long(spec.budget):
            with spending("command/check"):
                _check_import(spec, arguments.network, directory.work_dir(), display, display.over(directory.journal))
        ending = restart_until_progress_stops(directory.journal, partial(directory.order, spec), attempt)
        history = directory.journal.history()
        operators = history.operators
        log = directory.tuning_log()
    display.end()
    if ending.kind == "paused":
        Display.say(f"paused after {human(history.clock)}; go on with --resume")
        return 0
    broken = _broken(ending)
    if broken and (arguments.no_archive or not operators or unfinished(history.measurements, operators)):
        raise broken
    if broken:
        Display.say(f"{broken}\nevery operator was measured: the archive is made of what was found")
    best = _best(ending, history.measurements, operators)
    history.measurements.clear()  # of a long run they are gigabytes, which the compilation needs
    latency = latency_of(best, operators) if len(best) == len(operators) else None
    if arguments.no_archive:
        sum_of_operators = f"{1e3 * latency:.3f} ms" if latency else "not every operator works"
        Display.say(f"{sum_of_operators} after {human(history.clock)}; --resume makes the archive")
        return 0
    order = compile_order(
        spec.to_json(),
        directory.work_dir(),
        name,
        history.layout,
        best,
        latency,
        log,
        history.clock,
        directory.device,
        directory.machine,
    )
    with directory.archiving():
        with profile.process(ARTIFACT, history.clock, display.hear) as hear:
            result = _asked(order, hear, AGAIN if directory.device else ())
        display.end()
        with spending("command/archive"):
            _conclude(archive, directory, ending, result, operators)
    if broken:
        Display.say("the run broke off before its end, as told above")
    return int(broken is not None)


def _asked(order: Mapping[str, Any], hear: Callable[[Event], None], again: Sequence[float]) -> Event:
    """As `ask`, and so many seconds later once more where nothing was said: the line to a device may have broken."""
    for pause in again:
        try:
            return ask(order, hear)
        except EndedEarly as early:
            Display.say(f"{str(early).splitlines()[0]}; once more in {pause:g} s")
        time.sleep(pause)
    return ask(order, hear)


def _takes_long(budget: Budget) -> bool:
    """Whether its minutes, or else its trials, leave it LONG; a latency or a gain says nothing of that."""
    return (budget.seconds or (budget.trials or math.inf) / USUAL) >= LONG


def _check_import(spec: RunSpec, network: str, work: Path, display: Display, journal: Journal) -> None:
    """Keeps what ONNX Runtime and untuned TVM take (`baseline` events). Raises Failure where even untuned TVM computes
    something else, and where the run is not wanted any more; what hinders the comparison is only shown."""
    wrong: list[str] = []

    def hear(event: Event) -> None:
        if event["kind"] == "baseline":
            journal.write([{**event, "clock": 0.0}])  # the run's has not begun
        else:
            display.hear(event)
        if event["kind"] == "log" and event["level"] == "error":
            wrong.append(event["text"])

    # What a kill leaves there goes with the run's directory.
    order = {"task": "baseline", "spec": spec.to_json(), "name": Path(network).stem, "work_dir": str(work)}
    try:
        ask(order, hear, journal.heartbeat)
    except Failure as error:
        word = journal.heartbeat()
        if word == "pause":  # so is the run, which begins behind this
            return
        if word != "continue":
            raise Failure(EARLY) from None
        Display.say(f"the import could not be compared with ONNX Runtime: {str(error).splitlines()[0]}")
    finally:
        remove_tree(work)
    if wrong:
        raise Failure(wrong[0])


def _broken(ending: Ending) -> UserMistake | Failure | None:
    """Why the run ended, where neither its limits nor its user ended it."""
    if ending.kind == "failed" and ending.last is not None:
        return refusal(ending.last)
    if ending.kind in ("crashed", "lost"):
        return Failure(f"the run broke off: {ending.detail}\n{ending.log[-2000:]}".rstrip())
    return None


def _best(
    ending: Ending, measurements: Sequence[dict[str, Any]], operators: Sequence[dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Of every operator that has one, see `best_of`. Raises Failure where the run ended before that is known."""
    if ending.kind == "stopped" and not operators:
        raise Failure(EARLY)
    if left := unfinished(measurements, operators):
        raise Failure(
            f"{len(left)} of {len(operators)} operators have no valid configuration yet; give it more time (--resume)"
        )
    best = best_of(measurements, operators)
    if plain := [operator["name"] for operator in operators if str(operator["index"]) not in best]:
        Display.say(f"no configuration that was tried works; plain loops instead: {', '.join(plain)}")
    return best


def _move(made: Path, archive: Path) -> None:
    """Without a copy, which would want room, but where the run's directory is a link to another disk."""
    try:
        os.replace(made, archive)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        with whole(archive) as partial:
            shutil.copyfile(made, partial)


def _conclude(
    archive: Path, directory: RunDirectory, ending: Ending, result: dict[str, Any], operators: list[dict[str, Any]]
) -> None:
    """The archive first: whatever breaks behind it, what the run was for is there."""
    if result["passed"]:
        _move(made_in(directory.work_dir(), result["archive"], "compiling"), archive)
        remove_tree(directory.work_dir())  # what the archive holds lies there once more
    figures = summary(directory.journal.events(), ending, result, operators)
    write_whole(archive.parent / "summary.json", json.dumps(figures["figures"], indent=1, sort_keys=True))
    for line in figures["lines"]:
        Display.say(line)
    if not result["passed"]:
        raise Failure(
            f"the library does not compute what ONNX Runtime computes: {result['verdict']['reason']}; nothing is offered"
        )
    Display.say(f"archive: {archive}")
