"""What a device does for whoever has its key: one process a connection, which orders reach as `tvm_backend.worker` takes them.

hardware {peak}                                   -> {hardware, peak | null, versions}
bury     {pid, folder}                            -> {}: soon, that of a connection that broke, which may hang and hold the lock
hold     {} / release {}                          -> {waited} / {}: sites take turns
begin    {target, threads, evaluator, footprint}  -> {}
run      {id, library | null, incumbent, ...}     -> as `Timer.run`; a library {data, programs: [{id, name in it, and what
         `Timer.keep` takes}]}, compressed, is sent with the first run of one of its programs. {fault} where the device cannot
         load it, which is none of the programs'
drop     {}                                       -> {}
put      {name, data, begins}                     -> {}: a part of a file, in base64
get      {name, at}                               -> {data}: a part of it, from there on
script   {arguments, seconds}                     -> {output, status}: of the archive's run.py, among what was put
compared {order, seconds}                         -> {output, status}: of ONNX Runtime with a network that was put, where it is
                                                     installed here (`greeting`); `order` as `baselines.order.Order`
"""

from __future__ import annotations

import base64
import io
import json
import os
import platform
import re
import runpy
import site
import subprocess
import sys
import tempfile
import traceback
import zlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import tvm
import tvm_ffi

from workers.device.environment import carried
from workers.messages.device import PART, PROTOCOL
from workers.sandbox import threads
from workers.sandbox.files import DISK
from workers.sandbox.lock import MeasureLock, default_path
from workers.sandbox.spawn import Access, Limits, confine_here, spawn
from workers.tvm_backend import runtime
from workers.tvm_backend.cuda import peak as cuda
from workers.tvm_backend.cuda.hardware import detect_gpu
from workers.tvm_backend.cuda.timer import CudaTimer
from workers.tvm_backend.hardware import Hardware, core_caches, detect
from workers.tvm_backend.nursery import address_space
from workers.tvm_backend.peak import peak_alone
from workers.tvm_backend.timer import Timer

Answer = dict[str, Any]

VERBS = ("hardware", "bury", "hold", "release", "begin", "run", "drop", "put", "get", "script", "compared")
NAME = re.compile(r"[A-Za-z0-9_-]{1,60}(\.[a-z0-9]{1,10})?")
"""Of files that are put here: none of them leaves the connection's directory."""
SILENCE = 600.0
"""Seconds without an order after which who holds this device loses it: through a tunnel a site that vanished looks like one
that compiles, and a batch's programs are compiled in less."""
SAID = 1 << 16
"""Letters of what a program said that are told: the last ones."""


