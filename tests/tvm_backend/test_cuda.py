"""Networks for a GPU, as far as a machine without one can tell: what TVM makes of their operators, and its sources."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests import zoo
from tests.networks.operators import OPERATORS
from tests.tvm_backend.local import checks
from workers.engine.gpu import Gpu
from workers.engine.space import Operator
from workers.engine.start import first_configurations
from workers.networks.check import load
from workers.networks.clean import cleaned
from workers.networks.inspect import inspect_model

pytestmark = pytest.mark.tvm

TARGET: dict[str, Any] = {
    "kind": "cuda", "arch": "sm_80", "max_threads_per_block": 1024, "max_shared_memory_per_block": 49152,
    "thread_warp_size": 32, "registers_per_block": 65536, "host": {"kind": "llvm", "num-cores": 2},
}  # fmt: skip
FIRST, DRAWN = 1, 2
NAMES = (
    "Conv, strided", "Conv, grouped", "Conv, depthwise", "Conv of a volume", "ConvTranspose", "Gemm", "attention's products",
    "Softmax", "LayerNormalization", "GlobalMaxPool", "MaxPool, rounded up", "Resize", "DepthToSpace", "LpPool",
)  # fmt: skip
BOUND = re.compile(r"T\.thread_binding\(((?:[^(),]|\([^()]*\))+), thread=\"[a-zA-Z.]+\"")
PIPELINED = re.compile(r", annotations=\{\"software_pipeline[^}]*\}")
"""Loops whose next inputs are fetched meanwhile: what they compute is the same."""
PLACED = re.compile(r", scope=\"(shared|local)\"")


@cache
def loaded() -> Any:
    from workers.tvm_backend import runtime

    runtime.load(TARGET)
    import tvm

    return tvm


def shapes_of(path: Path) -> dict[str, list[int]]:
    """Of its inputs, open sizes as 1."""
    return {
        port.name: [n if isinstance(n, int) else 1 for n in port.shape or ()]
        for port in inspect_model(load(str(path))).inputs
    }


def workloads_of(path: Path, layout: str = "auto") -> Any:
    """Of the network's operators on a GPU, and the layout."""
    tvm = loaded()
    from workers.tvm_backend.importer import import_network
    from workers.tvm_backend.operators import extract, with_spaces

    shapes = shapes_of(path)
    target = tvm.target.Target(TARGET)
    imported = import_network(cleaned(str(path), shapes), shapes, target, layout, 10.0)
    kept, workloads, left = with_spaces(extract(imported.mod, target), target)
    assert kept
    assert not left
    return workloads, imported.layout


def plain_of(workload: Any) -> Any:
    """Its reference on the processor."""
    tvm = loaded()
    from workers.tvm_backend.plain import Plain
    from workers.tvm_backend.programs import Workload

    return Plain(Workload(workload.mod, workload.traces, tvm.target.Target(TARGET["host"])))


def computes(plain: Any, workload: Any, sketch: int, choices: tuple[int, ...]) -> bool:
    """Whether the GPU's program does, run thread after thread: what they share each computes anew."""
    tvm = loaded()
    from tvm.script import ir, tirx

    from workers.tvm_backend.plain import _close

    text = workload.schedule(sketch, choices).mod.script()
    assert "thread_binding" in text
    serial = PLACED.sub("", BOUND.sub(r"T.serial(\1", PIPELINED.sub("", text)))
    assert "thread_binding" not in serial
    found = plain._run(tvm.script.from_source(serial, {"I": ir, "T": tirx}))
    return all(_close(wanted, found[place]) for place, wanted in plain._wanted.items())


@pytest.mark.parametrize("name", NAMES)
def test_a_gpus_programs_compute_their_operator(name: str, tmp_path: Path) -> None:
    path = tmp_path / "network.onnx"
    path.write_bytes(OPERATORS[name]().SerializeToString())
    rng = np.random.default_rng(0)
    from workers.tvm_backend.programs import Invalid

    for workload in workloads_of(path)[0]:
        plain, taken = plain_of(workload), 0
        first = [(one.sketch, one.choices) for one in first_configurations(workload.sketches, Gpu(16), FIRST)]
        drawn = [(0, tuple(row)) for row in workload.sketches[0].unvisited(rng, DRAWN, ()).tolist()]
        for sketch, choices in (*first, *drawn):
            try:
                assert computes(plain, workload, sketch, choices), (sketch, choices)
                taken += 1
            except Invalid:
                continue
        assert taken


