"""TVM's own EvolutionarySearch as the inner search of this product's loop.

It thinks in traces: what it proposes is read back as knobs, so that the pool builds and times it as it does every
candidate; what came of it goes to TVM's own database and cost model (boosted trees on the loops of each program, one for
all operators).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm.ir.utils import derived_object
from tvm.s_tir import Schedule
from tvm.s_tir import meta_schedule as ms
from tvm.s_tir.meta_schedule.arg_info import ArgInfo
from tvm.s_tir.meta_schedule.cost_model import XGBModel
from tvm.s_tir.meta_schedule.cost_model.xgb_model import XGBConfig
from tvm.s_tir.meta_schedule.runner import RunnerResult
from tvm.s_tir.meta_schedule.search_strategy import MeasureCandidate
from tvm.s_tir.schedule import Instruction, Trace
from tvm.tirx import IntImm

from workers.engine.checkpoint import pack_candidates, unpack_candidates
from workers.engine.explorer.evolutionary import METASCHEDULE
from workers.engine.history import History
from workers.engine.known import NOTHING, Known
from workers.engine.methods import Method
from workers.engine.ports import KNOWN, Candidate, Outcome, Proposer, State
from workers.engine.search import COUNTERS
from workers.engine.space import Configuration, Operator
from workers.messages.causes import INVALID, UNBUILT
from workers.messages.composition import EVOLVING
from workers.tvm_backend.hardware import is_gpu
from workers.tvm_backend.programs import Invalid, Workload, spaces, without_views
from workers.tvm_backend.traces import annotation, offered, read_back

MOST = 2**30
ROUNDS = 4
"""Times TVM is asked again when nothing that it proposed was new."""
FAILED = 1e10  # s: what TVM records for a program that did not run


@derived_object
class SeededXGBModel(XGBModel._cls):  # type: ignore[misc]
    """TVM's boosted trees with the run's luck: its own draw the scores of the first 100 programs from numpy's global
    generator, and those of the trees from a constant seed."""

    def __init__(self, seed: int, threads: int) -> None:
        super().__init__(config=XGBConfig(seed=seed), num_tuning_cores=threads)
        self._rng = np.random.default_rng(seed)

    def predict(self, context: Any, candidates: list[MeasureCandidate]) -> NDArray[np.float64]:
        """Scores of `candidates`; drawn from [0, 1) until there is enough to learn from."""
        if self.data_size >= self.num_warmup_samples and self.booster is not None:
            found: NDArray[np.float64] = super().predict(context, candidates)
            return found
        return self._rng.uniform(size=len(candidates))


@dataclass(frozen=True)
class Evolving(Method):
    """A method whose operators are searched by TVM's strategy: its explorer, sampler and cost model are not asked."""

    workloads: tuple[Workload, ...] = ()
    threads: int = 1
    model: Any = None

    @classmethod
    def over(cls, method: Method, workloads: Sequence[Workload], threads: int, seed: int) -> Method:
        """`method` itself when it has another explorer."""
        if method.explorer != EVOLVING:
            return method
        model = SeededXGBModel(seed, threads)
        return cls.extending(method, workloads=tuple(workloads), threads=threads, model=model)

    def make_proposer(self, operator: Operator, seed: int, known: Known = NOTHING, *rest: Any) -> Proposer:
        """See `Method`; what earlier runs found is measured again where it was fastest, and teaches nothing."""
        workload = self.workloads[operator.index]
        settings = Settings(
            seed, self.rhythm.plan, self.threads, {**METASCHEDULE, **self.parameters.get("explorer", {})}
        )
        return EvolutionaryProposer(operator, workload, settings, self.model, known)


