"""Runs the compiled network beside this file and prints its latency.

Needs numpy and TVM's runtime in the versions of metadata.json; nothing is compiled here. Usage:

    pip install numpy "apache-tvm==VERSION" "apache-tvm-ffi==VERSION"
    python run.py [--inputs inputs.npz ...] [--outputs outputs.npz ...] [--runs 50] [--seed 0] [--json [--paced] [--turns]]

and in a program, with this folder on Python's path:

    from run import Library
    network = Library()
    outputs = network({"x": array})
"""

import argparse
import contextlib
import ctypes
import importlib.metadata
import importlib.util
import itertools
import json
import os
import platform
import sys
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

with contextlib.suppress(ImportError):  # it comes with TVM, which `check` looks for first
    import numpy as np

HERE = Path(__file__).resolve().parent
UNPACK = "unpack the whole archive into one folder"


class CannotRun(Exception):
    """Why the library does not work here, and what to do."""


class Library:
    """The network, for a program: `Library()({name: array})` gives its outputs as {name: array}, all of numpy, in memory of
    the caller's own.

    Any thread may call; one call runs at a time, in a thread of the library's. After a fork each process makes its own, and
    a process makes one after the other. With `pin` a core is kept for each of its threads: wanted where it computes alone,
    harmful beside others, who may keep the same ones; by itself it does where it takes all cores that the process may use.
    Raises CannotRun, and ValueError for arrays that the network does not take.
    """

    def __init__(self, pin=None):
        self.metadata, self._pin = described(), pin
        check(self.metadata)
        self._process = os.getpid()
        # TVM's pool belongs to the thread that first calls, and so do the cores that it is held on.
        self._thread = ThreadPoolExecutor(1, "network")
        self._machine, self._network, self._place = self._thread.submit(self._load).result()

    def __call__(self, arrays):
        if os.getpid() != self._process:
            raise RuntimeError(
                "the library was loaded before a fork, and its threads are not here; load it in each process"
            )
        arrays = {name: np.asarray(array) for name, array in arrays.items()}
        if said := misfit(arrays, arrays, self.metadata):
            raise ValueError(said)
        return self._thread.submit(self._called, arrays).result()

    def _load(self):
        # A server's threads are not awake without need: what spins for 0.2 s after each call takes whole cores.
        os.environ.setdefault("TVM_THREAD_POOL_SPIN_COUNT", "2000")
        return load(self.metadata, self._pin)

    def _called(self, arrays):
        outputs = self._network(*(self._place.put(arrays[port["name"]]) for port in self.metadata["inputs"]))
        return {name: np.array(self._place.got(output)) for name, output in named(outputs, self.metadata)}


def described():
    try:
        return json.loads((HERE / "metadata.json").read_text())
    except (OSError, ValueError) as error:
        raise CannotRun(f"metadata.json: {getattr(error, 'strerror', None) or error}; {UNPACK}") from None


def named(outputs, metadata):
    """Pairs of the name and the tensor of each output."""
    found = [outputs] if hasattr(outputs, "shape") else outputs
    return zip((port["name"] for port in metadata["outputs"]), found, strict=True)


def check(metadata):
    """Raises CannotRun where the library cannot work."""
    wanted = metadata["requires"]
    if platform.system() != wanted["system"] or platform.machine() != wanted["machine"]:
        raise CannotRun(
            f"the library is for {wanted['system']} {wanted['machine']}, this is {platform.system()} {platform.machine()}"
        )
    if wanted["cpu_flags"] and os.path.exists("/proc/cpuinfo"):
        have = set()
        for line in open("/proc/cpuinfo"):
            if line.startswith(("flags", "Features")):
                have = set(line.split(":", 1)[1].split())
                break
        missing = sorted(set(wanted["cpu_flags"]) - have)
        if missing:
            raise CannotRun(f"this processor lacks {', '.join(missing[:8])}; tune the network on this machine")
    for name in ("apache-tvm", "apache-tvm-ffi"):
        version = metadata["versions"][name]
        try:
            found = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            raise CannotRun(f"{name} is not installed; run: pip install {name}=={version}") from None
        if found != version:
            raise CannotRun(
                f"the library was made with {name} {version}, here is {found}; run: pip install {name}=={version}"
            )