@pytest.mark.mutation
def test_a_program_that_leaves_out_a_thread_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "network.onnx"
    path.write_bytes(OPERATORS["Gemm"]().SerializeToString())
    workload = max(workloads_of(path)[0], key=lambda one: one.flops)
    plain, (first, *_) = plain_of(workload), first_configurations(workload.sketches, Gpu(16), 1)
    assert computes(plain, workload, first.sketch, first.choices)
    fewer = re.compile(BOUND.pattern.replace("[a-zA-Z.]+", "threadIdx.x"))
    monkeypatch.setattr("tests.tvm_backend.test_cuda.BOUND", _Fewer(fewer))
    assert not computes(plain, workload, first.sketch, first.choices)


class _Fewer:
    """In place of BOUND: of the threads but one."""

    def __init__(self, threads: re.Pattern[str]) -> None:
        self._threads, self._all = threads, BOUND

    def sub(self, by: str, text: str) -> str:
        return self._all.sub(by, self._threads.sub(r"T.serial(\1 - 1", text))


@pytest.mark.parametrize(("layout", "least"), [("NHWC", 3), ("NCHW", 1)])
def test_first_configurations_are_such_as_the_gpu_takes(layout: str, least: int, tmp_path: Path) -> None:
    """TVM's check of threads and memory refuses few of those in NHWC, whose last axis is that of the weights."""
    from workers.tvm_backend.programs import Invalid

    workloads, taken = workloads_of(zoo.squeezenet(tmp_path), layout)
    assert taken == layout
    for workload in workloads:
        found, refused = first_configurations(workload.sketches, Gpu(132), 4), 0
        for one in found:
            try:
                schedule = workload.schedule(one.sketch, one.choices)
                assert workload.read_back(schedule, one.sketch, one.choices) == one.choices
            except Invalid:
                refused += 1
        assert len(found) - refused >= min(least, len(found))


def test_most_of_what_is_drawn_is_taken_and_little_of_what_is_not(tmp_path: Path) -> None:
    from workers.tvm_backend.programs import Invalid

    workload = max(workloads_of(zoo.tiny_residual(tmp_path))[0], key=lambda one: one.flops)
    sketch, rng = workload.sketches[0], np.random.default_rng(0)

    def share(rows: Any) -> float:
        taken = 0
        for row in rows.tolist():
            try:
                workload.schedule(0, tuple(row))
                taken += 1
            except Invalid:
                continue
        return taken / len(rows)

    assert share(sketch.unvisited(rng, 60, ())) > 0.5
    assert share(replace(sketch, bounds=None).random(rng, 60)) < 0.3


def test_tvms_own_search_begins_over_the_same_rules(tmp_path: Path) -> None:
    """Those for tensor cores, which TVM would take for this GPU, miss their instructions here."""
    from workers.engine.methods import method
    from workers.tvm_backend.evolutionary import Evolving

    workloads, _ = workloads_of(zoo.tiny_residual(tmp_path))
    index, workload = max(enumerate(workloads), key=lambda one: one[1].flops)
    start = first_configurations(workload.sketches, Gpu(16), 1)
    operator = Operator(index, "conv2d", "key", 1, 1e6, 1e6, 1e6, workload.sketches, start)
    proposer: Any = Evolving.over(method("metaschedule"), workloads, 2, 0).make_proposer(operator, 0)
    proposer._begin()
    assert len(proposer._context.generate_design_space()) == len(workload.traces)


def test_no_processors_rules_are_asked_of_a_gpu(tmp_path: Path) -> None:
    """A processor's layout-free weights, filtering and whole numbers."""
    workloads, _ = workloads_of(zoo.tiny(tmp_path))
    assert all(workload.weights == () for workload in workloads)
    assert all(workload.at_once == 1 for workload in workloads)


def test_headers_are_left_out_where_only_integers_are_named() -> None:
    from workers.tvm_backend.nvrtc import without_headers

    plain = """#ifdef __CUDACC_RTC__
  #include <cuda/std/cstdint>
  using cuda::std::int64_t;
#else
  #include <cstdint>
#endif
extern "C" __global__ void kernel(float* a) { a[0] = 1; }
"""
    lean = without_headers(plain)
    assert lean is not None
    assert "#include" not in lean
    assert "cuda::std" not in lean
    assert "typedef long long int64_t;" in lean
    assert lean.endswith(plain[plain.index("extern") :])
    assert without_headers(plain.replace("cstdint>", "cuda_fp16.h>", 1)) is None


