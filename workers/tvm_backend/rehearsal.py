"""What each operator takes in the network, in builds of it that take turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import relax

ROUNDS = 8
WARM = 2
"""Inferences at the head of a build's turn that are not heard: they fetch its weights again."""
FEWEST, MOST = 3, 12
"""Inferences heard a turn."""
SECONDS = 8.0
"""Of all turns together; slow networks are heard less often, which their longer operators make up for."""
PACKED = "_prepacked"
"""What TVM appends to the name of an operator whose weights were packed beforehand."""

Inputs = Sequence[Any]
Alone = Callable[[], AbstractContextManager[Any]]
"""Has the machine to itself: others may take it between two of them."""


class _Ear:
    """The virtual machine's instrument: adds up the seconds of each operator's calls."""

    def __init__(self, operators: Mapping[str, int]) -> None:
        self._operators = operators
        self._began = 0.0
        self.seconds: dict[int, float] = {}

    def __call__(self, _function: Any, symbol: Any, before: bool, _returned: Any, *_arguments: Any) -> int:
        if before:
            self._began = time.perf_counter()
            return 0
        taken = time.perf_counter() - self._began
        operator = self._operators.get(str(symbol).removesuffix(PACKED))
        if operator is not None:
            self.seconds[operator] = self.seconds.get(operator, 0.0) + taken
        return 0


def tensors(arrays: Sequence[NDArray[Any]]) -> Inputs:
    return [tvm.runtime.tensor(array, tvm.cpu()) for array in arrays]


def machine(build: relax.VMExecutable | tvm.runtime.Module) -> relax.VirtualMachine:
    """What runs a build, or a library of one."""
    return relax.VirtualMachine(build, tvm.cpu())


def warmed(build: relax.VMExecutable, inputs: Inputs) -> relax.VirtualMachine:
    """With its machine code, which is made when it is first run: that takes as long as to compile it."""
    made = machine(build)
    made["main"](*inputs)
    return made


def operator_seconds(
    machines: Sequence[relax.VirtualMachine],
    operators: Mapping[str, int],
    inputs: Inputs,
    rounds: int = ROUNDS,
    alone: Alone = nullcontext,
) -> list[list[dict[int, float]]]:
    """By build and round, the median over a turn's inferences of what each operator's calls took together.

    `operators` are their indices by name; one that is called under no name of its own is in none of the answers. Each round
    is within a context `alone`.
    """
    ears = [_Ear(operators) for _ in machines]
    for vm, ear in zip(machines, ears, strict=True):
        vm.set_instrument(ear)
    with alone():
        turns = _turns(_warm(machines[0]["main"], inputs) * len(machines))
    heard: list[list[dict[int, float]]] = [[] for _ in machines]
    for _ in range(rounds):
        with alone():
            for told, vm, ear in zip(heard, machines, ears, strict=True):
                told.append(_turn(vm["main"], inputs, ear, turns))
    for vm in machines:
        vm.set_instrument(None)  # calling it takes time that is none of the network's
    return heard


def inference_seconds(
    machines: Sequence[relax.VirtualMachine], inputs: Inputs, rounds: int = ROUNDS, alone: Alone = nullcontext
) -> list[float]:
    """The median inference of each build, in turns; each round is within a context `alone`."""
    mains = [vm["main"] for vm in machines]
    with alone():
        count = _turns(_warm(mains[0], inputs) * len(mains))
    taken: list[list[float]] = [[] for _ in mains]
    for _ in range(rounds):
        with alone():
            for main, times in zip(mains, taken, strict=True):
                for _ in range(WARM):
                    main(*inputs)
                times.extend(_once(main, inputs) for _ in range(count))
    return [float(np.median(times)) for times in taken]


def shortest_turns(latency: float) -> float:
    """Seconds that the turns of one build take at least, where an inference takes `latency`."""
    return ROUNDS * (WARM + FEWEST) * latency


def _warm(main: Any, inputs: Inputs) -> float:
    """Seconds of a second inference: the first one fetches its weights."""
    main(*inputs)
    return _once(main, inputs)


def _once(main: Any, inputs: Inputs) -> float:
    began = time.perf_counter()
    main(*inputs)
    return time.perf_counter() - began


def _turns(seconds: float) -> int:
    """Inferences a turn, where one of every build takes `seconds`."""
    return max(FEWEST, min(MOST, int(SECONDS / (ROUNDS * seconds)) - WARM))


def _turn(main: Any, inputs: Inputs, ear: _Ear, count: int) -> dict[int, float]:
    for _ in range(WARM):
        main(*inputs)
    heard: dict[int, list[float]] = {}
    for _ in range(count):
        ear.seconds = {}
        main(*inputs)
        for operator, seconds in ear.seconds.items():
            heard.setdefault(operator, []).append(seconds)
    return {operator: float(np.median(times)) for operator, times in heard.items()}