class Device:
    """`folder` is this connection's own, and goes with it; `bury` ends the process of another. Programs run on this machine's
    processor, or its `gpu`."""

    def __init__(self, folder: Path, bury: Callable[[int, str], None], gpu: bool = False) -> None:
        self._folder, self._bury, self._gpu = folder, bury, gpu
        # Not this machine's own: a site on the same one holds that while it builds what is timed here.
        self._lock = MeasureLock(default_path().with_name("device.lock"))
        self._held = ExitStack()
        self.silence = 0.0  # as `worker.serve` asks for it
        self._loaded = 0
        self._loads = False  # whether any library was loaded yet

    def confine(self, *hidden: Path) -> None:
        """For good, before the first order: what is loaded and started here was written by anybody. It writes to its folder,
        opens no sockets and reads what programs need, of that nothing `hidden`: all this as far as the kernel can."""
        read = (site.getusersitepackages(), *self._lock.files())
        access = Access(read, (str(self._folder),), network=False, gpu=self._gpu, hidden=tuple(map(str, hidden)))
        os.environ["TMPDIR"] = tempfile.tempdir = str(self._folder)
        # CUDA reserves terabytes of addresses, of which it uses few.
        addresses = None if self._gpu else address_space()
        confine_here(Limits(address_space=addresses, file_size=DISK, processes=threads.processes(threads.MANY)), access)

    def hardware(self, peak: bool) -> Answer:
        hardware = self._detected()
        runtime.load(hardware.target)  # a GPU's programs are compiled by what is its
        measure = cuda.peak_alone if self._gpu else peak_alone
        return {
            "hardware": hardware.to_json(),
            "peak": measure(hardware.target, hardware.cores, self._lock.exclusive()) if peak else None,
            "versions": runtime.versions(runtime.LOADING),
        }

    def _detected(self) -> Hardware:
        """With the processor's triple in its target: programs are built elsewhere."""
        found = detect_gpu() if self._gpu else detect()
        triple = {"mtriple": f"{platform.machine()}-linux-gnu"}
        if self._gpu:
            return replace(found, target={**found.target, "host": {**found.target["host"], **triple}})
        return replace(found, target={**found.target, **triple})

    def bury(self, pid: int, folder: str) -> Answer:
        if folder != self._folder.name:
            self._bury(pid, folder)
        return {}

    def hold(self) -> Answer:
        waited = self._held.enter_context(self._lock.exclusive())
        self.silence = SILENCE
        return {"waited": waited}

    def release(self) -> Answer:
        self._held.close()
        self.silence = 0.0
        return {}

    def begin(
        self, target: dict[str, Any], threads: int, evaluator: dict[str, Any], footprint: Sequence[int]
    ) -> Answer:
        found = self._detected()
        if (target, threads) != (found.target, found.cores):
            raise RuntimeError("this is another machine than the one that was measured; start another run")
        if self._gpu:
            self._timer: Timer = CudaTimer()
        else:
            os.environ.update(runtime.environment(threads))
            self._timer = Timer(tvm.target.Target(target), threads)
        self._timer.load(evaluator, footprint)
        return self._timer.begin(())

    def run(self, id: int, library: dict[str, Any] | None, **order: Any) -> Answer:
        try:
            if library is not None:
                self._keep(**library)
        except OSError as error:
            return {"fault": str(error)[-300:]}
        except RuntimeError as error:
            if self._loads:
                raise  # others were loaded: it is the program's
            return {"fault": str(error)[-300:]}
        return self._timer.run(id, **order)

    def _keep(self, data: str, programs: Sequence[dict[str, Any]]) -> None:
        self._loaded += 1
        # Of one name again the loader gives the first that it loaded.
        path = self._folder / f"programs-{self._loaded}.so"
        try:
            path.write_bytes(zlib.decompress(base64.b64decode(data)))
            # Without it a library stays mapped, and its file on the disk, for as long as this process lives; with it, until
            # its last program is forgotten.
            module = tvm_ffi.load_module(str(path), keep_module_alive=False)
            entries = [self._timer.entry(module, program["name"]) for program in programs]
        finally:
            path.unlink(missing_ok=True)  # it is mapped: what is kept here must not fill the device
        self._loads = True
        for entry, program in zip(entries, programs, strict=True):
            described = {name: value for name, value in program.items() if name not in ("id", "name")}
            described["shapes"] = [(tuple(shape), dtype) for shape, dtype in program["shapes"]]
            self._timer.keep(program["id"], entry, **described)

    def drop(self) -> Answer:
        self._timer.drop()
        return {}

    def put(self, name: str, data: str, begins: bool) -> Answer:
        with self._path(name).open("wb" if begins else "ab") as file:
            file.write(base64.b64decode(data))
        return {}

    def get(self, name: str, at: int) -> Answer:
        with self._path(name).open("rb") as file:
            file.seek(at)
            return {"data": base64.b64encode(file.read(PART)).decode()}

    def script(self, arguments: list[str], seconds: float) -> Answer:
        path = self._path("run.py")
        # By its name alone: command lines can be read by others, and the folder's is known to its connection only.
        return _played(str(path), arguments) if self._gpu else self._ran([path.name, *arguments], seconds)

    def compared(self, order: dict[str, Any], seconds: float) -> Answer:
        given = {**order, "network": str(self._path(order["network"]))}
        return self._ran(["-m", "workers.baselines"], seconds, json.dumps(given) + "\n")

    def _ran(self, arguments: list[str], seconds: float, given: str = "") -> Answer:
        # It ends with this process, which may be killed: nobody would hold the device for it.
        pipe = subprocess.PIPE
        with spawn(
            [sys.executable, *arguments],
            cwd=self._folder,
            env=carried(),
            stdin=pipe,
            stdout=pipe,
            stderr=subprocess.STDOUT,
        ) as process:
            try:
                said, _ = process.popen.communicate(given.encode(), seconds)
            except subprocess.TimeoutExpired:
                raise TimeoutError(f"it did not end within {seconds:g} s") from None
        return {"output": said.decode(errors="replace")[-SAID:], "status": process.popen.returncode}

    def _path(self, name: str) -> Path:
        if not NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a file here")
        return self._folder / name


def _played(path: str, arguments: list[str]) -> Answer:
    """A script run by this process, which alone may use the GPU."""
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        sys.argv[:] = [path, *arguments]
        try:
            runpy.run_path(path, run_name="__main__")
            status = 0
        except SystemExit as left:
            status = int(left.code or 0)
        except Exception:
            traceback.print_exc()
            status = 1
    return {"output": said.getvalue()[-SAID:], "status": status}


def greeting(folder: Path, gpu: bool = False) -> Answer:
    """What the device says of itself: what decides whether libraries that were made elsewhere load here, and whether there is
    an ONNX Runtime to compare them with, which is the processor's: a GPU's programs have no such peer."""
    found = runtime.versions(runtime.LOADING)
    return {
        "protocol": PROTOCOL,
        "versions": found,
        "caches": core_caches(),
        "process": {"pid": os.getpid(), "folder": folder.name},
        "onnxruntime": not gpu and all(find_spec(name) for name in ("onnxruntime", "onnx")),
        "gpu": gpu,
    }
