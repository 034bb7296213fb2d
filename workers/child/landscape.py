"""Recording a landscape: measurements for replays, and what the parts of methods cost on this machine."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from workers.child.pulse import Pulse
from workers.child.turn import TurnLock
from workers.engine.methods import Method, method
from workers.engine.thrift import Thrift
from workers.landscapes.calibration import calibrate
from workers.landscapes.costs import COSTS
from workers.landscapes.recorder import EVALUATION, Watch, curves_of, record_curves, record_spaces, spaces_of
from workers.messages.channel import ControlReader
from workers.messages.sources import hashed
from workers.messages.spec import RunSpec
from workers.networks.clean import cleaned

WORKERS = Path(__file__).resolve().parents[1]
TELL_EVERY = 2.0
PATIENCE = 3600.0
"""s without an event until a recording counts as hung; timing the parts of every method tells nothing meanwhile."""


def record_landscape(order: dict[str, Any], control: ControlReader, pulse: Pulse) -> None:
    """An order: {kind: "curve" | "space" | "costs", work_dir, hardware} and, for the first two, {spec, name, network,
    trials, seeds, operators, configurations, made: by which words}.

    Curves leave uncompiled what a run would (`Thrift`), so that a recorded search costs what one of a run does; every
    configuration of a space is compiled. The recording's header says which ("thrift").

    The result: {kind, path: of what was made, beneath work_dir; null when stopped before it was whole}.
    """
    pulse.patience, work = PATIENCE, Path(order["work_dir"])
    if order["kind"] == "costs":
        path: Path | None = (costs := work / COSTS)
        pulse.tell("phase", name="recording", text="timing the parts of every method")
        with TurnLock(pulse).exclusive():
            calibrate(order["hardware"]["name"]).write(costs)
    else:
        path = _recorded(
            order, work, Watch(_paced(pulse), lambda: control.wanted() == "continue", time.monotonic), pulse
        )
    pulse.tell("result", task="landscape", landscape=order["kind"], path=None if path is None else str(path))


def _recorded(order: dict[str, Any], work: Path, watch: Watch, pulse: Pulse) -> Path | None:
    spec = RunSpec.from_json(order["spec"])
    chosen = method(spec.method, spec.parts)
    parts, path = work / f"parts-{_code(chosen)}", work / f"{order['name']}.{order['kind']}.npz"
    header = {
        "network": order["network"],
        "method": chosen.name,
        "peak_flops": spec.peak_flops,
        "threads": spec.threads,
        "hardware": order["hardware"],
        "thrift": order["kind"] == "curve",
        "made": order["made"],
    }
    if order["kind"] == "curve":
        make = _backends(spec, chosen, work, pulse, Thrift)
        if not record_curves(make, chosen, order["seeds"], order["trials"], parts, watch):
            return None
        curves_of(parts, order["seeds"], {**header, **_versions()}).write(path)
        return path
    timing = replace(chosen, evaluator=EVALUATION[0], parameters={**chosen.parameters, "evaluator": EVALUATION[1]})
    make = _backends(spec, timing, work, pulse)
    count, size = order["operators"], order["configurations"]
    operators = record_spaces(make, chosen, count, size, parts, watch, spec.seed)
    if operators is None:
        return None
    spaces_of(parts, operators, count, size, {**header, **_versions()}).write(path)
    return path


def _backends(
    spec: RunSpec, chosen: Method, work: Path, pulse: Pulse, thrift: Callable[[], Thrift | None] = lambda: None
) -> Callable[[], Any]:
    """Makes fresh backends, one at a time, each with a `thrift` of its own."""
    pulse.tell("phase", name="importing", text="loading TVM")
    # TVM's own modules import TVM: they come after its traps are dealt with.
    from workers.tvm_backend import runtime

    runtime.load(spec.target)
    from workers.tvm_backend.backend import LocalBackend, machine_of
    from workers.tvm_backend.pool import Pool

    def make() -> LocalBackend:
        return LocalBackend(
            Pool(spec.target, spec.threads, TurnLock(pulse), thrift()),
            spec,
            cleaned(spec.network, spec.inputs),
            chosen.evaluation,
            machine_of(spec.target, spec.threads),
            work,
            lambda phase, text: pulse.tell("phase", name=phase, text=text),
        )

    return make


def _code(chosen: Method) -> str:
    """Eight digits of what decides and makes programs: parts that other code or another method made are not gone on with."""
    digest = hashed(WORKERS, ("engine", "landscapes", "networks", "tvm_backend"))
    digest.update((chosen.definition + json.dumps(_versions(), sort_keys=True)).encode())
    return str(digest.hexdigest()[:8])


def _versions() -> dict[str, Any]:
    from workers.tvm_backend import runtime

    return {"versions": runtime.versions()}


def _paced(pulse: Pulse) -> Callable[[str], None]:
    due = 0.0

    def tell(text: str) -> None:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + TELL_EVERY
            pulse.tell("phase", name="recording", text=text)

    return tell
