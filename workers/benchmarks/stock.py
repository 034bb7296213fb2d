"""One run of TVM's own `tune_relax` in a process of its own: a JSON order on standard input, events on standard output.

The arm "stock" calls it as a user would. The arm "warm" gives it builders that stay, and imports the target's tensor
intrinsics only; search, runner, cost model and database are the same. The clock begins before TVM is imported and stops
when the search ends, as the clock of our own runs does; compiling the network is on neither.

operators  {operators, trials}: how many there are, and how many configurations will be tried
batch      {clock, latency | null, measured, operators, trials, failures}
result     {seconds, curve, trials, failures, operators, missing: names without a valid record,
           errors: {text: how often} of the most common ones, compiled, layout, notes}
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workers.benchmarks.part import Tell, answer, leave
from workers.messages.spec import RunSpec
from workers.sandbox.lock import MeasureLock

if TYPE_CHECKING:
    from workers.networks.inspect import Inspection
    from workers.tvm_backend.importer import Imported

BUILD_TIMEOUT = 120.0
"""Seconds. TVM's default of 30 may not even do for the import that every batch begins with; who did not finish is no peer."""
BATCH = 64
"""Configurations between two looks at what was learned: TVM's default, or all of an operator's when they are fewer."""


class Observed:
    """The best latency of each operator, as TVM's measure callback learns them."""

    def __init__(self, tell: Tell, clock: Callable[[], float]) -> None:
        self._tell, self._clock = tell, clock
        self.best: dict[int, float] = {}
        self.weights: list[float] = []
        self.names: list[str] = []
        self.pairs: list[tuple[float, float | None]] = []
        self.trials = self.failures = 0
        self.errors: Counter[str] = Counter()

    def take(self, tasks: Any, operator: int, results: Any) -> None:
        """One batch of one operator, as soon as it was run."""
        if not self.weights:
            self.weights = [float(task.task_weight) for task in tasks]
            self.names = [str(task.ctx.task_name) for task in tasks]
        for result in results:
            self.trials += 1
            if result.run_secs is None or result.error_msg is not None:
                self.failures += 1
                self.errors[" ".join(str(result.error_msg).split())[:200]] += 1
                continue
            seconds = [float(second) for second in result.run_secs]
            self.best[operator] = min(self.best.get(operator, float("inf")), sum(seconds) / len(seconds))
        self.pairs.append((self._clock(), self.latency))
        self._tell(
            {
                "kind": "batch",
                "clock": self.pairs[-1][0],
                "latency": self.latency,
                "measured": len(self.best),
                "operators": len(self.weights),
                "trials": self.trials,
                "failures": self.failures,
            }
        )

    @property
    def latency(self) -> float | None:
        """Weighted sum, None while an operator has no valid measurement."""
        if len(self.best) < len(self.weights):
            return None
        return sum(self.weights[operator] * seconds for operator, seconds in self.best.items())

    @property
    def missing(self) -> list[str]:
        """Operators without a valid measurement."""
        return [name for operator, name in enumerate(self.names) if operator not in self.best]