def test_the_sources_of_a_network_need_no_headers(tmp_path: Path) -> None:
    tvm = loaded()
    from workers.tvm_backend.nvrtc import without_headers

    workload = max(workloads_of(zoo.tiny(tmp_path))[0], key=lambda one: one.flops)
    (first, *_) = first_configurations(workload.sketches, Gpu(16), 1)
    with workload.target:
        built = tvm.tirx.build(workload.schedule(first.sketch, first.choices).mod, target=workload.target)
    source = next(iter(built.imports)).inspect_source()
    assert "__global__" in source
    assert without_headers(source) is not None


def source_of(dtype: str, value: str) -> str:
    """Of a kernel that gives this `value` of each number of `a`, four at once."""
    tvm = loaded()
    from tvm.script import tirx

    lines = [
        "@T.prim_func(s_tir=True)",
        f"def main(a: T.Buffer((1024,), '{dtype}'), b: T.Buffer((1024,), '{dtype}')):",
        "    T.func_attr({'tirx.noalias': True})",
        "    for thread in T.thread_binding(256, thread='threadIdx.x'):",
        "        for lane in T.vectorized(4):",
        f"            b[thread * 4 + lane] = {value.replace('a[]', 'a[thread * 4 + lane]')}",
    ]
    main = tvm.script.from_source("\n".join(lines), {"T": tirx})
    with tvm.target.Target(TARGET) as target:
        built = tvm.tirx.build(tvm.IRModule({"main": main}), target=target)
    return str(next(iter(built.imports)).inspect_source())


@pytest.mark.parametrize(
    ("dtype", "value", "name"),
    [
        ("float32", "T.max(a[], T.float32('-inf'))", "CUDART_INF_F"),
        ("float32", "a[] + T.float32('nan')", "CUDART_NAN_F"),
        ("float64", "T.max(a[], T.float64('inf'))", "CUDART_INF"),
        ("float64", "a[] * T.float64('nan')", "CUDART_NAN"),
        ("int8", "a[] + T.int8(1)", "signed char"),
    ],
)
def test_what_is_not_finite_and_bytes_at_once_need_no_headers(dtype: str, value: str, name: str) -> None:
    """Those would take seconds, and TVM's own way fast math."""
    from workers.tvm_backend.nvrtc import without_headers

    source = source_of(dtype, value)
    assert name in source
    lean = without_headers(source)
    assert lean is not None
    assert "#include" not in lean
    assert lean.endswith(source[source.index("#ifdef _WIN32") :])
    assert {used for used in re.findall(r"CUDART_\w+", lean)} == set(re.findall(r"#define (CUDART_\w+) ", lean))


def test_products_of_bytes_at_once_keep_their_header() -> None:
    from workers.tvm_backend.nvrtc import without_headers

    source = source_of("int8", "a[] + T.int8(1)")
    assert "int __dp4a(" in source, "TVM declares some of its own"
    called = source.replace("  int __1;", "  int __1 = __dp4a(1, 2, 3);", 1)
    assert called != source
    assert without_headers(called) is None


def test_a_network_is_compiled_for_a_gpu_with_its_configurations(tmp_path: Path) -> None:
    """As far as its sources: a machine without NVIDIA's driver has nothing that makes code of them."""
    tvm = loaded()
    from workers.tvm_backend.importer import import_network
    from workers.tvm_backend.library import Network

    path = zoo.tiny_residual(tmp_path)
    shapes = shapes_of(path)
    target = tvm.target.Target(TARGET)
    network = Network.of(import_network(cleaned(str(path), shapes), shapes, target), target)
    best = {
        index: (first.sketch, first.choices, 1e-6)
        for index, workload in enumerate(network.workloads)
        for first in first_configurations(workload.sketches, Gpu(16), 1)
    }
    assert len(network.database(best).get_all_tuning_records()) == len(best)
    checked = checks(network.compiled(best))
    assert len(checked) > sum(checked.values()) >= 1, "what reads an input looks at it"


def test_the_compiler_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    from workers.tvm_backend import nvrtc

    def missing() -> Any:
        raise ModuleNotFoundError("No module named 'cuda'")

    monkeypatch.setattr(nvrtc, "_nvrtc", missing)
    with pytest.raises(nvrtc.NoCudaCompiler, match=r"no compiler for CUDA here .* pip install cuda-bindings"):
        nvrtc.check()

    def silent() -> Any:
        raise OSError

    monkeypatch.setattr(nvrtc, "_nvrtc", silent)
    with pytest.raises(nvrtc.NoCudaCompiler, match=r"here \(OSError\): \S+ -m pip install"):
        nvrtc.check()


