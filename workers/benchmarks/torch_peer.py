"""PyTorch in a process of its own: a JSON order on standard input, an answer on standard output, and another for every further
line.

An order: {factory, compiled, threads, runs, longest: s of a turn, warm_up: s, reference}. `factory` is FILE.py:FUNCTION or
MODULE:FUNCTION and gives the torch.nn.Module that the network was exported from; `reference` holds inputs and outputs of ONNX
Runtime. An answer:
{seconds, difference, version}: the largest difference of the first output from the reference, relative to the reference's
largest value; a network with other weights shows there, and is timed all the same.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from workers.baselines.arrays import load_reference
from workers.baselines.order import Answers, tell, warm_ups


def measured(order: dict[str, Any], asked: Iterable[object]) -> Iterator[dict[str, Any]]:
    """Raises whatever PyTorch throws; torch.compile needs a C++ compiler."""
    import torch

    torch.set_num_threads(order["threads"])
    torch.set_num_interop_threads(1)
    network = factory_named(order["factory"])().eval()
    inputs, wanted = load_reference(order["reference"])
    tensors = [torch.from_numpy(np.asarray(array, order="C")) for array in inputs.values()]
    with torch.inference_mode():
        called = torch.compile(network) if order["compiled"] else network
        found = _first(called(*tensors))
        difference = _difference(np.asarray(found), next(iter(wanted.values())))
        for warm_up in warm_ups(order["warm_up"], asked):
            end = time.perf_counter() + warm_up
            while time.perf_counter() < end:
                called(*tensors)
            seconds: list[float] = []
            end = time.perf_counter() + order["longest"]
            while len(seconds) < order["runs"] and not (seconds and time.perf_counter() >= end):
                began = time.perf_counter()
                called(*tensors)
                seconds.append(time.perf_counter() - began)
            yield {"seconds": seconds, "difference": difference, "version": str(torch.__version__)}


def answers() -> Answers:
    """Of the order on standard input; {"error": ...} when it fails: of PyTorch's errors the first line says what happened."""
    try:
        for found in measured(json.loads(sys.stdin.readline()), sys.stdin):
            yield 0, found
    except Exception as error:  # whatever the library throws is the answer
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        yield 1, {"error": f"{type(error).__name__}: {(lines or [''])[0][:300]}"}


def factory_named(name: str) -> Callable[[], Any]:
    """The function that FILE.py:FUNCTION or MODULE:FUNCTION names; raises ValueError."""
    place, separator, function = name.rpartition(":")
    if not separator or not place or not function:
        raise ValueError(f"{name!r} must be FILE.py:FUNCTION or MODULE:FUNCTION")
    if place.endswith(".py"):
        path = Path(place).resolve()
        found = importlib.util.spec_from_file_location(path.stem, path)
        if found is None or found.loader is None or not path.is_file():
            raise ValueError(f"{name!r}: there is no such file")
        module = importlib.util.module_from_spec(found)
        found.loader.exec_module(module)
    else:
        module = importlib.import_module(place)
    made = getattr(module, function, None)
    if not callable(made):
        raise ValueError(f"{name!r}: the module has no such function")
    return made  # type: ignore[no-any-return]


def _first(outputs: Any) -> Any:
    return outputs[0] if isinstance(outputs, tuple | list) else outputs


def _difference(found: Any, wanted: Any) -> float | None:
    if found.shape != wanted.shape:
        raise ValueError(f"the module gives {found.shape}, the network {wanted.shape}: it is another network")
    scale = float(np.abs(wanted).max(initial=0.0))
    return float(np.abs(found - wanted).max(initial=0.0)) / scale if scale else None


if __name__ == "__main__":
    sys.path.insert(0, "")
    sys.exit(tell(answers()))