def search(order: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Tunes, and compiles into order["folder"] when every operator has a record; the result event."""
    spec = RunSpec.from_json(order["spec"])
    with MeasureLock().exclusive():
        began = time.monotonic()
        observed = Observed(tell, lambda: time.monotonic() - began)
        warm = order["arm"] == "warm"
        if warm:
            from workers.tvm_backend import runtime

            runtime.load(spec.target)
        # TVM's import is on the clock.
        import tvm

        target = tvm.target.Target(spec.target)
        module, network = imported(order, spec, target)
        database = _tuned(order, spec, module, target, observed, warm, tell)
        seconds = time.monotonic() - began
        compiled = bool(observed.weights) and not observed.missing
        if compiled:
            _compile(order, spec, module, network, database, target)
    return {
        "seconds": seconds,
        "curve": observed.pairs,
        "trials": observed.trials,
        "failures": observed.failures,
        "operators": len(observed.weights),
        "missing": observed.missing,
        "errors": dict(observed.errors.most_common(3)),
        "compiled": compiled,
        "layout": module.layout,
        "notes": list(module.notes),
    }


def imported(order: dict[str, Any], spec: RunSpec, target: Any) -> tuple[Imported, Inspection]:
    """The module our own runs tune ("same"), or what a user would hand to TVM ("free"); and the network it was made of, which
    is looked at in some milliseconds."""
    from workers.networks.inspect import inspect_model
    from workers.tvm_backend.importer import Imported, import_network

    if order["layout"] == "same":
        from workers.networks.clean import cleaned

        model = cleaned(spec.network, spec.inputs)
        return import_network(model, spec.inputs, target, spec.layout, spec.balance), inspect_model(model)
    import onnx
    import tvm
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    model = onnx.load(spec.network)
    mod = from_onnx(model, shape_dict=spec.inputs, keep_params_in_input=False)
    # The passes of TVM's static_shape_tuning pipeline before its search.
    passes = [
        relax.transform.DecomposeOpsForInference(),
        relax.transform.CanonicalizeBindings(),
        relax.get_pipeline("zero"),
    ]
    with target:
        return Imported(tvm.transform.Sequential(passes)(mod), "NCHW", ()), inspect_model(model)


def _tuned(
    order: dict[str, Any], spec: RunSpec, module: Any, target: Any, observed: Observed, warm: bool, tell: Tell
) -> Any:
    from tvm.s_tir import meta_schedule as ms
    from tvm.s_tir.meta_schedule.relax_integration import extract_tasks, tune_relax

    from workers.benchmarks.stock_runner import arguments

    # TVM needs the number of trials beforehand; it extracts the operators again itself.
    operators, trials = len(extract_tasks(module.mod, target)), int(order["trials"])
    tell({"kind": "operators", "operators": operators, "trials": operators * trials})
    builder: Any
    if warm:
        from workers.benchmarks.warm_builder import WarmBuilder

        builder = WarmBuilder(spec.threads, spec.target, BUILD_TIMEOUT)
    else:
        # TVM would start one a processor of the host, whatever this process may use.
        builder = ms.builder.LocalBuilder(max_workers=spec.threads, timeout_sec=BUILD_TIMEOUT)
    try:
        return tune_relax(
            module.mod,
            {},
            target,
            work_dir=order["work_dir"],
            max_trials_global=operators * trials,
            max_trials_per_task=trials,
            num_trials_per_iter=min(BATCH, trials),
            builder=builder,
            runner=ms.runner.LocalRunner(f_alloc_argument=arguments),
            measure_callbacks=[_callback(ms, observed), *ms.MeasureCallback.create("default")],
            seed=spec.seed,
        )
    finally:
        if warm:
            builder.close()


def _callback(ms: Any, observed: Observed) -> Any:
    from tvm.ir.utils import derived_object

    class Watch(ms.measure_callback.PyMeasureCallback):  # type: ignore[misc]
        def apply(self, task_scheduler: Any, task_id: Any, candidates: Any, builds: Any, results: Any) -> None:
            observed.take(task_scheduler.tasks_, int(task_id), results)

    return derived_object(Watch)()


def _compile(
    order: dict[str, Any], spec: RunSpec, module: Imported, network: Inspection, database: Any, target: Any
) -> None:
    import tvm
    from tvm import relax

    from workers.child.archive import describe
    from workers.tvm_backend.library import compile_network
    from workers.tvm_backend.linking import export_library

    folder = Path(order["folder"])
    folder.mkdir(parents=True, exist_ok=True)
    if order["layout"] == "same":
        executable = compile_network(module, database, target, target)
    else:
        with target, database:
            executable = tvm.compile(relax.transform.MetaScheduleApplyDatabase(enable_warning=True)(module.mod), target)
    export_library(executable, folder / "model.so")
    describe(order["name"], spec, module.layout, folder, network)


if __name__ == "__main__":
    leave(answer(search))
