"""Whether a library computes what ONNX Runtime computes, told by its own run script in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from workers.baselines.arrays import UNREADABLE, check_within, load_reference, room, save
from workers.baselines.verify import Verdict, compare, compare_any, parted
from workers.child.peers import SEEDS, ArtifactFailed, onnxruntime, run_script
from workers.messages.spec import RunSpec
from workers.networks.check import load
from workers.networks.rewriting import with_sizes
from workers.networks.tolerance import Tolerance, tolerances

LARGER = 100.0
"""Inputs: to a network that takes a mean off pixels and divides by 127.5 itself, numbers around 1 are all alike."""
UNMOVED = "{} hardly depend on the inputs, so little is told by this"

Arrays = dict[str, Any]
Turn = Callable[[], AbstractContextManager[Any]]
Run = Callable[[Sequence[Path], Sequence[Path], int], None]
"""Runs a library on files of inputs, and writes as many of outputs, which have room in so many bytes each."""


@dataclass(frozen=True)
class Reference:
    """Of one seed, what ONNX Runtime makes of its inputs, and `others` that are as good (`verify.OTHERS`)."""

    inputs: Arrays
    outputs: Arrays
    others: Sequence[Arrays]

    def of(self, names: Sequence[str]) -> Reference:
        """These outputs alone."""
        outputs, *others = ({name: made[name] for name in names} for made in (self.outputs, *self.others))
        return Reference(self.inputs, outputs, others)


References = list[Reference]


def verified(spec: RunSpec, folder: Path, work: Path, run: Run | None = None, turn: Turn = nullcontext) -> Verdict:
    """Of the library in `folder`, or of what `run` runs elsewhere, on the inputs of every seed: the first verdict that failed,
    or one of those that passed; files are written to `work`. A `turn` is held whenever ONNX Runtime is asked, and one for
    each of the inputs here. Raises ArtifactFailed."""
    network = load(spec.network)
    with_sizes(network, spec.inputs)
    allowed = tolerances(network)
    references, unmoved = _references(spec, work, allowed, turn)
    given, found = ([work / f"{name}-{n}.npz" for n in range(len(references))] for name in ("inputs", "outputs"))
    for path, reference in zip(given, references, strict=True):
        save(path, reference.inputs)
    most = room(references[0].outputs)
    if run is None:
        _run(spec, folder, given, found, turn)
    else:
        run(given, found, most)
    verdicts, named = [], references[0].outputs.keys()
    for path, reference in zip(found, references, strict=True):
        try:
            check_within(path, most)
            with np.load(path, allow_pickle=False) as stored:
                asked = [name for name in stored.files if name in reference.outputs or name not in named]
                made = {name: stored[name] for name in asked}
        except UNREADABLE as error:
            raise ArtifactFailed(f"the library's outputs cannot be read: {error}") from None
        verdicts.append(_judged(made, reference, references, allowed))
    first = min(verdicts, key=lambda verdict: (verdict.passed, not verdict.note))
    if not unmoved:
        return first
    still = UNMOVED.format("the outputs" if len(unmoved) == len(named) else ", ".join(unmoved))
    return replace(first, note="; ".join(filter(None, [first.note, still])))


def _judged(made: Arrays, reference: Reference, references: References, allowed: Mapping[str, Tolerance]) -> Verdict:
    verdict = compare_any(made, reference.outputs, reference.others, allowed)
    if verdict.passed or not reference.others:
        return verdict
    wider = parted(made, reference.outputs, [(one.outputs, *one.others) for one in references], allowed)
    return wider if wider.passed else verdict


def _run(spec: RunSpec, folder: Path, given: Sequence[Path], found: Sequence[Path], turn: Turn) -> None:
    """In one process: what a library keeps from one call to the next shows. Between two inputs others measure, for plain
    loops may take minutes of each."""
    files = ("--inputs", *map(str, given), "--outputs", *map(str, found))
    with ExitStack() as held:
        with turn():
            peer = held.enter_context(run_script(spec, folder, *files, "--runs", "0", "--paced"))
        for _ in given[1:]:
            with turn():
                peer.again()


def _references(
    spec: RunSpec, work: Path, allowed: Mapping[str, Tolerance], turn: Turn = nullcontext
) -> tuple[References, list[str]]:
    """Inputs and outputs of every seed, and which outputs stay as they are with other inputs, as far as can be told: a library
    that ignored them would pass. Those that larger inputs alone move are there once more, of such ones; inputs are positive
    where others make less that is finite, as behind a logarithm."""
    first, positive = _taken(spec, work, turn), False
    if not _finite(first) and _numbers(above := _taken(spec, work, turn, positive=True)) > _numbers(first):
        first, positive = above, True
    unmoved = _unmoved(first, allowed)
    if not unmoved:
        return first, []
    larger = _taken(spec, work, turn, LARGER, positive)
    left = [name for name in _unmoved(larger, allowed) if name in unmoved]
    fresh = [name for name in unmoved if name not in left]
    if not fresh or not _finite(larger):
        return first, unmoved
    if len(unmoved) == len(first[0].outputs):  # with the others nothing moved
        return larger, left
    return [*first, *(reference.of(fresh) for reference in larger)], left


def _finite(references: References) -> bool:
    """Whether all values of every output are."""
    return all(np.isfinite(array).all() for reference in references for array in reference.outputs.values())


def _numbers(references: References) -> int:
    """How many are."""
    return sum(int(np.isfinite(array).sum()) for reference in references for array in reference.outputs.values())


def _taken(spec: RunSpec, work: Path, turn: Turn, scale: float = 1.0, positive: bool = False) -> References:
    with turn(), onnxruntime(spec, work, runs=0, scale=scale, positive=positive) as peer:
        told, others = peer.answer["references"], peer.answer["others"]
    seeds = map(str, SEEDS)
    return [
        Reference(*load_reference(told[seed]), [load_reference(path)[1] for path in others[seed]]) for seed in seeds
    ]


def _unmoved(references: References, allowed: Mapping[str, Tolerance]) -> list[str]:
    pairs = [compare(one.outputs, other.outputs, allowed).outputs for one, other in pairwise(references)]
    moved = {output.name for pair in pairs for output in pair if not output.passed}
    return [name for name in references[0].outputs if name not in moved]