def load(metadata, pin=True):
    """The network's main function, and where its tensors lie; the compiler's 260 MB are not loaded. `pin` as `Library`."""
    gpu = metadata["target"]["kind"] == "cuda"
    threads = 1 if gpu else min(metadata["threads"], whole_cores())
    given = os.environ.get("TVM_NUM_THREADS", "")
    if given == os.environ.get(TOLD):  # by another library of this process, not by whoever runs it
        given = ""
    if given and not (given.isdecimal() and int(given)):
        raise CannotRun(f"TVM_NUM_THREADS={given} must be a whole number of threads, at least 1")
    if not given and threads < metadata["threads"] and not gpu:
        print(
            f"on {threads} threads; it was tuned for {metadata['threads']}, more than this process may use",
            file=sys.stderr,
        )
    os.environ["TVM_NUM_THREADS"] = given or str(threads)
    if not given:
        os.environ[TOLD] = str(threads)
    os.environ.setdefault("TVM_BIND_THREADS", "0")
    # tvm_ffi takes it along where it finds it: a second, for nothing here.
    torch = sys.modules.setdefault("torch", None)
    try:
        import tvm_ffi
    finally:
        if torch is None:
            sys.modules.pop("torch")  # the program may want it
    package = Path(importlib.util.find_spec("tvm").origin).parent
    ctypes.CDLL(str(package / "lib" / "libtvm_runtime.so"), ctypes.RTLD_GLOBAL)
    with contextlib.suppress(OSError):  # sorting (TopK) is in there; a package without it has none
        ctypes.CDLL(str(package / "lib" / "libtvm_runtime_extra.so"))
    place = Gpu(tvm_ffi, package, metadata) if gpu else Processor(tvm_ffi)
    if not (HERE / "model.so").exists():
        raise CannotRun(f"model.so is not there; {UNPACK}")
    try:
        machine = tvm_ffi.load_module(str(HERE / "model.so"))["vm_load_executable"]()
    except Exception as error:  # what the loader says
        raise CannotRun(
            f"{error}\nmodel.so wants a folder where programs may run, on a system no older than the one that made it"
        ) from None
    machine["vm_initialization"](*place.devices)
    if not gpu:
        spread_threads(tvm_ffi, pin)
    return machine, machine["main"], place


TOLD = "TUNINGSITE_THREADS"
"""The variable that says how many threads a library of this process chose."""
CPU, CUDA, POOLED = 1, 2, 2
"""As TVM numbers devices and allocators."""


class Processor:
    """Tensors lie in this machine's memory."""

    devices = (CPU, 0, POOLED)

    def __init__(self, tvm_ffi):
        self.tensor = tvm_ffi.from_dlpack

    def put(self, array):
        return self.tensor(aligned(array))

    def got(self, tensor):
        return np.from_dlpack(tensor)

    def wait(self):
        """What was called is done."""


class Gpu:
    """Tensors lie in the memory of the first GPU."""

    devices = (CUDA, 0, POOLED, CPU, 0, POOLED)

    def __init__(self, tvm_ffi, package, metadata):
        try:
            ctypes.CDLL(str(package / "lib" / "libtvm_runtime_cuda.so"), ctypes.RTLD_GLOBAL)
        except OSError as error:
            raise CannotRun(
                f"{error}; it takes NVIDIA's driver and CUDA's runtime of version 13 (libcudart.so.13)"
            ) from None
        self.ffi, self.device = tvm_ffi, tvm_ffi.device("cuda:0")
        self.copy, self.allocate, self.sync = map(
            tvm_ffi.get_global_func,
            ("runtime.TVMTensorCopyFromTo", "runtime.TVMTensorAllocWithScope", "runtime.Device_StreamSync"),
        )
        attribute = tvm_ffi.get_global_func("runtime.GetDeviceAttr")
        exists, version = 0, 4
        if not attribute(CUDA, 0, exists):
            raise CannotRun("CUDA finds no GPU here; look at what nvidia-smi says")
        wanted, here = metadata["target"]["arch"], "sm_" + str(attribute(CUDA, 0, version)).replace(".", "")
        if here != wanted:
            raise CannotRun(
                f"the library is for a GPU of {wanted} ({metadata['hardware']}), this is {here}; tune the network on it"
            )

    def put(self, array):
        here = self.ffi.from_dlpack(aligned(array))
        shape, dtype = self.ffi.Shape(here.shape), self.ffi.dtype(str(array.dtype))
        there = self.allocate(shape, dtype, self.device, None)
        self.copy(here, there)
        self.wait()
        return there

    def got(self, tensor):
        array = np.empty(tuple(tensor.shape), str(tensor.dtype))
        self.copy(tensor, self.ffi.from_dlpack(array))
        self.wait()
        return array

    def wait(self):
        self.sync(self.device, 0)


