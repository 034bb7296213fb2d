"""Half a gigabyte: only where LARGE_NETWORKS is set."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.zoo import bvlc_alexnet, vgg16, vgg19
from workers.networks.check import load

pytestmark = pytest.mark.skipif(
    "LARGE_NETWORKS" not in os.environ, reason="set LARGE_NETWORKS=1 to write 1.4 GB of networks"
)


@pytest.mark.parametrize("network", [bvlc_alexnet, vgg16, vgg19])
def test_large_networks_are_checked_in_seconds(zoo_cache: Path, network: object) -> None:
    path = network(zoo_cache)  # type: ignore[operator]
    began = time.process_time()
    load(path)
    assert time.process_time() - began < 8.0


@pytest.mark.parametrize(
    ("network", "convolutions", "parameters"), [(vgg16, 13, 138_357_544), (vgg19, 16, 143_667_240)]
)
def test_vgg_has_the_layers_and_parameters_of_its_paper(
    zoo_cache: Path, network: object, convolutions: int, parameters: int
) -> None:
    graph = onnx.load(network(zoo_cache)).graph  # type: ignore[operator]
    assert sum(node.op_type == "Conv" for node in graph.node) == convolutions
    weights = [tensor for tensor in graph.initializer if tensor.data_type == onnx.TensorProto.FLOAT]
    assert sum(int(np.prod(tensor.dims)) for tensor in weights) == parameters
