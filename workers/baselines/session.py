"""ONNX Runtime in this process, for references and for latency comparisons that take turns with another library."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnx import ModelProto
from onnxruntime.capi import onnxruntime_pybind11_state as states

from workers.baselines.order import WARM_UP
from workers.networks.precision import multiplies_computed_integers

Arrays = Mapping[str, NDArray[Any]]
REFUSALS: tuple[type[Exception], ...] = (
    states.Fail,
    states.InvalidArgument,
    states.InvalidGraph,
    states.NotImplemented,
)
"""Of networks that it does not load."""
_PLACE = re.compile(
    r"^\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : (Load model from .*? failed:)?(/onnxruntime_src/\S+ .*?\) (?=[A-Z]))?"
)
"""Before its words: of what kind they are, the file, and where in its sources."""
_UNCLIPPED, _AS_DEFINED = "session.x64quantprecision", "session.disable_quant_qdq"
_EXACT = ((_UNCLIPPED,), (_UNCLIPPED, _AS_DEFINED), (_AS_DEFINED,), ())
"""What an exact session is told, and then what it is told where ONNX Runtime does not load the network so: it makes weights of
int8 uint8, which fails for those that two products read, and with a factor of int8, for which it then has no kernel."""


class OnnxRuntimeSession:
    """A loaded network with all graph optimisations, on `threads` threads that spin between operators (the default).

    `sizes` says what the dynamic dimensions of the inputs are, by their names: what depends on nothing else is then worked
    out before the first run, as in a network that is compiled for these sizes. `exact`: sums of products of integers are never
    clipped. Without it they are, on processors without VNNI (two products of 8 bits are added in 16), which is faster and
    wrong: outputs of small networks were 56 quantisation steps off. Products of two computed tensors are so all the same:
    networks that have some are computed in real numbers between DequantizeLinear and QuantizeLinear, as these are defined.
    Others are not: what real sums round otherwise grows through the layers, to 60 % of a ResNet-50's outputs.

    `defined`: operator by operator, as ONNX defines them and without optimisations. ONNX Runtime's kernel for a Softmax of
    whole numbers is five steps off what it stands for.

    Call `time` only after `bind`. The clock may be replaced in tests.
    """

    def __init__(
        self,
        network: str | Path | bytes,
        threads: int,
        clock: Callable[[], float] = time.perf_counter,
        sizes: Mapping[str, int] | None = None,
        exact: bool = False,
        defined: bool = False,
    ) -> None:
        source = network if isinstance(network, bytes) else str(network)
        self._session = _loaded(source, threads, sizes or {}, _ways(source, exact), not defined)
        self._names = [output.name for output in self._session.get_outputs()]
        self._wanted = {port.name: port for port in self._session.get_inputs()}
        self._clock = clock
        self._inputs: dict[str, NDArray[Any]] | None = None

    def run(self, inputs: Arrays) -> dict[str, NDArray[Any]]:
        """Outputs by name; inputs the network does not have are left out, as weights listed as inputs are, and those it has and
        never reads are zeros: it demands them all the same."""
        results = self._session.run(self._names, self._given(inputs))
        return dict(zip(self._names, (np.asarray(result) for result in results), strict=True))

    def bind(self, inputs: Arrays, warm_up: float = WARM_UP) -> None:
        """Sets the inputs that `time` uses and runs them for `warm_up` seconds, at least once."""
        self._inputs = self._given(inputs)
        end = self._clock() + warm_up
        self._session.run(self._names, self._inputs)
        while self._clock() < end:
            self._session.run(self._names, self._inputs)

    def time(self, n: int, longest: float = math.inf) -> NDArray[np.float64]:
        """Seconds of each of `n` runs, the library's call alone, or of fewer, but one, once `longest` seconds are over.
        Raises RuntimeError before `bind`."""
        if self._inputs is None:
            raise RuntimeError("no inputs are bound; call bind(inputs) first")
        seconds: list[float] = []
        end = self._clock() + longest
        while len(seconds) < n and not (seconds and self._clock() >= end):
            began = self._clock()
            self._session.run(self._names, self._inputs)
            seconds.append(self._clock() - began)
        return np.asarray(seconds)

    def _given(self, inputs: Arrays) -> dict[str, NDArray[Any]]:
        return {name: inputs[name] if name in inputs else _unread(port) for name, port in self._wanted.items()}


def _ways(source: str | bytes, exact: bool) -> Sequence[Sequence[str]]:
    if not exact:
        return _EXACT[-1:]
    model = ModelProto.FromString(source if isinstance(source, bytes) else Path(source).read_bytes())
    return _EXACT[1:] if multiplies_computed_integers(model) else _EXACT


def _loaded(
    source: str | bytes, threads: int, sizes: Mapping[str, int], ways: Sequence[Sequence[str]], optimised: bool
) -> Any:
    """The network in the first of `ways`, entries that are switched on, in which ONNX Runtime takes it."""
    first, *others = ways
    options, levels = onnxruntime.SessionOptions(), onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimised else levels.ORT_DISABLE_ALL
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    for name, size in sizes.items():
        options.add_free_dimension_override_by_name(name, size)
    for entry in first:
        options.add_session_config_entry(entry, "1")
    try:
        return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    except REFUSALS:
        if not others:
            raise
    return _loaded(source, threads, sizes, others, optimised)


def refusal(network: str) -> str:
    """Why ONNX Runtime does not take a network, loaded as for its reference: an operator that it lacks in these numbers, a
    version that is too new; "" where it does, or has no room here to say so."""
    try:
        OnnxRuntimeSession(network, 1, exact=True)
    except REFUSALS as error:
        return _PLACE.sub("", str(error)).strip()
    except (states.RuntimeException, RuntimeError, MemoryError):
        pass
    return ""


def _unread(port: Any) -> NDArray[Any]:
    """Zeros of an input's type and shape, 1 where a size is open."""
    kind = port.type.removeprefix("tensor(").removesuffix(")")
    shape = [size if isinstance(size, int) else 1 for size in port.shape or ()]
    return np.zeros(shape, np.float32 if kind == "float" else np.dtype(kind))