def spread_threads(tvm_ffi, pin):
    """A core for each thread: left alone, Linux puts two of them on one core after every pause, for some milliseconds."""
    if not hasattr(os, "sched_setaffinity"):
        return
    before = set(os.listdir("/proc/self/task"))
    # By itself the pool uses no more threads than there are processors of the highest frequency where some are slower.
    of_any_core = 1
    threads = int(os.environ["TVM_NUM_THREADS"])
    tvm_ffi.get_global_func("runtime.config_threadpool")(of_any_core, threads)
    pool = sorted(int(task) for task in set(os.listdir("/proc/self/task")) - before)
    cores = apart(os.sched_getaffinity(0))
    if pin is None:  # some may be for others, and the program may have begun a thread of its own meanwhile
        pin = len({core_of(cpu) for cpu in cores}) <= threads and len(pool) < threads
    if not pin:
        return
    with contextlib.suppress(OSError):  # a service may be forbidden to; it is a gain, no need
        for place, thread in enumerate([0, *pool]):
            os.sched_setaffinity(thread, {cores[place % len(cores)]})


def apart(processors):
    """One of each core's hardware threads first: two at work on a core share its vector units."""
    first, later, seen = [], [], set()
    for cpu in sorted(processors, key=lambda cpu: (-speed(cpu), cpu)):
        core = core_of(cpu)
        (later if core in seen else first).append(cpu)
        seen.add(core)
    return first + later


def core_of(cpu):
    """The processors of its core, as the kernel names them; itself where that cannot be read."""
    try:
        return (PROCESSORS / f"cpu{cpu}/topology/thread_siblings_list").read_text().strip()
    except OSError:
        return str(cpu)


def speed(cpu):
    """Of its core beside others of this machine, where some are larger; 0 where the kernel does not say."""
    for name in ("cpu_capacity", "cpufreq/cpuinfo_max_freq"):
        with contextlib.suppress(OSError, ValueError):
            return int((PROCESSORS / f"cpu{cpu}" / name).read_text())
    return 0


