"""The tuning of one network: the pipeline over TVM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workers.child.heap import give_back
from workers.child.meaning import meaning
from workers.child.pulse import Pulse
from workers.child.turn import TurnLock
from workers.engine.known import Known, known_points
from workers.engine.methods import Method, method
from workers.engine.space import Operator
from workers.engine.thrift import Thrift
from workers.messages import knobs
from workers.messages.channel import ControlReader
from workers.messages.known import decode_known
from workers.messages.orders import best_of
from workers.messages.spec import ALL, AUTO, MEASURED, RunSpec
from workers.networks.check import load
from workers.networks.clean import clean
from workers.networks.precision import how_computed
from workers.pipeline import TuningLoop

if TYPE_CHECKING:
    from workers.tvm_backend.backend import LocalBackend
    from workers.tvm_backend.pool import Pool

PATIENCE = 600.0
"""s without an event until a tuning counts as hung; an import takes less."""
PROGRAM_PATIENCE = 20.0
"""s for each program of a plan: one that hangs is given up after ten, and its worker is replaced within some."""


class OtherVersion(ValueError):
    """A run cannot go on with what this version makes of its network."""

    next_step = "start another run; what this one found can still be read"


class NothingToTune(ValueError):
    """A network without what a run is of."""

    next_step = "tune all its operators"


def tune(order: dict[str, Any], control: ControlReader, pulse: Pulse) -> None:
    """An order of `messages.orders.tune_order`."""
    spec = RunSpec.from_json(order["spec"])
    chosen = method(spec.method, spec.parts, stored=True)
    pulse.patience = max(PATIENCE, PROGRAM_PATIENCE * chosen.rhythm.plan)
    backend, chosen = _backend(order, spec, chosen, pulse)
    give_back()
    try:
        operators = backend.operators()
        spaces = [meaning(operator.sketches, spec) for operator in operators]
        _check_same(order.get("operators", ()), operators, spaces)
        tuned = None if spec.operators == ALL else [operator.index for operator in operators if operator.computes]
        if tuned == []:
            raise NothingToTune("the network has no convolutions and matrix products to tune alone")
        known = _known(order, operators, spaces)
        rows = [_described(o, space, known.get(o.index)) for o, space in zip(operators, spaces, strict=True)]
        pulse.tell("operators", operators=rows)
        measurements, slots = order.pop("measurements", []), order.pop("slots", ())
        backend.take_up(best_of(measurements, rows))
        loop = TuningLoop(
            backend,
            chosen,
            spec.budget,
            spec.seed,
            spec.peak_flops,
            pulse.clock,
            pulse.emit,
            control.wanted,
            order.get("spent"),
            known,
            tuned,
        )
        whole = loop.resume(order.pop("checkpoint", None), consumed(measurements), slots)
        del measurements, slots
        give_back()
        if whole:  # or whoever wanted it to end knows why it says nothing
            pulse.clock.go()
            loop.run()
    finally:
        backend.close()


def consumed(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Each once, and not kept: of hours of tuning they are hundreds of megabytes, and so is what is made of them."""
    rows.reverse()
    while rows:
        yield rows.pop()


def _backend(order: dict[str, Any], spec: RunSpec, chosen: Method, pulse: Pulse) -> tuple[LocalBackend, Method]:
    """TVM, and the method with what only TVM can propose."""
    settled: list[str] = []
    if spec.layout == MEASURED and order.get("layout", AUTO) != AUTO:
        spec = replace(spec, layout=order["layout"])  # measured again, it might be another
        settled = [f"layout {spec.layout}: as this run began"]
    pulse.tell("phase", name="importing", text="loading TVM")
    # TVM's own modules import TVM: they come after its traps are dealt with.
    from workers.tvm_backend import runtime

    pool, caches = _pool(order, spec, chosen.rhythm.plan, pulse)
    try:
        runtime.load(spec.target)
        import tvm

        from workers.messages.cores import usable_cores
        from workers.tvm_backend.backend import LocalBackend, machine_of
        from workers.tvm_backend.evolutionary import Evolving
        from workers.tvm_backend.hardware import check_cores, check_processor
        from workers.tvm_backend.linking import check_tools
        from workers.tvm_backend.lowered import Lowering

        if not order.get("device"):
            check_processor(spec.target)
            check_cores(spec.threads)
        # Says now, not when the budget is spent, that no library could be made.
        check_tools(tvm.target.Target(spec.target))
        model = load(spec.network)
        notes = how_computed(model)
        model, report = clean(model, spec.inputs)
        backend = LocalBackend(
            pool,
            spec,
            model,
            chosen.evaluation,
            machine_of(spec.target, spec.threads, caches),
            Path(order["work_dir"]),
            lambda phase, text: pulse.tell("phase", name=phase, text=text),
            chosen.prepare,
        )
    except BaseException:
        pool.close()
        raise
    pulse.tell(
        "started",
        versions=runtime.versions(),
        threads=spec.threads,
        seed=spec.seed,
        layout=backend.layout,
        method=chosen.name,
        target=spec.target,
        notes=[*notes, *report, *backend.notes, *settled],
    )
    # TVM's search runs here, wherever its programs do.
    threads = usable_cores() if order.get("device") else spec.threads
    return backend, Evolving.over(Lowering.over(chosen, backend.workloads), backend.workloads, threads, spec.seed)


def _pool(order: dict[str, Any], spec: RunSpec, plan: int, pulse: Pulse) -> tuple[Pool, Sequence[int | None] | None]:
    """Workers for plans of that size, here or on the order's device, and of a device what it says of a core's caches."""
    from workers.tvm_backend.pool import Pool

    common = spec.target, spec.threads, TurnLock(pulse), Thrift(), plan
    if not order.get("device"):
        return Pool(*common), None
    from workers.tvm_backend.remote.line import call
    from workers.tvm_backend.remote.pool import DevicePool

    def say(text: str) -> None:
        pulse.tell("log", level="warning", text=text)

    pool = DevicePool(call, *common, say=say, waiting=pulse.waiting, name=order.get("machine", ""))
    return pool, pool.caches


def _known(order: dict[str, Any], operators: Sequence[Operator], spaces: Sequence[str]) -> dict[int, Known]:
    """What the order's file knows of these operators, measured in these spaces."""
    path = order.get("known")
    return known_points(decode_known(Path(path).read_text()), operators, spaces) if path else {}


def _check_same(began: Sequence[tuple[str, str]], operators: Sequence[Operator], spaces: Sequence[str]) -> None:
    """Raises OtherVersion where a run that `began` with operators of such keys and spaces would go on with others. A run of
    before operators told their space has none."""
    if not began:
        return
    if [key for key, _ in began] != [operator.key for operator in operators]:
        raise OtherVersion("the network's operators are not those this run was started with")
    if any(told and told != space for (_, told), space in zip(began, spaces, strict=True)):
        raise OtherVersion("its measurements were made by another version, which would read their choices otherwise")


def _described(operator: Operator, space: str, known: Known | None) -> dict[str, Any]:
    return {
        "index": operator.index,
        "name": operator.name,
        "key": operator.key,
        "weight": operator.weight,
        "flops": operator.flops,
        "bytes": operator.bytes,
        "work": operator.work,
        "at_once": operator.at_once,
        "sketches": [len(sketch.knobs) for sketch in operator.sketches],
        "knobs": [
            [knobs.told(knob.name, knob.kind, knob.options) for knob in sketch.knobs] for sketch in operator.sketches
        ],
        "configurations": float(operator.size),
        "space": space,
        "known": len(known.points) if known else 0,
        "alike": len(known.alike) if known else 0,
    }
