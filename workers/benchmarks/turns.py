"""Libraries timed in turns: a block of runs each, so that a change of the machine's speed hits all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from workers.baselines.order import Latency
from workers.benchmarks.process import PartFailed
from workers.child.peers import ArtifactFailed, onnxruntime, run_script
from workers.messages.spec import RunSpec

Block = Callable[[int], list[float]]

OURS, ONNX_RUNTIME = "TVM", "ONNX Runtime"


@dataclass(frozen=True)
class Turns:
    """Seconds of every run by library, a list a block; `errors` says why a library is missing."""

    blocks: dict[str, list[list[float]]]
    errors: dict[str, str]

    def latency(self, name: str) -> Latency | None:
        """Over all blocks."""
        seconds = [second for block in self.blocks.get(name, ()) for second in block]
        return Latency.of(np.asarray(seconds)) if seconds and name not in self.errors else None

    def ratios(self, name: str, other: str) -> list[float]:
        """Median of `name` over that of `other`, turn by turn."""
        pairs = zip(self.blocks.get(name, ()), self.blocks.get(other, ()), strict=False)
        return [float(np.median(ours) / np.median(theirs)) for ours, theirs in pairs]

    def to_json(self) -> dict[str, Any]:
        """Latencies by library, and the turns' ratios to ONNX Runtime."""
        found = {name: self.latency(name) for name in self.blocks}
        return {
            "latencies": {name: asdict(latency) for name, latency in found.items() if latency},
            "ratios": {name: self.ratios(name, ONNX_RUNTIME) for name in self.blocks if name != ONNX_RUNTIME},
            "errors": dict(self.errors),
        }


def in_turns(libraries: dict[str, Block], turns: int, runs: int, tick: Callable[[str], None]) -> Turns:
    """`runs` timed runs of every library, `turns` times; one that fails is left out from then on."""
    blocks: dict[str, list[list[float]]] = {name: [] for name in libraries}
    errors: dict[str, str] = {}
    for turn in range(turns):
        for name, block in libraries.items():
            if name in errors:
                continue
            tick(f"turn {turn + 1} of {turns}: {name}")
            try:
                blocks[name].append(block(runs))
            except (ArtifactFailed, PartFailed) as failure:
                errors[name] = str(failure)[-400:]
    return Turns(blocks, errors)


def pair(spec: RunSpec, folder: Path, work: Path) -> dict[str, Block]:
    """The library in `folder`, run by its own script, and ONNX Runtime on the same network: a process a block."""
    return {
        OURS: lambda runs: list(run_script(spec, folder, "--runs", str(runs), "--json")["seconds"]),
        ONNX_RUNTIME: lambda runs: list(onnxruntime(spec, work, runs)["seconds"]),
    }
