"""A candidate's way from knobs to a runnable program, inside one process."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import tvm
from tvm.s_tir import Schedule, ScheduleError
from tvm.s_tir import meta_schedule as ms
from tvm.s_tir.analysis import estimate_tir_flops
from tvm.s_tir.meta_schedule.arg_info import ArgInfo
from tvm.s_tir.schedule import Trace
from tvm.s_tir.transform import RemoveWeightLayoutRewriteBlock
from tvm_ffi import structural_hash
from tvm_ffi.serialization import from_json_graph_str

from workers.engine.gpu import Bounds
from workers.engine.space import Sketch
from workers.messages.whole import write_whole
from workers.tvm_backend import layout_free, views
from workers.tvm_backend.groups import channels_of_a_group, length_of_a_row
from workers.tvm_backend.hardware import is_gpu, product_widths
from workers.tvm_backend.integers.instruction import at_once, uncounted
from workers.tvm_backend.linking import NoLinker, export_library
from workers.tvm_backend.lowering import PIPELINE
from workers.tvm_backend.mutation import is_float, tensor_bytes
from workers.tvm_backend.reads import divisors, looked_up
from workers.tvm_backend.repetition import MOST, steps
from workers.tvm_backend.rereading import READ_AGAIN
from workers.tvm_backend.soundness import has_sums_of_sums, repeats_a_sum
from workers.tvm_backend.traces import Family, Vectors, decided, families, read_back

LEVEL = 2  # of LLVM's optimisation, 0 to 3
COMMON_LEFT = {"tirx.disable_cse_tir": True}
"""TVM does not look for common subexpressions: LLVM does too, and numbers that lie together are no longer seen to."""
SEED = 1  # sampling instructions have all their decisions: nothing is drawn from it, but TVM wants one


class Invalid(Exception):
    """A configuration that TVM refuses to schedule, or schedules wrongly; the text is TVM's last line, or says what is."""


def without_views(spaces: Sequence[Schedule]) -> list[Schedule]:
    """Those of them that TVM takes without views; raises ScheduleError where it takes none."""
    found, refused = list[Schedule](), None
    for space in spaces:
        try:
            found.append(views.inlined(space))
        except ScheduleError as error:
            refused = error
    if refused is not None and not found:
        raise refused
    return found


