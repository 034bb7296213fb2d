"""Landlock through its system calls: a process gives up files and TCP for itself and all it starts, root or not.

Source: the kernel's Documentation/userspace-api/landlock.rst and include/uapi/linux/landlock.h. UDP and UNIX sockets
with a path stay open: Landlock does not know them, the filter on system calls closes them.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable, Sequence

# The same numbers on every architecture that Python wheels are made for.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG = 1
_PATH_BENEATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_FIRST_RIGHTS = (1 << 13) - 1
_REFER, _TRUNCATE, _IOCTL_DEVICE = 1 << 13, 1 << 14, 1 << 15
_TCP = 0b11
_SCOPES = 0b11  # abstract UNIX sockets and signals to processes outside

SCOPED = 6
"""The first version (Linux 6.12) that confines files, TCP, abstract UNIX sockets and signals."""

_LISTING = _READ_DIR
_READING = _EXECUTE | _READ_FILE | _READ_DIR
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEVICE

_libc = ctypes.CDLL(None, use_errno=True)


def _syscall(number: int, *arguments: object) -> int:
    result = int(_libc.syscall(ctypes.c_long(number), *arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def supported() -> int:
    """The kernel's Landlock version, 0 when it has none or it is switched off."""
    try:
        return _syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG))
    except OSError:
        return 0


def _handled(version: int) -> int:
    later = ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL_DEVICE))
    return _FIRST_RIGHTS | sum(right for since, right in later if version >= since)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # a path that is not there needs no permission
    try:
        if not stat.S_ISDIR(os.fstat(beneath).st_mode):
            rights &= _OF_FILES
        if rights:
            rule = struct.pack("=Qi", rights, beneath)
            _syscall(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(_PATH_BENEATH), rule, ctypes.c_uint32(0))
    finally:
        os.close(beneath)


def restrict(*, listing: Iterable[str], reading: Iterable[str], writing: Sequence[str], network: bool) -> int:
    """Leaves this process only the named paths and all beneath them; returns the Landlock version in force, 0: none.

    `listing`: names only. `reading`: read and execute. `writing`: everything. `network` False denies TCP bind and
    connect (version 4 on). The caller must have set PR_SET_NO_NEW_PRIVS. Raises OSError when the kernel refuses a
    rule it knows.
    """
    version = supported()
    if not version:
        return 0
    handled = _handled(version)
    fields = [handled, 0 if network else _TCP, _SCOPES]
    known = 3 if version >= SCOPED else 2 if version >= 4 else 1
    attributes = struct.pack(f"={known}Q", *fields[:known])
    ruleset = _syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))
    try:
        for paths, rights in ((listing, _LISTING), (reading, _READING), (writing, handled)):
            for path in paths:
                _allow(ruleset, path, rights & handled)
        _syscall(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)
    return version