def test_a_machine_that_builds_without_a_driver_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """TVM keeps sources there, which the archive's script cannot run; whether it does is asked of the compiler itself."""
    tvm = loaded()
    import tvm_ffi

    from workers.tvm_backend import nvrtc

    assert nvrtc.CREATE.encode() in Path(tvm.__file__).with_name("lib").joinpath("libtvm_compiler.so").read_bytes()
    monkeypatch.setattr(nvrtc, "CREATE", "nobody.makes.this")
    with pytest.raises(nvrtc.NoCudaCompiler, match="no NVIDIA driver with CUDA's runtime 13"):
        nvrtc.check_driver()
    tvm_ffi.register_global_func("nobody.makes.this", lambda: None, override=True)
    nvrtc.check_driver()


def test_a_gpus_target_is_that_of_the_host_it_hangs_on() -> None:
    from workers.tvm_backend.runtime import intrinsics_of

    assert intrinsics_of(TARGET | {"host": {"kind": "llvm", "mtriple": "aarch64-linux-gnu"}}) == "arm_cpu"


def test_what_is_timed_on_a_gpu_is_called_once_more_a_batch_and_not_a_run() -> None:
    """500 runs of a program of 12 ms take 6 s and not 12, after which a device's process is ended. Counted by the program
    itself, which TVM calls from a processor as from a GPU."""
    tvm = loaded()
    from tvm.script import tirx

    from workers.tvm_backend.cuda.timer import _Stopwatch

    @tirx.prim_func
    def counting(times: tirx.Buffer((1,), "int32")):  # type: ignore[no-untyped-def]
        times[0] = times[0] + 1

    module = tvm.compile(counting, "llvm")
    times = tvm.runtime.tensor(np.zeros(1, np.int32), tvm.cpu())

    def calls() -> int:
        return int(times.numpy()[0])

    stopwatch = _Stopwatch(lambda **how: module.mod.time_evaluator("counting", tvm.cpu(), **how), [times], 0.0, 0.0)
    assert calls() == 2
    assert len(stopwatch.runs(1)) == 1
    assert calls() == 4, "a quick first call is made again"
    assert len(stopwatch.runs(499)) == 499
    assert calls() == 4 + 1 + 499


@pytest.mark.parametrize("awake", [0.0, 0.05])
def test_a_short_program_is_not_rejected_for_how_long_its_start_takes(awake: float) -> None:
    """The interval of a single call begins with its start, 5 µs on an idle GPU."""
    from workers.engine.evaluator import FixedEvaluator
    from workers.tvm_backend.cuda.timer import _Stopwatch
    from workers.tvm_backend.stopwatch import timed

    faster, incumbent, start, evaluator = 0.8, 3e-6, 5e-6, FixedEvaluator()

    def entry(number: int, repeat: int) -> Any:
        return lambda: SimpleNamespace(results=[faster * incumbent + start / number] * repeat)

    stopwatch = _Stopwatch(entry, (), awake, evaluator.shortest)
    times, stopped = timed(stopwatch, evaluator, incumbent)
    assert stopped == "complete"
    assert evaluator.estimate(times)[0] == pytest.approx(faster * incumbent, rel=0.1)


def test_what_takes_long_on_a_gpu_is_called_once_until_it_is_rejected() -> None:
    from workers.engine.evaluator import FixedEvaluator
    from workers.tvm_backend.cuda.timer import _Stopwatch
    from workers.tvm_backend.stopwatch import timed

    made = []

    def entry(number: int, repeat: int) -> Any:
        made.append((number, repeat))
        return lambda: SimpleNamespace(results=[0.06] * repeat)

    evaluator = FixedEvaluator()
    assert timed(_Stopwatch(entry, (), 0.05, evaluator.shortest), evaluator, 1e-3) == ([0.06], "rejected")
    assert made == [(1, 1)]


def test_a_peak_is_taken_once_the_clock_of_the_gpu_is_up() -> None:
    loaded()
    from workers.tvm_backend.cuda.peak import REPEATS, _quickest
    from workers.tvm_backend.cuda.timer import AWAKE

    worked, made = 0.0, []

    def entry(number: int, repeat: int) -> Any:
        def call(*arguments: str) -> Any:
            nonlocal worked
            seconds = 1e-3 if worked < AWAKE else 5e-4
            worked += seconds * number * repeat
            made.append((repeat, arguments))
            return SimpleNamespace(results=[seconds] * repeat)

        return call

    assert _quickest(entry, "source", "sink") == 5e-4
    assert made == [(repeat, ("source", "sink")) for repeat in (1, 1, REPEATS)]