def whole_cores():
    """Cores that this process may use: those of its affinity, and what the quotas of its control groups leave of them."""
    if not hasattr(os, "sched_getaffinity"):
        return os.cpu_count() or 1
    cores = len({core_of(cpu) for cpu in os.sched_getaffinity(0)})
    root, ours = GROUPS, "/"
    with contextlib.suppress(OSError):
        lines = Path("/proc/self/cgroup").read_text().splitlines()
        ours = next((line[3:] for line in lines if line.startswith("0::")), "/")
    group = root if ".." in ours else root / ours.strip("/")
    for one in (group, *group.parents):
        with contextlib.suppress(OSError, ValueError):
            quota, period = (one / "cpu.max").read_text().split()
            cores = min(cores, -(-int(quota) // int(period)))  # "max" is no number
    with contextlib.suppress(OSError, ValueError):  # of the first version, as a container sees it
        quota, period = (int((root / "cpu" / f"cpu.cfs_{name}_us").read_text()) for name in ("quota", "period"))
        cores = min(cores, -(-quota // period)) if quota > 0 else cores
    return max(1, cores)


PROCESSORS, GROUPS = Path("/sys/devices/system/cpu"), Path("/sys/fs/cgroup")


def drawn(metadata, seed):
    random = np.random.default_rng(seed)
    arrays = {}
    for port in metadata["inputs"]:
        dtype = np.dtype(port["dtype"])
        if dtype.kind == "f":
            arrays[port["name"]] = np.asarray(random.standard_normal(port["shape"])).astype(dtype)
        else:
            arrays[port["name"]] = np.asarray(random.integers(0, 2, port["shape"])).astype(dtype)
    return arrays


def aligned(array):
    """A copy that begins at a multiple of 64 bytes: the library's vector loads need it, numpy does not promise it."""
    array = np.asarray(array, order="C")
    room = np.empty(array.nbytes + 64, np.uint8)
    begin = -room.ctypes.data % 64
    copy = room[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def check_words(arguments, refused):
    """Of the command line, before anything is loaded."""
    if arguments.seed < 0:
        refused(f"--seed {arguments.seed} must be 0 or more; leave it out if it does not matter")
    if arguments.runs < 0:
        refused(f"--runs {arguments.runs} must be 0 or more; leave it out for 50")
    if not arguments.seconds >= 0:
        refused(f"--seconds {arguments.seconds} must be 0 or more; leave it out for as long as --runs takes")
    count = len(arguments.inputs or [None])
    if len(arguments.outputs or [None] * count) != count:
        refused(f"--outputs names {len(arguments.outputs)} files for {count} of inputs; name one for each")
    for path in map(Path, arguments.outputs or ()):
        if path.is_dir() or not os.access(path.parent, os.W_OK):
            reason = "this is a directory" if path.is_dir() else f"nothing can be written in {path.parent}"
            refused(f"--outputs {path}: {reason}; name a file in a directory that is there")


def given(path, metadata, refused):
    """The arrays of an .npz file, with each that the network takes as it takes it; others are of no meaning."""
    ports = kinds(metadata)
    try:
        found = np.load(path)
        # Of what else is there nothing is read: it may be objects, which numpy refuses.
        there = getattr(found, "files", None)
        arrays = None if there is None else {name: found[name] for name in ports if name in there}
    except Exception as error:  # numpy raises whatever it meets in a file of another kind
        refused(
            f"--inputs {path}: {getattr(error, 'strerror', None) or error}; name an .npz file, as numpy.savez writes it"
        )
    if arrays is None:
        refused(
            f"--inputs {path}: one array without a name; write it with numpy.savez, by the names of the inputs: "
            f"{in_words(ports)}"
        )
    if said := misfit(arrays, there, metadata):
        refused(f"--inputs {path}: {said}")
    return arrays


def misfit(arrays, there, metadata):
    """Why the network does not take `arrays`, of the names `there`; "" where it does."""
    ports = kinds(metadata)
    for name, kind in ports.items():
        if name not in arrays:
            return f"no {name} among {', '.join(there) or 'nothing'}; the network takes {in_words(ports)}"
        if (here := f"{arrays[name].dtype} {arrays[name].shape}") != kind:
            return f"{name} is {here}, the network takes {kind}; convert it"
    return ""


def kinds(metadata):
    return {port["name"]: f"{port['dtype']} {tuple(port['shape'])}" for port in metadata["inputs"]}


def in_words(ports):
    return ", ".join(f"{name} ({kind})" for name, kind in ports.items())


def save(path, arrays):
    """As numpy's savez, which takes no array of the name "file"; raises CannotRun, with nothing half-written left."""
    try:
        with zipfile.ZipFile(path, "w") as archive:
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)
    except OSError as error:
        if error.filename is None and Path(path).is_file():  # it could be opened: what is there is a part
            Path(path).unlink()
        raise CannotRun(f"--outputs {path}: {error.strerror}; name a file that can be written") from None


def main():
    try:
        run()
    except CannotRun as error:
        print(f"cannot run here: {error}", file=sys.stderr)
        raise SystemExit(3) from None


def run():
    parser = argparse.ArgumentParser(description="Runs the compiled network and prints its latency.")
    parser.add_argument(
        "--inputs", nargs="+", help="an .npz with one array an input, or several; random ones otherwise"
    )
    parser.add_argument("--outputs", nargs="+", help="where to write the outputs, as .npz: one for each of the inputs")
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="after so many the runs end, whatever --runs says"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    parser.add_argument(
        "--paced",
        action="store_true",
        help="say when each of the inputs is done, and wait for a line of standard input",
    )
    parser.add_argument("--turns", action="store_true", help="the same again for every line of standard input")
    arguments = parser.parse_args()
    check_words(arguments, parser.error)
    metadata = described()
    check(metadata)
    inputs = [given(path, metadata, parser.error) for path in arguments.inputs or ()] or [
        drawn(metadata, arguments.seed)
    ]
    _machine, network, place = load(metadata)
    begun = time.perf_counter()
    for arrays, path in itertools.zip_longest(inputs, arguments.outputs or ()):
        tensors = [place.put(arrays[port["name"]]) for port in metadata["inputs"]]
        outputs = network(*tensors)
        if path:
            save(path, {name: place.got(output) for name, output in named(outputs, metadata)})
        if arguments.paced:
            place.wait()
            paused = time.perf_counter()
            print(json.dumps({"done": path}), flush=True)
            sys.stdin.readline()
            begun += time.perf_counter() - paused

    def timed(warm):
        while arguments.runs and time.perf_counter() < warm:
            network(*tensors)
            place.wait()
        times = []
        end = time.perf_counter() + arguments.seconds
        while len(times) < arguments.runs and not (times and time.perf_counter() >= end):
            began = time.perf_counter()
            network(*tensors)
            place.wait()
            times.append(time.perf_counter() - began)
        return times

    times = timed(begun + 0.2)
    if arguments.json:
        print(json.dumps({"seconds": times}), flush=True)
        for _ in sys.stdin if arguments.turns else ():
            print(json.dumps({"seconds": timed(time.perf_counter() + 0.05)}), flush=True)
    elif times:
        lower, median, upper = np.quantile(times, [0.25, 0.5, 0.75]) * 1e3
        by = metadata["hardware"] if isinstance(place, Gpu) else f"{os.environ['TVM_NUM_THREADS']} threads"
        print(
            f"{metadata['network']}: {median:.3f} ms a run (quartiles {lower:.3f} to {upper:.3f}, {len(times)} runs, "
            f"{by}; {1e3 * metadata['latency']['median']:.3f} ms when it was made)"
        )


if __name__ == "__main__":
    main()
