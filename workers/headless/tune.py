"""`manage.py tune`: one network on this machine, from file to verified archive."""

from __future__ import annotations

import argparse
import json
import math
import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from workers.engine.errors import EngineError
from workers.engine.methods import method
from workers.headless.ask import ask, confined, refusal
from workers.headless.display import Display, human, summary
from workers.headless.errors import Failure, UserMistake
from workers.headless.heard import Listened
from workers.headless.machine import this_machine
from workers.headless.profile import ARTIFACT, TUNING, Profile
from workers.headless.profile_table import profile_lines
from workers.headless.records import keep_records
from workers.headless.torch_export import as_onnx
from workers.messages.orders import best_of, compile_order, latency_of, tune_order
from workers.messages.spec import Budget, RunSpec
from workers.supervision import DirectoryJournal, Ending, History, restart_until_progress_stops
from workers.supervision.directory import DamagedJournal, DirectoryBusy

RUN, KNOWN = "run", "known.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("network", help="an ONNX file")
    parser.add_argument(
        "--allow-torch-export",
        action="store_true",
        help="take a torch.export file (.pt2) too: loading one can run code of whoever made it, in a sandbox",
    )
    parser.add_argument("--out", required=True, help="directory for the archive and the run's journal")
    parser.add_argument("--method", default="auto", help="auto, dynatune, autotvm, round_robin, random, ...")
    parser.add_argument("--part", action="append", default=[], metavar="ROLE=NAME", help="replace a part of the method")
    parser.add_argument("--minutes", type=float, default=None)
    parser.add_argument("--trials", type=int, default=None)
    parser.add_argument("--target-ms", type=float, default=None)
    parser.add_argument(
        "--min-gain", metavar="PERCENT", type=_share, default=None,
        help="end when tuning a tenth longer, at least a minute, is expected to lower the latency by less, like 1%%",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--layout", choices=("auto", "NHWC", "NCHW"), default="auto")
    parser.add_argument(
        "--shape", action="append", default=[], metavar="INPUT=1,3,224,224", help="sizes of a dynamic input"
    )
    parser.add_argument("--measure-again", action="store_true", help="measure this machine's peak anew")
    parser.add_argument(
        "--records", action="append", default=[], metavar="DIR",
        help="start from what an earlier run found: its --out; repeatable, the latest last (fixed when a run begins)",
    )  # fmt: skip
    parser.add_argument("--resume", action="store_true", help="go on with the run that is in --out")
    parser.add_argument(
        "--profile", action="store_true", help="say at the end where every second and the memory went (profile.json)"
    )


def run(arguments: argparse.Namespace) -> int:
    """0 when the archive is there; raises UserMistake or Failure."""
    profile = Profile(memory=arguments.profile)
    out = _directory(arguments)
    spec = _spec(arguments, profile)
    display = Display(spec.budget)
    try:
        return _tuned(arguments, out, spec, profile, display)
    finally:
        display.end()
        if arguments.profile and profile.told:
            figures = profile.figures()
            _write(out / "profile.json", json.dumps(figures, indent=1))
            for line in profile_lines(figures):
                Display.say(line)


def _tuned(arguments: argparse.Namespace, out: Path, spec: RunSpec, profile: Profile, display: Display) -> int:
    spending = profile.accounts.spending

    def attempt(order: Mapping[str, Any]) -> Ending:
        with profile.process(TUNING, order["clock"]) as hear:
            return confined(order, Listened(display.over(journal), hear))

    with spending("command/journal"), _opened(out / RUN) as journal, display.stops_on_interrupt():
        spec = _begin(journal, spec, out, arguments)
        ending = restart_until_progress_stops(journal, partial(_order, spec, out, journal), attempt)
        history = journal.history()
        operators, layout = _facts(journal)
        log = _log(journal, out / RUN / "tuning_log.jsonl")
    display.end()
    if ending.kind == "failed" and ending.last is not None:
        raise refusal(ending.last)
    if ending.kind in ("crashed", "lost"):
        raise Failure(f"the run broke off: {ending.detail}\n{ending.log[-2000:]}")
    if ending.kind == "paused":
        Display.say(f"paused after {human(history.clock)}; go on with --resume")
        return 0
    if ending.kind == "stopped" and not operators:
        raise Failure("it was stopped before the network's operators were known; start it again to have an archive")
    best = best_of(history.measurements, operators)
    if len(best) < len(operators):
        raise Failure(
            f"only {len(best)} of {len(operators)} operators have a valid configuration; give it more time (--resume)"
        )
    name, latency = Path(arguments.network).stem, latency_of(best, operators)
    order = compile_order(spec.to_json(), _child(out), name, layout, best, latency, log, history.clock)
    with profile.process(ARTIFACT, history.clock, display.hear) as hear:
        result = ask(order, hear)
    display.end()
    with spending("command/archive"):
        return _conclude(arguments, out, journal, ending, result, operators)


def _conclude(
    arguments: argparse.Namespace,
    out: Path,
    journal: DirectoryJournal,
    ending: Ending,
    result: dict[str, Any],
    operators: list[Any],
) -> int:
    """The archive first: whatever breaks behind it, what the run was for is there."""
    archive = out / f"{Path(arguments.network).stem}.zip"
    if result["passed"]:
        made = Path(result["archive"]).resolve()
        if not made.is_relative_to(_child(out)):
            raise Failure(
                f"the compiling process names an archive outside of its directory: {made}; nothing is offered"
            )
        os.replace(made, archive)  # no copy: that would want room
    figures = summary(journal.events(), ending, result, operators)
    _write(out / "summary.json", json.dumps(figures["figures"], indent=1, sort_keys=True))
    for line in figures["lines"]:
        Display.say(line)
    if not result["passed"]:
        raise Failure(
            f"the library does not compute what ONNX Runtime computes: {result['verdict']['reason']}; nothing is offered"
        )
    Display.say(f"archive: {archive}")
    return 0


def _write(path: Path, text: str) -> None:
    """Whole or not at all."""
    partial = path.with_suffix(".partial")
    partial.write_text(text)
    partial.replace(path)


def _opened(path: Path) -> DirectoryJournal:
    try:
        return DirectoryJournal(path)
    except (DirectoryBusy, DamagedJournal) as error:
        raise UserMistake(str(error)) from None


def _directory(arguments: argparse.Namespace) -> Path:
    out = Path(arguments.out).resolve()
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserMistake(f"--out {arguments.out}: {error.strerror}; name a directory that can be made") from None
    return out


def _spec(arguments: argparse.Namespace, profile: Profile) -> RunSpec:
    parts = dict(_pair(text, "--part") for text in arguments.part)
    try:
        method(arguments.method, parts)
    except EngineError as error:
        raise UserMistake(f"--method {arguments.method}: {error}") from None
    for name, value in (
        ("--minutes", arguments.minutes),
        ("--trials", arguments.trials),
        ("--target-ms", arguments.target_ms),
    ):
        if value is not None and not value > 0:
            raise UserMistake(f"{name} {value} must be greater than 0")
    if arguments.seed < 0:
        raise UserMistake(f"--seed {arguments.seed} must be a whole number from 0 on")
    if not Path(arguments.network).is_file():
        raise UserMistake(f"{arguments.network}: there is no such file; name an ONNX file")
    with profile.accounts.spending("command/inspect"):
        network = str(as_onnx(Path(arguments.network), _directory(arguments), arguments.allow_torch_export).resolve())
        inspection = ask({"task": "inspect", "network": network})["inspection"]
    with profile.accounts.spending("command/machine"):
        machine = this_machine(arguments.measure_again)
    limits = (arguments.minutes, arguments.trials, arguments.target_ms, arguments.min_gain)
    minutes = arguments.minutes if any(limits) else 5.0
    return RunSpec(
        network=network,
        target=machine["hardware"]["target"],
        threads=machine["hardware"]["cores"],
        peak_flops=machine["peak"]["flops"],
        bandwidth=machine["peak"]["bandwidth"],
        inputs=_shapes(inspection, dict(_pair(text, "--shape") for text in arguments.shape)),
        method=arguments.method,
        parts=parts,
        budget=Budget(
            seconds=minutes and 60 * minutes,
            trials=arguments.trials,
            target_latency=arguments.target_ms and arguments.target_ms / 1e3,
            min_gain=arguments.min_gain,
        ),
        layout=arguments.layout,
        seed=arguments.seed,
    )


def _share(text: str) -> float:
    """1% is 0.01; without the sign nobody knows which of the two was meant."""
    number, sign, rest = text.partition("%")
    try:
        share = float(number) / 100
    except ValueError:
        share = math.nan
    if not (sign and not rest and 0 < share < 1):
        raise argparse.ArgumentTypeError(f"{text!r} must be above 0% and under 100%, with its sign, like 1%")
    return share


def _pair(text: str, option: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name or not value:
        raise UserMistake(f"{option} {text!r} must look like NAME=VALUE")
    return name, value


def _shapes(inspection: dict[str, Any], given: dict[str, str]) -> dict[str, list[int]]:
    shapes: dict[str, list[int]] = {}
    for port in inspection["inputs"]:
        name, shape = port["name"], port["shape"]
        if name in given:
            try:
                shape = [int(size) for size in given.pop(name).split(",")]
            except ValueError:
                raise UserMistake(
                    f"--shape {name}: sizes must be whole numbers separated by commas, like 1,3,224,224"
                ) from None
        if shape is None or not all(isinstance(size, int) for size in shape):
            raise UserMistake(
                f"input {name} has dynamic dimensions {shape}: give its sizes with --shape {name}=1,3,224,224"
            )
        shapes[name] = shape
    if given:
        known = ", ".join(port["name"] for port in inspection["inputs"])
        raise UserMistake(f"--shape {next(iter(given))}: the network has no such input; it has {known}")
    return shapes


def _begin(journal: DirectoryJournal, spec: RunSpec, out: Path, arguments: argparse.Namespace) -> RunSpec:
    """What is run. A directory holds one run: a second one must say that it goes on, with the peaks and the records it
    began with. One that measured nothing binds nobody."""
    path, known, resume = out / RUN / "spec.json", out / RUN / KNOWN, arguments.resume
    under_way = bool(journal.history().measurements)
    if under_way and not resume:
        raise UserMistake(f"{out} holds a run already: go on with it (--resume) or name another directory")
    if under_way and path.exists():
        spec = _continued(json.loads(path.read_text()), spec, out)
    if not under_way:
        journal.clear()  # another network's operators may be in it
        if arguments.records or not (resume and known.exists()):
            keep_records(arguments.records, RUN, known)
    _write(path, spec.to_json())
    return spec


def _continued(before: dict[str, Any], spec: RunSpec, out: Path) -> RunSpec:
    """The spec with the peaks of `before`: they vary from measurement to measurement, and the operators depend on them."""
    spec = replace(spec, **{name: before[name] for name in ("peak_flops", "bandwidth") if name in before})
    now = json.loads(spec.to_json())
    changed = sorted(name for name in {*before, *now} - {"budget"} if before.get(name) != now.get(name))
    if changed:  # but for the budget: more time may be given
        raise UserMistake(f"the run in {out} was started with other {', '.join(changed)}; name another directory")
    return spec


def _child(out: Path) -> Path:
    """All that the run's processes may write: neither the journal nor the archive."""
    path = out / RUN / "child"
    path.mkdir(mode=0o700, exist_ok=True)
    return path


def _order(spec: RunSpec, out: Path, journal: DirectoryJournal, history: History) -> dict[str, Any]:
    known = out / RUN / KNOWN
    return tune_order(
        spec.to_json(),
        _child(out),
        checkpoint=history.checkpoint,
        measurements=history.measurements,
        slots=history.slots,
        spent=history.spent,
        clock=history.clock,
        keys=[operator["key"] for operator in _facts(journal)[0]],
        known=known if known.exists() else None,
    )


def _log(journal: DirectoryJournal, path: Path) -> Path:
    """The tuning log as the web writes it: a line a measurement, no checkpoints."""
    with path.open("w", encoding="utf-8") as file:
        for event in journal.events():
            event.pop("checkpoint", None)
            shared = {"kind": "measurement", "clock": event.get("clock"), "slot": event.get("slot")}
            rows = [{**shared, **measurement} for measurement in event.pop("measurements", ())]
            file.writelines(json.dumps(row, sort_keys=True, separators=(",", ":")) + "\n" for row in (*rows, event))
    return path


def _facts(journal: DirectoryJournal) -> tuple[list[dict[str, Any]], str]:
    operators: list[dict[str, Any]] = []
    layout = "auto"
    for event in journal.events():
        operators = event.get("operators", operators) if event["kind"] == "operators" else operators
        layout = event["layout"] if event["kind"] == "started" else layout
    return operators, layout
