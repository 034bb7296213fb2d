"""What the GPU of this machine is."""

from __future__ import annotations

import platform
from typing import Any

import tvm

from workers.tvm_backend.hardware import Hardware, detect

REGISTERS = 65536
"""Of 32 bits, of a multiprocessor: of all NVIDIA's GPUs since 2014."""


class NoGpu(RuntimeError):
    """There is no GPU that CUDA finds here."""


def detect_gpu() -> Hardware:
    """The first GPU of this machine, or the first of CUDA_VISIBLE_DEVICES: its multiprocessors are the cores, its memory the
    memory, and the flags are the processor's, which programs ask to be run by. Raises NoGpu."""
    device, here = tvm.cuda(0), detect()
    if not device.exist:
        raise NoGpu(
            "CUDA finds no GPU here; look at what nvidia-smi says, and whether CUDA's runtime 13 (libcudart) is there"
        )
    return Hardware(
        name=str(device.device_name),
        system=platform.system(),
        machine=platform.machine(),
        cores=int(device.multi_processor_count),
        memory=int(device.total_global_memory),
        flags=here.flags,
        target=_target(device, here.target),
    )


def _target(device: Any, host: dict[str, Any]) -> dict[str, Any]:
    return {
        "kind": "cuda",
        "arch": f"sm_{device.compute_version.replace('.', '')}",
        "max_threads_per_block": int(device.max_threads_per_block),
        "max_shared_memory_per_block": int(device.max_shared_memory_per_block),
        "thread_warp_size": int(device.warp_size),
        "registers_per_block": REGISTERS,
        "host": {**host, "num-cores": 1},  # it starts kernels: how many cores may be used there changes no program
    }
