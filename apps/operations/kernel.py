"""What the kernel offers."""

from __future__ import annotations

import ctypes
from contextlib import suppress

_CREATE_RULESET, _VERSION_FLAG = 444, 1


def landlock_level() -> int:
    """The kernel's Landlock version, 0 when it has none or it is switched off."""
    with suppress(AttributeError, OSError):
        libc = ctypes.CDLL(None, use_errno=True)
        asked = libc.syscall(ctypes.c_long(_CREATE_RULESET), None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG))
        return max(0, int(asked))
    return 0
