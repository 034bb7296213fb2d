"""What a filtered process is refused, tried by a process that is."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.kernel import needs
from workers.sandbox import landlock, seccomp, spawn
from workers.sandbox.spawn import Access

ROOT = Path(__file__).resolve().parents[2]
MACHINE = os.uname().machine
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
pytestmark = needs("filter")
EPERM, EFBIG, ENOSYS, EOPNOTSUPP = 1, 27, 38, 95


def says(program: str, access: Access | None) -> Any:
    """What a Python program prints as JSON under this access."""
    argv = [sys.executable, "-c", f"import json, os, socket\n{program}"]
    with spawn.spawn(argv, access=access, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        text = child.stdout.read()
        child.end(5)
    return json.loads(text)


CALLS = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *(ctypes.c_long(a) for a in arguments))
    return 0 if result >= 0 else ctypes.get_errno()
"""


def filtered(program: str, change: str = "", network: bool = False) -> Any:
    """The same with nothing but the filter, which `change` may spoil; None when a signal ended it."""
    code = (
        f"import json, os, socket\nfrom workers.sandbox import confine, seccomp\n{change}\nconfine._prctl(38, 1)\n"
        f"assert seccomp.restrict(network={network})\n{CALLS}\n{program}"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    if ran.returncode < 0:
        return None
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.mark.parametrize("machine", sorted(seccomp.NUMBERS))
def test_the_numbers_are_those_of_the_kernels_headers(machine: str) -> None:
    if not HEADERS[machine].exists():
        pytest.skip("no kernel headers here")
    listed = dict(re.findall(r"^#define __NR3?2?6?4?_?(\w+)\s+(\d+)", HEADERS[machine].read_text(), re.MULTILINE))
    newest = max(map(int, listed.values()))
    ours = {name: number for name, number in seccomp.NUMBERS[machine].items() if name in listed or number <= newest}
    assert {name: int(listed[name]) for name in ours if name in listed} == ours


LEASED = """
file = os.open(seccomp.__file__, os.O_RDONLY)
held = [libc.fcntl(file, command, ctypes.c_long(0)) for command in (1024, 1040, 1026, 1, 3)]
print(json.dumps([result >= 0 for result in held] + [ctypes.get_errno()]))
"""
"""A lease has all wait who open the file to write it, for as long as fs.lease-break-time; who may read it can have one."""


def test_what_no_tuning_needs_is_refused() -> None:
    decided = {
        "socket", "socketpair", "clone", "kill", "seccomp", "prlimit64", "setpriority", "utimensat", "ioctl", "open",
        "openat", "sched_setaffinity", "fcntl", "mmap", "fallocate",
    }  # fmt: skip
    numbers = {name: number for name, number in seccomp.NUMBERS[MACHINE].items() if name not in decided}
    answers = filtered(
        f"print(json.dumps({{name: call(number, 0, 0, 0, 0, 0) for name, number in {numbers!r}.items()}}))"
    )
    answered = {
        "clone3": ENOSYS,
        "memfd_create": ENOSYS,
        "openat2": ENOSYS,
        **dict.fromkeys(("fchmod", "fchown", "fsetxattr", "fremovexattr"), 0),
    }
    assert answers == {name: answered.get(name, EPERM) for name in numbers}
    assert filtered(LEASED) == [False] * 3 + [True] * 2 + [EPERM]


FAMILIES = """
def opened(family, kind=socket.SOCK_STREAM):
    try: socket.socket(family, kind).close(); return 0
    except OSError as error: return error.errno
print(json.dumps([opened(family) for family in (1, 2, 10, 17, 38, 40)] + [opened(16, socket.SOCK_RAW)]))
"""


@pytest.mark.parametrize("network", [False, True])
def test_sockets_are_refused_but_those_of_a_network_that_is_allowed(network: bool) -> None:
    unix, four, six, *others = says(FAMILIES, Access(network=network))
    assert unix == EPERM
    assert {four, six} <= ({0, 97} if network else {EPERM})  # 97: a kernel without IPv6
    assert set(others) == {EPERM}


@pytest.mark.parametrize("gpu", [False, True])
def test_of_local_sockets_a_gpus_process_has_those_of_packets_alone(gpu: bool) -> None:
    """CUDA makes one as it starts; services that others should not reach listen on streams and datagrams."""
    kinds = f"{FAMILIES}\nprint(json.dumps([opened(1, kind) for kind in (5, 1, 2)]))"
    assert says(kinds.replace("print(", "(", 1), Access(gpu=gpu)) == [0 if gpu else EPERM, EPERM, EPERM]


@pytest.mark.parametrize("confined", [True, False])
def test_a_server_on_a_socket_file_is_out_of_reach(confined: bool, tmp_path: Path) -> None:
    """Landlock lets a process connect to any socket file whose path it knows."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        server.listen()
        program = (
            "try:\n    found = socket.socket(socket.AF_UNIX).connect_ex("
            f"{str(tmp_path / 'socket')!r})\nexcept OSError as error: found = error.errno\nprint(found)"
        )
        assert says(program, Access(network=False) if confined else None) == (EPERM if confined else 0)


def test_a_pair_to_talk_to_a_child_is_left_and_one_that_can_be_sent_elsewhere_is_not() -> None:
    program = (
        "ours, theirs = socket.socketpair(); theirs.send(b'x'); found = [ours.recv(1) == b'x']\n"
        "for kind in (socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):\n"
        "    try: socket.socketpair(socket.AF_UNIX, kind); found.append(0)\n"
        "    except OSError as error: found.append(error.errno)\n"
        "print(json.dumps(found))"
    )
    assert says(program, Access(network=False)) == [True, EPERM, EPERM]


def test_threads_processes_and_pipes_go_on() -> None:
    program = (
        "import subprocess, threading\n"
        "found = []; thread = threading.Thread(target=found.append, args=(1,)); thread.start(); thread.join()\n"
        "found.append(subprocess.run(['true']).returncode); child = os.fork()\n"
        "if not child: os._exit(3)\n"
        "found.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])); os.kill(os.getpid(), 0)\n"
        "print(json.dumps(found))"
    )
    assert says(program, Access(network=False)) == [1, 0, 3]


def test_no_new_namespace_no_new_session_and_no_signal_to_everybody() -> None:
    clone, kill = (seccomp.NUMBERS[MACHINE][name] for name in ("clone", "kill"))
    program = (
        "try: os.setsid(); session = 0\nexcept OSError as error: session = error.errno\n"
        f"signals = [call({kill}, -1, 0), call({kill}, os.getpid(), 0)]\n"
        f"print(json.dumps([session, call({clone}, 0x10000011, 0, 0, 0, 0), *signals]))"
    )
    assert filtered(program) == [EPERM, EPERM, EPERM, 0]


OTHERS = """
import resource
found = {}
def tried(name, act):
    try: act(); found[name] = 0
    except OSError as error: found[name] = error.errno
tried("its limit", lambda: resource.prlimit(OTHER, resource.RLIMIT_NOFILE, (8, 8)))
tried("its limit, read", lambda: resource.prlimit(OTHER, resource.RLIMIT_NOFILE))
tried("its priority", lambda: os.setpriority(os.PRIO_PROCESS, OTHER, 19))
tried("everybody's priority", lambda: os.setpriority(os.PRIO_USER, 0, 19))
tried("its scheduler", lambda: os.sched_setscheduler(OTHER, os.SCHED_IDLE, os.sched_param(0)))
tried("our limit", lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
tried("our priority", lambda: os.nice(1))
tried("our threads' processors", lambda: os.sched_setaffinity(0, os.sched_getaffinity(0)))
print(json.dumps(found))
"""


def reached(confined: bool) -> Any:
    """What a process may change of one beside it, and of itself."""
    with spawn.spawn(["sleep", "600"]) as other:
        other.protection()  # it set its own limits by now
        return says(OTHERS.replace("OTHER", str(other.pid)), Access() if confined else None)


def test_limits_and_priorities_are_a_process_s_own() -> None:
    theirs, ours = EPERM, 0
    assert reached(confined=True) == {
        "its limit": theirs, "its limit, read": theirs, "its priority": theirs, "everybody's priority": theirs,
        "its scheduler": theirs, "our limit": ours, "our priority": ours, "our threads' processors": ours,
    }  # fmt: skip


PATHS = """
found = {}
def tried(name, act):
    try: act(); found[name] = 0
    except OSError as error: found[name] = error.errno
tried("mode", lambda: os.chmod(PATH, 0o777))
tried("mode of a name beside", lambda: os.chmod("file", 0o777, dir_fd=os.open(FOLDER, os.O_RDONLY)))
tried("owner", lambda: os.chown(PATH, os.getuid(), os.getgid()))
tried("owner of a link", lambda: os.lchown(PATH, os.getuid(), os.getgid()))
tried("attribute", lambda: os.setxattr(PATH, "user.x", b"x"))
tried("times", lambda: os.utime(PATH))
mine = os.open("mine", os.O_WRONLY | os.O_CREAT)
tried("mode of an open file", lambda: os.fchmod(mine, 0o640))
tried("times of an open file", lambda: os.utime(mine))
print(json.dumps(found))
"""


@pytest.mark.parametrize("confined", [True, False])
def test_files_are_not_changed_by_their_paths_and_through_what_opened_them_told_to_be(
    confined: bool, tmp_path: Path
) -> None:
    """Landlock lets a process change the mode of any file that it knows by name and the user owns."""
    (tmp_path / "work").mkdir()
    (tmp_path / "file").write_text("secret")
    (tmp_path / "file").chmod(0o600)
    words = PATHS.replace("PATH", repr(str(tmp_path / "file"))).replace("FOLDER", repr(str(tmp_path)))
    work = f"os.chdir({str(tmp_path / 'work')!r})\n"
    found = says(work + words, Access(read=(str(tmp_path),), write=(str(tmp_path / "work"),)) if confined else None)
    opened = {name: error for name, error in found.items() if name.endswith("open file")}
    assert set(opened.values()) == {0}
    by_path = {name: error for name, error in found.items() if name not in opened and (confined or name != "attribute")}
    assert set(by_path.values()) == {EPERM if confined else 0}, by_path
    assert (tmp_path / "file").stat().st_mode & 0o777 == (0o600 if confined else 0o777)
    assert ((tmp_path / "work/mine").stat().st_mode & 0o777 == 0o640) is not confined


EMPTIED = """
def tried(act):
    try: return act() and 0
    except OSError as error: return error.errno
opened = lambda mode: lambda: os.close(os.open(PATH, mode | os.O_TRUNC))
ways = [lambda: os.truncate(PATH, 0), opened(0), opened(3)]
kept = [os.close(os.open("mine", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)), os.truncate(os.open("mine", os.O_WRONLY), 0)]
print(json.dumps([tried(way) for way in ways] + kept))
"""


@pytest.mark.parametrize("without", ["", "truncate", "openat"])
def test_no_file_is_emptied_but_what_is_opened_to_write(without: str, tmp_path: Path) -> None:
    """Landlock knows of it from Linux 6.2 on; here it is not asked."""
    (tmp_path / "theirs").write_text("theirs")
    words = f"os.chdir({str(tmp_path)!r})\n" + EMPTIED.replace("PATH", repr(str(tmp_path / "theirs")))
    change = f"seccomp.NUMBERS[{MACHINE!r}][{without!r}] = 100000" if without else ""
    found = filtered(words, change=change)
    assert (found == [EPERM, EPERM, EPERM, None, None]) is (without == ""), found
    assert ((tmp_path / "theirs").read_text() == "theirs") is (without == "")


PINNED = """
try: os.sched_setaffinity(OTHER, {min(os.sched_getaffinity(0))})
except OSError: pass
os.sched_setaffinity(0, os.sched_getaffinity(0))
print(json.dumps(len(os.sched_getaffinity(OTHER))))
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor")
@pytest.mark.parametrize("pins", [False, True])
def test_who_times_nothing_moves_nobody(pins: bool) -> None:
    """The other is confined too: root's, with all its capabilities, would be out of reach."""
    with spawn.spawn(["sleep", "600"], access=Access()) as other:
        other.protection()
        many = len(os.sched_getaffinity(other.pid))
        assert (says(PINNED.replace("OTHER", str(other.pid)), Access(pins=pins)) == many) is not pins


MAPPED = """
import mmap, threading
def tried(act):
    try: act(); return True
    except OSError: return False
def of_a_file():
    with open("shared", "wb+") as file:
        file.truncate(4096)
        mmap.mmap(file.fileno(), 4096)
ways = [lambda: mmap.mmap(-1, 4096), lambda: open("/dev/zero", "rb")]
kept = [lambda: mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), of_a_file, threading.Thread().start]
print(json.dumps([[tried(way) for way in group] for group in (ways, kept)]))
"""


@pytest.mark.parametrize("shares", [False, True])
def test_who_shares_no_memory_holds_what_it_seems_to_hold(shares: bool, tmp_path: Path) -> None:
    """What is unmapped of memory that is shared and no file's stays, and no process has it among what is resident."""
    access = Access(write=(str(tmp_path),), shares=shares)
    (anonymous, zero), kept = says(f"os.chdir({str(tmp_path)!r})\n{MAPPED}", access)
    assert (anonymous, all(kept)) == (shares, True)
    assert not zero or not landlock.supported()


OPENED = """
for path in PATHS:
    file = os.open(path, os.O_RDONLY)
    os.fchmod(file, 0o777)
    os.utime(file, (1, 1))
    try: os.setxattr(file, "user.x", b"x")
    except OSError: pass
import fcntl
refused = set()
for flags in (0x40086602, 0x40046602, 0x401C5820, 0x40806685):
    try: fcntl.ioctl(file, flags, bytes(128))
    except OSError as error: refused.add(error.errno)
print(json.dumps(sorted(refused)))
"""


@pytest.mark.parametrize("confined", [True, False])
def test_what_may_be_read_stays_as_it_is(confined: bool, tmp_path: Path) -> None:
    """A descriptor to read by is enough for the kernel: the site's own code could be made unreadable, or everybody's."""
    readable = tmp_path / "readable"
    readable.mkdir(mode=0o700)
    (readable / "file").write_text("theirs")
    (readable / "file").chmod(0o600)
    paths = [readable / "file", readable]
    program = OPENED.replace("PATHS", repr([str(path) for path in paths]))
    refused = says(program, Access(read=(str(readable),)) if confined else None)
    assert not confined or refused == [EPERM]
    assert [path.stat().st_mode & 0o777 for path in paths] == ([0o600, 0o700] if confined else [0o777, 0o777])
    assert [path.stat().st_mtime == 1 for path in paths] == [not confined] * 2
    assert not confined or not any(os.listxattr(path) for path in paths)


def test_a_library_is_linked_all_the_same(tmp_path: Path) -> None:
    """The linker makes what it wrote executable by its path, and goes on where it may not."""
    if shutil.which("cc") is None:
        pytest.skip("no compiler here")
    (tmp_path / "one.c").write_text("int one(void) { return 1; }")
    program = (
        "import subprocess, ctypes\n"
        f"ran = subprocess.run(['cc', '-shared', '-fPIC', '-o', 'one.so', 'one.c'], cwd={str(tmp_path)!r})\n"
        f"print(json.dumps([ran.returncode, ctypes.CDLL({str(tmp_path / 'one.so')!r}).one()]))"
    )
    assert says(program, Access(write=(str(tmp_path),))) == [0, 1]


ALLOCATED = """
import resource, signal, struct, tempfile
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
with tempfile.TemporaryFile() as file:
    kept = [libc.fallocate(file.fileno(), 1, ctypes.c_long(0), ctypes.c_long(64 << 20)) and ctypes.get_errno()]
    space = struct.pack("hhqqiI4i", 0, 0, 0, 64 << 20, 0, 0, 0, 0, 0, 0)
    for request in (0x40305828, 0x4030582A, 0x40305839):
        kept.append(libc.ioctl(file.fileno(), ctypes.c_ulong(request), space) and ctypes.get_errno())
    beyond = 512 * os.fstat(file.fileno()).st_blocks
    os.posix_fallocate(file.fileno(), 0, 1 << 20)
    try:
        os.posix_fallocate(file.fileno(), 0, 2 << 20)
    except OSError as error:
        kept.append(error.errno)
    print(json.dumps([kept, beyond, os.fstat(file.fileno()).st_size]))
"""


def test_of_the_disk_a_file_gets_no_more_room_than_its_limit() -> None:
    assert filtered(ALLOCATED) == [[*[EOPNOTSUPP] * 4, EFBIG], 0, 1 << 20]


@pytest.mark.mutation
@pytest.mark.parametrize("change", [f"seccomp.NUMBERS[{MACHINE!r}]['fallocate'] = 100000", "seccomp._ROOM = ()"])
def test_a_filter_without_room_beyond_the_end_is_noticed(change: str) -> None:
    errors, beyond, _ = filtered(ALLOCATED, change=change)
    if all(errors):
        pytest.skip("this file system has no room beyond the end of a file, or bounds it")
    assert beyond >= 64 << 20


@pytest.mark.mutation
def test_a_filter_without_prlimit_is_noticed() -> None:
    change = f"seccomp.NUMBERS[{MACHINE!r}]['prlimit64'] = 100000"
    program = "import resource; resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE); print(0)"
    assert filtered(program, change=change) == 0


@pytest.mark.mutation
def test_a_filter_without_leases_is_noticed() -> None:
    assert filtered(LEASED, change=f"seccomp.NUMBERS[{MACHINE!r}]['fcntl'] = 100000")[0]


X32 = "print(call(0x40000000 | 41, 1, 1, 0))"
# Through the gate of 32-bit programs, where socket is number 359: push rbx, load, int 0x80, pop rbx, ret.
COMPAT = """
import mmap, struct
code = b"\\x53\\xb8" + struct.pack("<I", 359) + b"\\xbb" + struct.pack("<I", 1) + b"\\xb9" + struct.pack("<I", 1)
code += b"\\xba" + struct.pack("<I", 0) + b"\\xcd\\x80\\x5b\\xc3"
page = mmap.mmap(-1, 4096, prot=7)
page.write(code)
address = ctypes.addressof(ctypes.c_char.from_buffer(page))
print(ctypes.CFUNCTYPE(ctypes.c_int)(address)())
"""
WITHOUT_MACHINE = "whole = seccomp.program; seccomp.program = lambda *a: (p := whole(*a))[:0] + p[24:]"


@pytest.mark.skipif(MACHINE != "x86_64", reason="only x86 has three ways in")
def test_the_other_ways_into_the_kernel_are_closed() -> None:
    assert filtered(X32) == EPERM
    assert filtered(COMPAT) in (-EPERM, None)


@pytest.mark.mutation
@pytest.mark.skipif(MACHINE != "x86_64", reason="only x86 has three ways in")
def test_a_filter_that_looks_at_the_number_alone_is_noticed() -> None:
    assert filtered(X32, change="seccomp._X32 = 0xFFFFFFFF") != EPERM
    through = filtered(COMPAT, change=WITHOUT_MACHINE)
    if through is None:
        pytest.skip("this kernel runs no 32-bit programs")
    assert through >= 0


@pytest.mark.mutation
def test_a_filter_without_sockets_is_noticed() -> None:
    change = f"seccomp.NUMBERS[{MACHINE!r}]['socket'] = 100000"
    assert filtered(FAMILIES, change=change)[0] == 0


def test_what_is_timed_is_not_slowed_down_against_spectre() -> None:
    program = "print(json.dumps([line for line in open('/proc/self/status') if line.startswith('Specul')]))"
    assert says(program, Access()) == says(program, None)


def test_a_kernel_that_does_not_filter_stops_only_what_requires_it() -> None:
    for required, starts in ((0, True), (1, False)):
        nothing: dict[str, object] = {"files": {}, "network": False, "required": required}
        nothing["calls"] = {"gpu": False, "pins": True, "shares": True}
        program = (
            "from workers.sandbox import confine, landlock, seccomp\n"
            "seccomp.supported = lambda: False; landlock.supported = lambda: 0; landlock.restrict = lambda **_: 7\n"
            f"access = {nothing}\n"
            "limits = dict.fromkeys(('address_space', 'cpu_seconds', 'file_size', 'processes', 'open_files'))\n"
            "print(tuple(confine.confine({'parent': None, 'nice': 0, 'limits': limits, 'access': access})))"
        )
        ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
        assert (ran.stdout == "(7, False)\n") is starts
        assert ("filter on system calls" in ran.stderr) is not starts


def test_a_child_says_that_it_is_filtered_and_so_do_its_own() -> None:
    program = (
        "import subprocess, sys; from workers.sandbox.spawn import spawn\n"
        "inner = [sys.executable, '-c', \"import os; print(os.environ['TUNINGSITE_FILTERED'])\"]\n"
        "with spawn(inner, stdout=subprocess.PIPE) as child:\n"
        "    said = child.stdout.read().decode().strip(); group = child.pid\n"
        "    print(json.dumps([os.environ['TUNINGSITE_FILTERED'], said, child.end(5)]))"
    )
    assert says(program, Access()) == ["1", "1", 0]
    with spawn.spawn(["true"], access=Access()) as child:
        assert child.protection().filtered
    with spawn.spawn(["true"]) as child:
        assert not child.protection().filtered