@dataclass(frozen=True)
class Workload:
    """One operator as TVM sees it: `mod` holds its function under the name main; `traces` are its sketches."""

    mod: tvm.IRModule
    traces: tuple[Trace, ...]
    target: tvm.target.Target

    @classmethod
    def generate(cls, mod: tvm.IRModule, target: tvm.target.Target) -> Workload:
        """The design space TVM's rules for this target give; deterministic, its random decisions are not used."""
        spaces = _context(mod, target).generate_design_space()
        return cls(mod, tuple(space.trace.simplified(True) for space in without_views(spaces)), target)

    @cached_property
    def families(self) -> tuple[Family, ...]:
        if is_gpu(self.target):
            most = (int(self.target.attrs[f"max_{what}_per_block"]) for what in ("threads", "shared_memory"))
            return families(self.traces, 1, Vectors(None, 1), Bounds(*most))
        lanes = min(product_widths(self.target, self.at_once), default=1) if self.at_once > 1 else 1
        vectors = Vectors(channels_of_a_group(self.mod["main"]), lanes, length_of_a_row(self.mod["main"]))
        return families(self.traces, int(self.target.attrs["num-cores"]), vectors)

    @property
    def sketches(self) -> tuple[Sketch, ...]:
        return tuple(family.sketch for family in self.families)

    @cached_property
    def weights(self) -> tuple[int, ...]:
        """Places of the arguments that are constants of the network, whose layout a program may choose."""
        return tuple(int(place) for place in self.mod["main"].attrs.get(layout_free.ATTRIBUTE, ()))

    @cached_property
    def constants(self) -> tuple[tuple[int, int], ...]:
        """Places of the arguments that are constants of the network, and the bytes that it touches from one reading of each to
        the next; 0 where it reads it once."""
        places = layout_free.constants(self.mod["main"])
        again = self.mod["main"].attrs.get(READ_AGAIN) or [0] * len(places)
        return tuple((place, int(size)) for place, size in zip(places, again, strict=True))

    @cached_property
    def divisors(self) -> tuple[int, ...]:
        """Places of the arguments that whole numbers are divided by."""
        return divisors(self.mod["main"])

    @cached_property
    def below(self) -> int:
        """What whole numbers among its arguments are drawn below, as they may be indices and nobody checks them: the smallest
        size of what is looked up, or where that is not seen, of any tensor of numbers that is read, but for single ones. Were
        all of them 0, an embedding's rows came from the caches."""
        read = [shape for shape, dtype in self.tensors[:-1] if is_float(dtype) and math.prod(shape) > 1]
        tables = [self.tensors[place][0] for place in looked_up(self.mod["main"])] or read
        return max(1, min((size for shape in tables for size in shape), default=1))

    @property
    def reading(self) -> dict[str, Any]:
        """What `Arguments.of` has to know beside shapes and types, by its names."""
        return {name: getattr(self, name) for name in ("constants", "batch", "divisors", "below")}

    @cached_property
    def flops(self) -> float:
        """Of one call."""
        return float(estimate_tir_flops(self.mod)) + uncounted(self.mod["main"])

    @cached_property
    def at_once(self) -> int:
        """Products of whole numbers that an instruction adds up; 1 of others. So many times float32's peak is its ceiling."""
        return at_once(self.mod["main"])

    @cached_property
    def tensors(self) -> list[tuple[tuple[int, ...], str]]:
        """Shape and type of its arguments."""
        return argument_tensors(self.mod)

    @cached_property
    def held(self) -> int:
        """Bytes of all arguments."""
        return sum(tensor_bytes(*one) for one in self.tensors)

    @cached_property
    def touched(self) -> int:
        """Bytes that a call reads and writes: of a table, of which other tensors tell what is read, no more than is written."""
        sizes = [tensor_bytes(*one) for one in self.tensors]
        for place in looked_up(self.mod["main"]):
            sizes[place] = min(sizes[place], sizes[-1])
        return sum(sizes)

    @cached_property
    def batch(self) -> int:
        """Members of a batch of products with constant matrices, as Winograd's filtering makes it: what transforms its
        tiles, before and behind it, gives each core some tiles of every member. 1 for other operators."""
        shapes = [shape for shape, _ in self.tensors]
        # A signal's filters, too, have three axes.
        batches = [shapes[place][0] for place in self.weights if len(shapes[place]) == len(shapes[-1]) == 3]
        return next((size for size in batches if size == shapes[-1][0]), 1)

    @cached_property
    def sums_of_sums(self) -> bool:
        return has_sums_of_sums(self.mod["main"])

    @cached_property
    def steps(self) -> int:
        """See `repetition.steps`."""
        return steps(self.mod["main"])

    @cached_property
    def context(self) -> ms.TuneContext:
        """Must outlive the post-processors, which point into it."""
        return _context(self.mod, self.target)

    def schedule(self, sketch: int, choices: tuple[int, ...]) -> Schedule:
        """The scheduled program of a configuration; raises Invalid."""
        schedule = Schedule(self.mod, seed=SEED, debug_mask="none", error_render_level="none")
        trace = decided(self.families[sketch], choices)
        postprocs = self.context.space_generator.postprocs
        try:
            trace.apply_to_schedule(schedule, remove_postproc=True)
            schedule.enter_postproc()
            for postproc in postprocs:
                if not postproc.apply(schedule):
                    raise Invalid(f"{type(postproc).__name__} refused the program")
        except (Invalid, MemoryError):
            raise
        except Exception as error:  # TVM raises whatever its C++ throws
            *_, last = ["", *str(error).strip().splitlines()]
            raise Invalid(last[:300] or type(error).__name__) from None
        if self.sums_of_sums and repeats_a_sum(schedule.mod["main"]):
            raise Invalid("a sum within another's loops would be added up again and again")
        if not is_gpu(self.target) and steps(schedule.mod["main"]) > MOST * self.steps:
            raise Invalid(f"what is needed once would be computed over {MOST} times")
        return schedule

    def read_back(self, schedule: Schedule, sketch: int, asked: tuple[int, ...]) -> tuple[int, ...] | None:
        """The choices TVM really took, see `traces.read_back`."""
        return read_back(schedule.trace.simplified(True), self.families[sketch], asked)


def _context(mod: tvm.IRModule, target: tvm.target.Target) -> ms.TuneContext:
    return ms.TuneContext(
        mod=mod,
        target=target,
        space_generator=spaces(target).clone(),
        search_strategy="replay-trace",
        task_name="main",
        rand_state=SEED,
        num_threads=1,
    )


@lru_cache(maxsize=4)
def spaces(target: tvm.target.Target) -> ms.space_generator.PostOrderApply:
    """TVM's rules for this target, for contexts to take a copy of: they point into theirs."""
    if is_gpu(target):  # those of tensor cores, which newer GPUs' own have too, are for half precision
        return ms.space_generator.PostOrderApply(
            sch_rules=ms.ScheduleRule.create("cuda"),
            postprocs=ms.Postproc.create("cuda"),
            mutator_probs=ms.Mutator.create("cuda"),
        )
    stock = ms.TuneContext(
        tvm.IRModule(), target=target, space_generator="post-order-apply", num_threads=1
    ).space_generator
    return ms.space_generator.PostOrderApply(
        sch_rules=_in_one_order(stock.sch_rules), postprocs=stock.postprocs, mutator_probs=stock.mutator_probs
    )


