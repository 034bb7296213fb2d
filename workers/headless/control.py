"""`manage.py control DIR pause|stop`: speaks to a run that `tune` started, from another terminal."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from workers.headless.errors import UserMistake
from workers.headless.run_directory import ARCHIVING, RUN
from workers.messages.whole import whole
from workers.supervision.directory import CONTROL, holds_journal, in_use


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("out", help="the directory given to tune as --out")
    parser.add_argument("word", choices=("pause", "stop"), help="stop keeps the best so far; tune --resume goes on")


def run(arguments: argparse.Namespace) -> int:
    """0 when the run was told; it obeys within seconds."""
    directory = Path(arguments.out) / RUN
    if not holds_journal(directory):
        raise UserMistake(f"{arguments.out}: no run was started there; name the directory given as --out")
    if not in_use(directory):
        raise UserMistake(f"{arguments.out}: the run there is not under way: nobody would hear it")
    control = directory / CONTROL
    if control.exists() and control.read_text() == ARCHIVING:
        raise UserMistake(
            f"{arguments.out}: the run there is over and its archive is being made; Ctrl-C where it runs ends that, and "
            "tune --resume makes the archive then"
        )
    with whole(control) as partial, partial.open("w", encoding="utf-8") as file:
        file.write(arguments.word)
        if os.geteuid() == 0:  # for whoever may do all: the run's own user must read it
            owner = directory.stat()
            os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
    return 0
