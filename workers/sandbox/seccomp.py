"""A filter on system calls: a process gives up, for itself and all it starts, what no tuning needs and an attack would.

Above all sockets: Landlock leaves those of UNIX with a path open, and UDP. Then what reaches other processes of the same
user (their limits, their priority, their shared memory), what has them wait for a file or tells which they use, and what
changes the modes, owners, attributes and times of files, which Landlock does not know either: by their paths it is refused,
of open ones told as done and not done. And room of a disk that no limit on a file bounds. Written as the kernel's classic BPF
(Documentation/userspace-api/seccomp_filter.rst, include/uapi/linux/{seccomp,filter,audit}.h), for 64-bit x86 and ARM.
A refused call fails with EPERM, one that callers can do without with ENOSYS or EOPNOTSUPP, so that they fall back.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Iterable

_SET_MODE_FILTER, _GET_ACTION_AVAILABLE = 1, 2
# Kernels before 5.16 would otherwise slow a filtered process down against Spectre, and so what is timed in it.
_SPECULATION_ALLOWED = 1 << 2
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06
_EQUAL, _AT_LEAST, _ANY_BIT = 0x15, 0x35, 0x45
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_X32 = 0x40000000
"""From here on x86 takes numbers of its third ABI, which would pass a filter that compares those of the second."""

_UNIX, _INTERNET = 1, (2, 10)  # AF_UNIX; AF_INET and AF_INET6
_STREAM, _PACKETS, _TYPE_MASK = 1, 5, 0xF  # of a socket's type, without SOCK_CLOEXEC and SOCK_NONBLOCK
_NEW_NAMESPACES = 0x7E020000  # CLONE_NEWNS to CLONE_NEWNET
_EVERYBODY = 0xFFFFFFFF  # kill(-1)
_MODE, _EMPTY = 0x3, 0x200  # O_ACCMODE, O_TRUNC
_ATTRIBUTES = (
    0x40086602,
    0x40046602,
    0x401C5820,
    0x40806685,
)  # FS_IOC_SETFLAGS, for 32 bits, FSSETXATTR, ENABLE_VERITY
_ROOM = (0x40305828, 0x4030582A, 0x40305839)  # FS_IOC_RESVSP, RESVSP64, ZERO_RANGE: fallocate by another name
_NAMELESS = 0x21  # MAP_SHARED with MAP_ANONYMOUS
_HOLDS = (1024, 1040, 1026)  # F_SETLEASE and F_SETDELEG, for which others wait who open the file; F_NOTIFY

_SAME_EVERYWHERE = {
    "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
    "mount_setattr": 442, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
    "pidfd_getfd": 438, "process_madvise": 440, "clone3": 435, "memfd_secret": 447, "fchmodat2": 452,
    "setxattrat": 463, "removexattrat": 466, "file_setattr": 469, "openat2": 437,
}  # fmt: skip
NUMBERS = {
    "x86_64": _SAME_EVERYWHERE | {
        "socket": 41, "socketpair": 53, "clone": 56, "kill": 62, "setsid": 112, "ptrace": 101,
        "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "keyctl": 250, "add_key": 248,
        "request_key": 249, "bpf": 321, "perf_event_open": 298, "userfaultfd": 323, "mount": 165, "umount2": 166,
        "pivot_root": 155, "chroot": 161, "unshare": 272, "setns": 308, "kexec_load": 246, "kexec_file_load": 320,
        "init_module": 175, "finit_module": 313, "delete_module": 176, "open_by_handle_at": 304,
        "name_to_handle_at": 303, "fanotify_init": 300, "shmget": 29, "msgget": 68, "semget": 64, "mq_open": 240,
        "memfd_create": 319, "seccomp": 317, "modify_ldt": 154, "prlimit64": 302, "setpriority": 141,
        "sched_setparam": 142, "sched_setscheduler": 144, "sched_setattr": 314, "ioprio_set": 251, "shmat": 30,
        "shmctl": 31, "semop": 65, "semctl": 66, "semtimedop": 220, "msgsnd": 69, "msgrcv": 70, "msgctl": 71,
        "mq_unlink": 241, "chmod": 90, "fchmodat": 268, "chown": 92, "lchown": 94, "fchownat": 260, "setxattr": 188,
        "lsetxattr": 189, "removexattr": 197, "lremovexattr": 198, "utime": 132, "utimes": 235, "futimesat": 261,
        "utimensat": 280, "ioctl": 16, "fchmod": 91, "fchown": 93, "fsetxattr": 190, "fremovexattr": 199,
        "truncate": 76, "open": 2, "openat": 257, "mmap": 9, "sched_setaffinity": 203, "fcntl": 72, "inotify_add_watch": 254,
        "fallocate": 285,
    },
    "aarch64": _SAME_EVERYWHERE | {
        "socket": 198, "socketpair": 199, "clone": 220, "kill": 129, "setsid": 157, "ptrace": 117,
        "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272, "keyctl": 219, "add_key": 217,
        "request_key": 218, "bpf": 280, "perf_event_open": 241, "userfaultfd": 282, "mount": 40, "umount2": 39,
        "pivot_root": 41, "chroot": 51, "unshare": 97, "setns": 268, "kexec_load": 104, "kexec_file_load": 294,
        "init_module": 105, "finit_module": 273, "delete_module": 106, "open_by_handle_at": 265,
        "name_to_handle_at": 264, "fanotify_init": 262, "shmget": 194, "msgget": 186, "semget": 190, "mq_open": 180,
        "memfd_create": 279, "seccomp": 277, "prlimit64": 261, "setpriority": 140, "sched_setparam": 118,
        "sched_setscheduler": 119, "sched_setattr": 274, "ioprio_set": 30, "shmat": 196, "shmctl": 195, "semop": 193,
        "semctl": 191, "semtimedop": 192, "msgsnd": 189, "msgrcv": 188, "msgctl": 187, "mq_unlink": 181,
        "fchmodat": 53, "fchownat": 54, "setxattr": 5, "lsetxattr": 6, "removexattr": 14, "lremovexattr": 15,
        "utimensat": 88, "ioctl": 29, "fchmod": 52, "fchown": 55, "fsetxattr": 7, "fremovexattr": 16,
        "truncate": 45, "openat": 56, "mmap": 222, "sched_setaffinity": 122, "fcntl": 25, "inotify_add_watch": 27,
        "fallocate": 47,
    },
}  # fmt: skip
_AUDIT_NAMES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# glibc starts threads with clone when there is no clone3, whose flags a filter cannot see; memory that only a
# descriptor holds counts for nobody. What openat2 is to do lies in memory, too.
_ABSENT = frozenset({"clone3", "memfd_create", "openat2"})
_LEFT = frozenset({"seccomp", "sched_setaffinity", "mmap"})  # a confined process may confine its own children further
# Whoever may read a file of its user's may do these to it: they need no descriptor to write by. Linkers and archivers ask for
# them of what they wrote, and break off where they are refused.
_PRETENDED = frozenset({"fchmod", "fchown", "fsetxattr", "fremovexattr"})

_libc = ctypes.CDLL(None, use_errno=True)


Steps = list[bytes]


def _step(code: int, value: int, jump: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("=HBBI", code, jump, otherwise, value)


_REFUSE = _step(_RETURN, _ERRNO | errno.EPERM)
_MISSING = _step(_RETURN, _ERRNO | errno.ENOSYS)
_UNSUPPORTED = _step(_RETURN, _ERRNO | errno.EOPNOTSUPP)
_PRETEND = _step(_RETURN, _ERRNO)  # no error, and nothing done
_PERMIT = _step(_RETURN, _ALLOW)


def _argument(index: int, upper: bool = False) -> bytes:
    """Loads its lower half: both machines are little-endian, and the kernel takes an int, or flags that fit one.

    Of an address the `upper` half counts too."""
    return _step(_LOAD, _ARGUMENTS + 8 * index + 4 * upper)


def _unless(value: int, then: Steps) -> Steps:
    """`then` is skipped when the loaded value is this one."""
    return [_step(_EQUAL, value, len(then), 0), *then]


def _when(value: int, then: Steps) -> Steps:
    """`then` is skipped when the loaded value is another one."""
    return [_step(_EQUAL, value, 0, len(then)), *then]


def _sockets(families: Iterable[int], gpu: bool) -> Steps:
    """CUDA waits on a socket of packets for others that would share its memory, and does not start without. Hardly a service
    listens on one of that kind."""
    allowed = [step for family in families for step in _when(family, [_PERMIT])]
    packets = [*_unless(_UNIX, [_REFUSE]), _argument(1), _step(_AND, _TYPE_MASK), *_when(_PACKETS, [_PERMIT])]
    return [_argument(0), *allowed, *(packets if gpu else ()), _REFUSE]


def _emptied(flags: int) -> Steps:
    """Landlock before its third version (Linux 6.2) does not know that opening may empty a file: one that is opened to write it
    judges all the same, one that is opened to read, or for neither, it does not."""
    others = [step for mode in (0, _MODE) for step in _when(_EMPTY | mode, [_REFUSE])]
    return [_argument(flags), _step(_AND, _EMPTY | _MODE), *others, _PERMIT]


def program(machine: str, network: bool, pins: bool = True, gpu: bool = False, shares: bool = True) -> bytes:
    """The filter of one architecture; raises KeyError for one that it does not know."""
    numbers = NUMBERS[machine]
    steps = [_step(_LOAD, _ARCHITECTURE), *_unless(_AUDIT_NAMES[machine], [_REFUSE]), _step(_LOAD, _NUMBER)]
    if machine == "x86_64":
        steps += [_step(_AT_LEAST, _X32, 0, 1), _REFUSE]
    # Pairs are for talking to one's own children. Only of streams: a datagram may be sent to any other address.
    pair = [_argument(0), *_unless(_UNIX, [_REFUSE]), _argument(1), _step(_AND, _TYPE_MASK), *_when(_STREAM, [_PERMIT])]
    by_arguments = {
        "socket": _sockets(_INTERNET if network else (), gpu),
        "socketpair": [*pair, _REFUSE],
        "clone": [_argument(0), _step(_ANY_BIT, _NEW_NAMESPACES, 0, 1), _REFUSE, _PERMIT],
        "kill": [_argument(0), *_when(_EVERYBODY, [_REFUSE]), _PERMIT],
        # Its own limits and its own priority only: 0 is PRIO_PROCESS, and 0 is who calls. Affinity is left where kernels are
        # timed, which names the threads of its own pool by their numbers.
        "prlimit64": [_argument(0), *_when(0, [_PERMIT]), _REFUSE],
        "setpriority": [_argument(0), *_unless(0, [_REFUSE]), _argument(1), *_when(0, [_PERMIT]), _REFUSE],
        "open": _emptied(1),
        "openat": _emptied(2),
        "ioctl": [
            _argument(1),
            *(step for flags in _ATTRIBUTES for step in _when(flags, [_REFUSE])),
            *(step for room in _ROOM for step in _when(room, [_UNSUPPORTED])),
            _PERMIT,
        ],
        "fcntl": [_argument(1), *(step for command in _HOLDS for step in _when(command, [_REFUSE])), _PERMIT],
        # Room beyond the end of a file RLIMIT_FSIZE does not bound, and it is taken in no time: a whole disk between two looks
        # at a tree's files. Where that is not to be had, as on some file systems, programs write.
        "fallocate": [_argument(1), *_when(0, [_PERMIT]), _UNSUPPORTED],
        # Of an open file, which has no path here.
        "utimensat": [_argument(1), *_unless(0, [_REFUSE]), _argument(1, upper=True), *_when(0, [_PRETEND]), _REFUSE],
    }
    if not pins:
        by_arguments["sched_setaffinity"] = [_argument(0), *_when(0, [_PERMIT]), _PRETEND]
    if not shares:  # what of it is not mapped any more stays, and is no process's
        by_arguments["mmap"] = [_argument(3), _step(_AND, _NAMELESS), *_when(_NAMELESS, [_REFUSE]), _PERMIT]
    for name, block in by_arguments.items():
        if name in numbers:  # ARM has no open
            steps += _when(numbers[name], block)
    for name in sorted(numbers.keys() - by_arguments.keys() - _LEFT):
        answer = _MISSING if name in _ABSENT else _PRETEND if name in _PRETENDED else _REFUSE
        steps += _when(numbers[name], [answer])
    return b"".join((*steps, _PERMIT))


def _seccomp(operation: int, flags: int, argument: object) -> int:
    number = NUMBERS[os.uname().machine]["seccomp"]
    return int(_libc.syscall(ctypes.c_long(number), ctypes.c_uint(operation), ctypes.c_uint(flags), argument))


def supported() -> bool:
    """Whether this kernel filters system calls, and for a processor whose numbers are known here."""
    action = ctypes.c_uint32(_ERRNO)
    return os.uname().machine in NUMBERS and _seccomp(_GET_ACTION_AVAILABLE, 0, ctypes.byref(action)) == 0


def restrict(*, network: bool, pins: bool = True, gpu: bool = False, shares: bool = True) -> bool:
    """Filters this process from now on; False where that cannot be. `network` True leaves it internet sockets, `gpu` True those
    of CUDA, `pins` False of who runs where only its own say, `shares` False no memory that others may have too.

    It cannot leave its session either, so that whoever ends it finds all it started. The caller must have set
    PR_SET_NO_NEW_PRIVS. Raises OSError when a kernel that filters will not take this filter.
    """
    if not supported():
        return False
    code = program(os.uname().machine, network, pins, gpu, shares)
    instructions = ctypes.create_string_buffer(code, len(code))
    # struct sock_fprog: a count, and at the next multiple of a pointer's size where the instructions are.
    header = struct.pack("@HP", len(code) // 8, ctypes.addressof(instructions))
    if _seccomp(_SET_MODE_FILTER, _SPECULATION_ALLOWED, header) != 0:
        reason = ctypes.get_errno()
        raise OSError(reason, f"seccomp: {os.strerror(reason)}")
    return True