def _in_one_order(rules: Sequence[Any]) -> list[Any]:
    """Rules under which the programs of an operator come in one order on all processors: with every rule TVM turns what those
    before it gave around, and with AVX-512 it has one more, for products of whole numbers. Elsewhere one is done twice."""
    tiling = [isinstance(rule, ms.schedule_rule.MultiLevelTiling) for rule in rules].index(True)
    of_integers = sum(isinstance(rule, ms.schedule_rule.MultiLevelTilingWithIntrin) for rule in rules)
    if of_integers % 2:
        return list(rules)
    again = [rule for rule in rules if isinstance(rule, ms.schedule_rule.InlineConstantScalars)]
    return [*rules[:tiling], *again, *rules[tiling:]]


def key_of(mod: tvm.IRModule) -> str:
    """What an operator is, independent of its name: TVM's structural hash."""
    return f"{structural_hash(mod) & (2**64 - 1):016x}"


def argument_tensors(mod: tvm.IRModule) -> list[tuple[tuple[int, ...], str]]:
    """Shape and type of every argument of the operator, outputs included."""
    return [
        (tuple(int(n) for n in info.shape), str(info.dtype))
        for info in ArgInfo.from_entry_func(mod, remove_preproc=True)
    ]


def quickly(target: tvm.target.Target) -> tvm.target.Target:
    """The same, compiled at LLVM's second level: a program takes 0.8 of the third's time to compile, and runs as fast."""
    if target.kind.name != "llvm":
        return target
    return tvm.target.Target({**target.export(), "opt-level": LEVEL})


def compile_programs(schedules: Sequence[Schedule], target: tvm.target.Target) -> list[Callable[..., None]]:
    """Machine code in this process, of all in one module: their entries, which keep it. Weight packing is left out: it is done
    once, when the network is compiled.

    So are the checks of the arguments, which are ours: they were an eighth of the time to compile; and TVM's search for common
    subexpressions, a twentieth, as LLVM finds them too. A module takes 10 to 17 ms besides what is in it, a ninth to a third of
    what a program takes alone.
    """
    names, built = _built(schedules, target)
    return [built[name] for name in names]  # machine code is made on the first look-up


class NotLinked(RuntimeError):
    """Programs that were compiled could not be made a library: none of theirs."""


def export_programs(schedules: Sequence[Schedule], target: tvm.target.Target, path: Path) -> list[str]:
    """The same as a library at `path`, for the device that `target` names: their names in it. Raises NoLinker and NotLinked."""
    names, built = _built(schedules, target)
    try:
        export_library(built, path, target)
    except NoLinker:
        raise
    except Exception as error:  # a full disk, no memory, no process: whatever the linker says
        raise NotLinked(str(error)) from error
    return names


def _built(schedules: Sequence[Schedule], target: tvm.target.Target) -> tuple[list[str], Any]:
    unpacked = RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True)
    names = [f"main{number}" for number in range(len(schedules))]
    programs = [unpacked(schedule.mod)["main"] for schedule in schedules]
    mod = tvm.IRModule(
        {name: program.with_attr("global_symbol", name) for name, program in zip(names, programs, strict=True)}
    )
    with target, tvm.transform.PassContext(config={"tirx.disable_assert": True, **COMMON_LEFT}):
        return names, tvm.tirx.build(mod, target=quickly(target), pipeline=PIPELINE)


def compile_program(schedule: Schedule, target: tvm.target.Target) -> Callable[..., None]:
    """The same of one."""
    return compile_programs([schedule], target)[0]


def save_workloads(workloads: list[Workload], path: Path) -> None:
    """Writes what a worker needs to rebuild the workloads, whole or not at all."""
    rows = [
        {"mod": tvm.ir.save_json(w.mod), "traces": [json.dumps(_plain(t.as_json())) for t in w.traces]}
        for w in workloads
    ]
    write_whole(path, json.dumps(rows))


def load_workloads(path: Path, target: tvm.target.Target) -> list[Workload]:
    """Inverse of `save_workloads`."""
    return [
        Workload(mod, tuple(_trace(mod, text) for text in row["traces"]), target)
        for row in json.loads(path.read_text())
        for mod in [from_json_graph_str(row["mod"])]  # tvm.ir.load_json looks first for what older versions wrote
    ]


def _trace(mod: tvm.IRModule, text: str) -> Trace:
    schedule = Schedule(mod, seed=SEED, debug_mask="none", error_render_level="none")
    Trace.apply_json_to_schedule(json.loads(text), schedule)
    return schedule.trace.simplified(True)


def _plain(value: Any) -> Any:
    """TVM's JSON objects as plain Python ones."""
    if isinstance(value, str | bytes) or value is None:
        return str(value) if value is not None else None
    if isinstance(value, bool | int | float):
        return value
    if hasattr(value, "items"):
        return {str(key): _plain(item) for key, item in value.items()}
    if hasattr(value, "__iter__"):
        return [_plain(item) for item in value]
    return int(value) if "Int" in type(value).__name__ else float(value)
