"""What is shipped beside a library, and the archive of both."""

from __future__ import annotations

import json
import shutil
import stat
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from workers.baselines.order import Latency
from workers.baselines.verify import Verdict
from workers.messages.baselines import ONNX_RUNTIME
from workers.messages.spec import RunSpec
from workers.messages.tuning_log import FILE
from workers.messages.whole import whole
from workers.networks.inspect import Inspection

DRIVER = "NVIDIA's driver and CUDA's runtime of version 13 (libcudart.so.13) have to be there as well.\n"
PINNED = (
    "Each thread keeps a core of its own where the library takes all that the process may use: give each of several\n"
    "processes cores of its own (taskset, cpusets), or say Library(pin=False).\n"
)
SHIPPED = Path(__file__).resolve().parent / "shipped"
GENERATED = (
    "abm", "amx", "avx", "bmi", "f16c", "fma", "gfni", "movbe", "pni", "popcnt", "sse", "ssse", "tbm", "xop",
)  # fmt: skip
"""How the flags of what LLVM makes code of by itself begin on x86. The others are for systems, ciphers and caches: another
kernel may hide them over the same processor."""
GENERATED_ARM = (
    "asimd", "atomics", "bf16", "crc32", "cssc", "fcma", "flagm", "fp", "frint", "i8mm", "jscvt", "lrcpc", "mops", "sha3",
    "sme", "sve",
)  # fmt: skip
"""The same on ARM, where a newer kernel hides `ssbs` over a processor that has it only by half."""


def describe(
    name: str,
    spec: RunSpec,
    layout: str,
    folder: Path,
    network: Inspection,
    operators: Mapping[str, Any] | None = None,
    rehearsal: Mapping[str, Any] | None = None,
    hardware: Mapping[str, Any] | None = None,
) -> None:
    """Writes metadata.json and run.py beside model.so; `network` is what was compiled, `operators` are the configurations
    in it by index (none: untuned), `rehearsal` is what was found in the network, and `hardware` what it is for, this machine
    unless another is given."""
    from workers.tvm_backend.hardware import detect
    from workers.tvm_backend.runtime import versions

    hardware = hardware or detect().to_json()
    metadata = {
        "network": name,
        "inputs": _ports(network.inputs),
        "outputs": _ports(network.outputs),
        "target": spec.target,
        "threads": spec.threads,
        "seed": spec.seed,
        "method": spec.method,
        "layout": layout,
        "operators": operators or {},
        "rehearsal": rehearsal,
        "versions": versions(),
        "hardware": hardware["name"],
        "requires": {"cpu_flags": needed(hardware), **{name: hardware[name] for name in ("system", "machine")}},
        "latency": {"median": 0.0},
    }
    (folder / "metadata.json").write_text(json.dumps(metadata, indent=1, sort_keys=True))
    shutil.copyfile(SHIPPED / "run.py", folder / "run.py")


def needed(hardware: Mapping[str, Any]) -> list[str]:
    """What the processor's kernel is to show where the library runs."""
    flags: Sequence[str] = hardware["flags"]
    return [flag for flag in flags if flag.startswith(GENERATED if hardware["machine"] == "x86_64" else GENERATED_ARM)]


def _ports(ports: Sequence[Any]) -> list[dict[str, Any]]:
    return [{"name": port.name, "dtype": port.dtype, "shape": list(port.shape or ())} for port in ports]


def pack(
    order: dict[str, Any], folder: Path, work: Path, ours: Latency, theirs: Latency | None, verdict: Verdict
) -> Path:
    """The archive, whole or not at all."""
    path = folder / "metadata.json"
    metadata = json.loads(path.read_text())
    metadata["latency"] = asdict(ours)
    metadata["baselines"] = {ONNX_RUNTIME: asdict(theirs)} if theirs else {}
    metadata["verified"] = verdict.to_json()
    path.write_text(json.dumps(metadata, indent=1, sort_keys=True))
    (folder / "README.txt").write_text(_readme(metadata))
    shutil.copyfile(order["log"], folder / FILE)
    archive = work / "artifact.zip"
    with whole(archive) as partial, zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        for file in sorted(folder.iterdir()):
            # Weights are noise to a compressor: VGG-19's took half a minute for a fourteenth less.
            packed.write(file, file.name, zipfile.ZIP_STORED if file.name == "model.so" else None)
            # The umask is for what lies here: who unpacks the archive may let others read it.
            packed.getinfo(file.name).external_attr = (stat.S_IFREG | 0o644) << 16
    return archive


def _readme(metadata: dict[str, Any]) -> str:
    versions, gpu = metadata["versions"], metadata["target"]["kind"] == "cuda"
    threads = "" if gpu else f", {metadata['threads']} threads"
    return (
        f"{metadata['network']}, compiled for {metadata['hardware']}{threads}.\n\n"
        f"pip install numpy apache-tvm=={versions['apache-tvm']} apache-tvm-ffi=={versions['apache-tvm-ffi']}\n"
        f"{DRIVER if gpu else ''}python run.py\n\n"
        "In a program, with this folder on Python's path:\n\n"
        "from run import Library\nnetwork = Library()\noutputs = network({'name of an input': array})\n\n"
        "Any thread may call; one call runs at a time. Load it after a fork, in each process; it sets\n"
        "TVM_NUM_THREADS and the like.\n"
        f"{'' if gpu else PINNED}\n"
        "model.so                      the network, run by TVM's runtime\n"
        "run.py                        prints its latency; --help says the rest\n"
        "metadata.json                 inputs, outputs, target, versions, latency, verification\n"
        "tuning_log.jsonl              every event of the run, measurements among them\n"
        "database_*.json               the best configurations as TVM's MetaSchedule database\n"
    )
