"""`python -I -S tied.py PARENT PROGRAM ...`: becomes PROGRAM, which the kernel kills when process PARENT is gone.

A script of its own, run by path, so that nothing happens between fork and exec in a process with Django in it.
Standard library only. The tie is to the thread that started us: a launcher starts its parts from its main thread.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import NoReturn

_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> NoReturn:
    parent, *program = arguments
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(ctypes.c_int(_PR_SET_PDEATHSIG), *map(ctypes.c_ulong, (signal.SIGKILL, 0, 0, 0))) != 0:
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != int(parent):
        os.kill(os.getpid(), signal.SIGKILL)
    # Python ignores these two, and exec would hand that on.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.execvp(program[0], program)


if __name__ == "__main__":
    main(sys.argv[1:])