@dataclass(frozen=True)
class Settings:
    """`numbers` by the names of `explorer.evolutionary.Evolutionary`; only those that TVM's search has too are taken."""

    seed: int
    plan: int
    threads: int
    numbers: Mapping[str, Any]

    @property
    def strategy(self) -> Any:
        population = int(self.numbers["population"])
        return ms.search_strategy.EvolutionarySearch(
            population_size=population,
            init_measured_ratio=self.numbers["measured"],
            init_min_unmeasured=min(50, population // 2),
            genetic_num_iters=self.numbers["generations"],
            genetic_mutate_prob=self.numbers["mutation"],
        )


class EvolutionaryProposer:
    """See `Proposer`. First come the operator's start configurations, as in every method.

    TVM keeps its population and random states to itself: a resumed run knows all that was measured and goes on with
    other luck.
    """

    def __init__(
        self, operator: Operator, workload: Workload, settings: Settings, model: Any, known: Known = NOTHING
    ) -> None:
        self.operator, self._workload, self._model = operator, workload, model
        self._history = History(operator)
        self._starts, self._proven = known.tried_first(operator.start), frozenset(known.starts)
        self._shapes = {
            shape_of(trace): (number, which)
            for number, family in enumerate(workload.families)
            for which, trace in enumerate(family.traces)
        }
        self._settings = settings
        self._context: Any = None
        self._ready: list[Candidate] = []
        self._again: list[Candidate] = []
        self._waiting: dict[Configuration, Candidate] = {}
        self._made: dict[Configuration, Schedule] = {}
        self._observed: list[Outcome] = []
        self._over = False
        self.counters: dict[str, float] = dict.fromkeys(COUNTERS, 0)

    @property
    def best(self) -> Outcome | None:
        return self._history.best

    @property
    def exhausted(self) -> bool:
        return self._over and not self._again and not self._ready and not self._unused_starts()

    @property
    def settled(self) -> Collection[str]:
        """None: TVM's search knows of no earlier run, and is not to be kept from what was good there."""
        return ()

    def propose(self, count: int) -> list[Candidate]:
        """At most `count` new candidates; none when `exhausted`."""
        plan, self._again = self._again[:count], self._again[count:]
        counted = len(plan)  # before what ended their attempt
        for start in self._unused_starts()[: count - len(plan)]:
            plan.append(self._new(start, KNOWN) if start in self._proven else self._new(start, "start"))
        while len(plan) < count:
            if not self._ready and not self._evolved():
                break
            more = count - len(plan)
            plan, self._ready = plan + self._ready[:more], self._ready[more:]
        self._waiting |= {candidate.configuration: candidate for candidate in plan}
        self.counters["proposed"] += len(plan) - counted
        return plan

    def borrowed(self, most: int) -> list[Candidate]:
        """None: TVM's search knows no twins."""
        return []

    def observe(self, outcomes: Sequence[Outcome]) -> None:
        """Kept until TVM is asked again: its model learns from batches."""
        for outcome in outcomes:
            self._waiting.pop(outcome.candidate.configuration, None)
            self._history.add(outcome)
            self._again = [c for c in self._again if c.configuration != outcome.candidate.configuration]
        self._observed += outcomes

    def state(self) -> State:
        waiting = pack_candidates([*self._again, *self._waiting.values(), *self._ready])
        # What TVM had ready is asked for first after a resumption, and is counted no more then.
        counters = {**self.counters, "proposed": self.counters["proposed"] + len(self._ready)}
        return {"waiting": waiting, "counters": counters}

    def restore(self, state: State) -> None:
        self._again = unpack_candidates(self.operator.index, state["waiting"])
        for candidate in self._again:
            self._history.visit(candidate.configuration)
        self.counters.update(state["counters"])

    def _evolved(self) -> bool:
        """Fills `_ready` with what TVM proposes; False when it has nothing new."""
        self._begin()
        self._learn()
        for _ in range(ROUNDS):
            candidates = None if self._over else self._context.generate_measure_candidates()
            if not candidates:
                break
            self.counters["walks"] += 1
            for candidate in candidates:
                self._take(candidate.sch)
            # TVM counts by what it is told: all of a batch are told of at once, the times come with the next lesson.
            self._context.notify_runner_results(candidates, [RunnerResult(None, "") for _ in candidates])
            if self._ready:
                return True
        self._over = True
        return False

    def _take(self, schedule: Schedule) -> None:
        trace = schedule.trace.simplified(True)
        configuration = self._configuration(trace)
        if configuration is None or self._history.is_visited(configuration):
            self.counters["unmapped" if configuration is None else "duplicates"] += 1
            return
        if offered(trace, self._workload.families[configuration.sketch]):  # else what is timed is another program
            self._made[configuration] = schedule
        self._ready.append(self._new(configuration, "explorer"))

    def _configuration(self, trace: Trace) -> Configuration | None:
        """None for a program that no knobs stand for: a number of parallel pieces that the knob does not offer."""
        place = self._shapes.get(shape_of(trace))
        if place is None:
            return None
        number, which = place
        choices = read_back(trace, self._workload.families[number], (which,))
        return None if choices is None else Configuration(number, choices)

    def _begin(self) -> None:
        """TVM's side of the search, made when it is first asked."""
        if self._context is not None:
            return
        settings, target = self._settings, self._workload.target
        self._context = ms.TuneContext(
            mod=self._workload.mod,
            target=target,
            space_generator=spaces(target).clone() if is_gpu(target) else "post-order-apply",
            search_strategy=settings.strategy,
            task_name=self.operator.name,
            rand_state=1 + (1009 * settings.seed + self.operator.index) % (2**31 - 2),
            num_threads=settings.threads,
        )
        # TVM draws up its own, with the views that ours are without: what it proposed would be no program of these.
        made = without_views(self._context.generate_design_space())
        self._database = ms.database.MemoryDatabase()
        self._record = self._database.commit_workload(self._workload.mod)
        self._context.pre_tuning(MOST, settings.plan, made, self._database, self._model)

    def _learn(self) -> None:
        """Gives what was observed to the database and the cost model."""
        fresh, self._observed = self._observed, []
        candidates, results = [], []
        for outcome in fresh:
            schedule = self._schedule(outcome)
            if schedule is None:
                continue
            arguments = ArgInfo.from_entry_func(schedule.mod, remove_preproc=True)
            times = [outcome.seconds or FAILED]
            self._database.commit_tuning_record(
                ms.database.TuningRecord(schedule.trace, self._record, times, self._workload.target, arguments)
            )
            candidates.append(MeasureCandidate(schedule, arguments))
            results.append(RunnerResult(times, None) if outcome.seconds else RunnerResult(None, outcome.cause))
        if candidates:
            self._model.update(self._context, candidates, results)
            self.counters["fits"] += 1

    def _schedule(self, outcome: Outcome) -> Schedule | None:
        """The program of an outcome; None for what made none, or the same once more."""
        asked = outcome.candidate.configuration
        made = self._made.pop(asked, None)
        if outcome.cause in (*UNBUILT, INVALID) or outcome.candidate.round > 0:
            return None
        try:
            return made or self._workload.schedule(asked.sketch, asked.choices)
        except Invalid:
            return None

    def _new(self, configuration: Configuration, origin: str) -> Candidate:
        self._history.visit(configuration)
        self.counters[origin] += 1
        return Candidate(self.operator.index, configuration, origin)

    def _unused_starts(self) -> list[Configuration]:
        return self._history.unvisited(self._starts)


def shape_of(trace: Trace) -> str:
    """A trace without its decisions and without the values of annotations that are knobs: which design space it is of."""
    return str(Trace([_blank(inst) if annotation(inst) else inst for inst in trace.insts], {}))


def _blank(inst: Any) -> Instruction:
    return Instruction(inst.kind, [inst.inputs[0], IntImm("int32", 0)], inst.attrs, inst.outputs)
