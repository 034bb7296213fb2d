"""How a command line without the web begins and ends. Exit codes: 0 done, 1 failed, 2 the user's mistake, 130 stopped, 141
nobody reads on (`| head`)."""

from __future__ import annotations

import argparse
import errno
import io
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

from workers.headless.errors import Failure, UserMistake
from workers.headless.terminal import visible
from workers.messages.full_disk import NO_ROOM

NO_MORE = (*NO_ROOM, errno.EFBIG)
UNHEARD = 141  # as a shell tells of a program that SIGPIPE ended


def module(name: str) -> Callable[[], Any]:
    """A command's, loaded when it is called."""
    return partial(import_module, name)


def run_command(
    parser: argparse.ArgumentParser,
    commands: Sequence[tuple[str, Callable[[], Any], str]],
    stopped: str,
    argv: list[str] | None,
) -> int:
    """The exit code of the command that `argv` names. `commands` are (name, module, purpose); a module, which is made for the
    chosen command only, has `add_arguments(parser)` and `run(arguments) -> int`. `stopped` says on Ctrl-C, and when the disk is
    full, what is kept."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # what a terminal lacks, like ± in ASCII, ends nothing
    known = parser.add_subparsers(dest="command", required=True)
    words = sys.argv[1:] if argv is None else argv
    for name, module_of, purpose in commands:
        parser_of = known.add_parser(name, help=purpose)
        if name in words:  # or a file of that name, which does no harm
            command = module_of()
            command.add_arguments(parser_of)
            parser_of.set_defaults(run=command.run)
    arguments = parser.parse_args(words)
    try:
        code = int(arguments.run(arguments))
        sys.stdout.flush()
        return code
    except UserMistake as mistake:
        _say(str(mistake))
        return 2
    except Failure as failure:
        _say(str(failure))
        return 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else the interpreter complains when it ends
        return UNHEARD
    except OSError as error:
        _say(f"{_refused(error, getattr(arguments, 'out', None))}; {stopped}")
        return 1
    except KeyboardInterrupt:
        _say(f"\nstopped; {stopped}")
        return 130


def _say(text: str) -> None:
    sys.stderr.write(f"{visible(text)}\n")


def _refused(error: OSError, out: str | None) -> str:
    """What the system refused, and the next step. A write that finds no room names no file: it was one in `out`."""
    full = error.errno in NO_MORE
    place = error.filename2 or error.filename or (out if full else None)
    said = error.strerror or str(error)
    next_step = "make room (df, quota and ulimit -f tell how much there is)" if full else "put that right"
    return f"{place}: {said}; {next_step}" if place else f"{said}; {next_step}"
