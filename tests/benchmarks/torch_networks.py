"""The PyTorch modules that networks of tests/zoo.py are exported from, with the same weights: for `benchmark latency`.

For example `--torch resnet18=tests/benchmarks/torch_networks.py:resnet18`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from tests import zoo


def _seeded(build: Callable[[Any], Any]) -> Any:
    with torch.random.fork_rng():
        torch.manual_seed(zoo.SEED)
        return build(torch).eval()


def resnet18() -> Any:
    return _seeded(zoo._resnet18)


def mobilenet_like() -> Any:
    return _seeded(zoo._mobilenet)


def transformer_encoder() -> Any:
    return _seeded(zoo._encoder)
