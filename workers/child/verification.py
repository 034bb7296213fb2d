"""Whether a library computes what ONNX Runtime computes, told by its own run script in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from workers.baselines.arrays import save
from workers.baselines.onnxruntime import load_reference
from workers.baselines.verify import Verdict, compare
from workers.child.peers import SEEDS, onnxruntime, run_script
from workers.messages.spec import RunSpec
from workers.networks.check import load
from workers.networks.tolerance import Tolerance, tolerances

LARGER = 100.0
"""Inputs: to a network that takes a mean off pixels and divides by 127.5 itself, numbers around 1 are all alike."""
UNMOVED = "the outputs hardly depend on the inputs, so little is told by this"

References = list[tuple[dict[str, Any], dict[str, Any]]]
Run = Callable[[Sequence[Path], Sequence[Path]], None]
"""Runs a library on files of inputs, and writes as many of outputs."""


def verified(
    spec: RunSpec, folder: Path, work: Path, run: Run | None = None, turn: AbstractContextManager[Any] | None = None
) -> Verdict:
    """Of the library in `folder`, or of what `run` runs elsewhere, on the inputs of every seed: the first verdict that failed,
    or one of those that passed; files are written to `work`. `turn` is held while ONNX Runtime is asked. Raises
    ArtifactFailed."""
    allowed = tolerances(load(spec.network))
    with turn or nullcontext():
        references, moving = _references(spec, work, allowed)
    given, found = ([work / f"{name}-{seed}.npz" for seed in SEEDS] for name in ("inputs", "outputs"))
    for path, (inputs, _) in zip(given, references, strict=True):
        save(path, inputs)
    if run is None:
        files = ("--inputs", *map(str, given), "--outputs", *map(str, found))
        run_script(spec, folder, *files, "--runs", "0").close()
    else:
        run(given, found)
    verdicts = []
    for path, (_, wanted) in zip(found, references, strict=True):
        with np.load(path, allow_pickle=False) as stored:
            verdicts.append(compare({name: stored[name] for name in stored.files}, wanted, allowed))
    first = next((verdict for verdict in verdicts if not verdict.passed), verdicts[0])
    return first if moving else replace(first, note=UNMOVED)


def _references(spec: RunSpec, work: Path, allowed: Mapping[str, Tolerance]) -> tuple[References, bool]:
    """Inputs and outputs of every seed, and whether other inputs make other outputs, as far as can be told: else a library that
    ignored them would pass. Of larger inputs where only those do."""
    first = _taken(spec, work, 1.0)
    if _moved(first, allowed):
        return first, True
    larger = _taken(spec, work, LARGER)
    finite = all(np.isfinite(array).all() for _, outputs in larger for array in outputs.values())
    return (larger, True) if finite and _moved(larger, allowed) else (first, False)


def _taken(spec: RunSpec, work: Path, scale: float) -> References:
    with onnxruntime(spec, work, runs=0, scale=scale) as peer:
        told = peer.answer["references"]
    return [load_reference(told[str(seed)]) for seed in SEEDS]


def _moved(references: References, allowed: Mapping[str, Tolerance]) -> bool:
    return any(not compare(one, other, allowed).passed for (_, one), (_, other) in pairwise(references))
