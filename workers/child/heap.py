"""Memory that was freed, back to the system."""

from __future__ import annotations

import ctypes


def give_back() -> None:
    """glibc keeps freed memory between blocks in use: after an import, more than all that is still needed."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's own
    if trim is not None:
        trim(0)
