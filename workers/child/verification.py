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

SCALES = (1.0, 100.0)
"""Of the inputs: pixels of up to 255 are less than the rounding behind a mean that a network takes off itself."""
UNMOVED = "the outputs hardly depend on the inputs, so little is told by this"

Run = Callable[[Sequence[Path], Sequence[Path]], None]
"""Runs a library on files of inputs, and writes as many of outputs."""


def verified(
    spec: RunSpec, folder: Path, work: Path, run: Run | None = None, turn: AbstractContextManager[Any] | None = None
) -> Verdict:
    """Of the library in `folder`, or of what `run` runs elsewhere, on the inputs of every seed: the first verdict that failed,
    or one of those that passed; files are written to `work`. `turn` is held while ONNX Runtime is asked. Raises
    ArtifactFailed."""
    allowed = tolerances(load(spec.network))
    for scale in SCALES:
        with turn or nullcontext(), onnxruntime(spec, work, runs=0, scale=scale) as peer:
            told = peer.answer["references"]
        references = [load_reference(told[str(seed)]) for seed in SEEDS]
        if moving := _moved([outputs for _, outputs in references], allowed):
            break
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


def _moved(references: Sequence[dict[str, Any]], allowed: Mapping[str, Tolerance]) -> bool:
    """Whether other inputs make other outputs, as far as can be told: else a library that ignored them would pass."""
    return any(not compare(one, other, allowed).passed for one, other in pairwise(references))
