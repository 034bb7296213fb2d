"""Filling cells one after the other: what breaks off is told and run again the next time, what was tuned is not."""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import shutil
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TextIO, TypeVar

from workers.benchmarks.cells import DONE, FAILED, VOID, Cell, Cells, Key
from workers.benchmarks.ours import Incomplete
from workers.benchmarks.progress import Progress
from workers.headless.errors import UserMistake
from workers.messages.whole import write_whole

LOOK = 0.5  # s between two looks at whether it is our turn


class Part(Protocol):
    """What a cell is of; `name` is the network's, `label` is for the line of progress."""

    @property
    def name(self) -> str: ...
    @property
    def key(self) -> Key: ...
    @property
    def label(self) -> str: ...


P = TypeVar("P", bound=Part)


def add_cell_arguments(parser: argparse.ArgumentParser) -> None:
    """Words of every benchmark of networks whose cells take a while."""
    parser.add_argument("networks", nargs="*", metavar="NETWORK.onnx")
    parser.add_argument("--out", required=True, help="directory of the cells; a second run goes on where one ended")
    parser.add_argument(
        "--again-void",
        action="store_true",
        help="run cells again that ended without counting, or beside a PyTorch that failed",
    )
    parser.add_argument("--table", action="store_true", help="run nothing, print what is there")


def named_networks(arguments: argparse.Namespace) -> list[str]:
    """The files to be opened; raises UserMistake."""
    files: list[str] = arguments.networks
    if not files:
        raise UserMistake("name one or more ONNX files, or --table for what is there")
    return files


def filled(cells: Cells, kind: str, out: Path) -> list[Cell]:
    """All cells of a kind; raises UserMistake where there are none."""
    found = cells.all(kind)
    if not found:
        raise UserMistake(f"--out {out} holds no cells yet; name networks to fill them")
    return found


def missing(parts: Sequence[P], is_open: Callable[[P], bool]) -> list[P]:
    """Those that have to be run; how many have not is told."""
    found = [part for part in parts if is_open(part)]
    if len(found) < len(parts):
        sys.stderr.write(f"{len(parts) - len(found)} of {len(parts)} cells are there already\n")
    return found


def fill(
    parts: Sequence[P],
    cells: Cells,
    out: Path,
    progress: Progress,
    make: Callable[[P, Path, Progress], Cell],
    told: Callable[[Cell], str],
    timed: bool = True,
) -> int:
    """How many cells broke off. `make` is given an empty directory, or what an earlier attempt left there, and ends as
    `attempt` lets it; `told` says of a kept cell in a line what it found. "wall" is the seconds it took. What another process
    is at is left to it; what is `timed` by a clock waits until another process of this directory is done with its own."""
    broken, before = 0, [cells.find(part.key, part.name) for part in parts]
    for part, found in zip(parts, before, strict=True):
        progress.begin(part.label)
        with (
            in_turn(out / "begun" / "machine", progress) if timed else nullcontext(),
            claimed(out / "begun" / part.key.digest) as mine,
        ):
            if not mine or cells.find(part.key, part.name) != found:
                progress.end("left to another process")
                continue
            began, work = progress.now(), out / "work" / part.key.digest
            cell = attempt(work, partial(make, part, work, progress))
            cells.keep(part.key, part.name, {**cell, "wall": progress.now() - began})
            if cell["state"] == FAILED:
                broken += 1
            else:
                shutil.rmtree(work, ignore_errors=True)
            progress.end(told(cell))
    return broken


@contextmanager
def in_turn(path: Path, progress: Progress) -> Iterator[None]:
    """One after the other: two runs at once would each have half of a machine, and be told as if they had all of it."""
    path.parent.mkdir(exist_ok=True)
    with path.open("w") as file:
        while not _taken(file):
            progress.show("waiting for another process of this benchmark")
            time.sleep(LOOK)
        yield


def _taken(file: TextIO) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


@contextmanager
def claimed(path: Path) -> Iterator[bool]:
    """Whether no other process has it. The claim of one that dies ends with it, its empty file is of no meaning."""
    path.parent.mkdir(exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            mine = os.path.samestat(os.fstat(file.fileno()), path.stat())
        except (BlockingIOError, FileNotFoundError):
            mine = False
        yield mine
        if mine:  # another's may lie there where this one was taken away between opening and taking it
            path.unlink(missing_ok=True)


def attempt(work: Path, make: Callable[[], Cell]) -> Cell:
    """What `make` gives; a void cell where a budget was too small, a failed one where anything broke: `work` stays then."""
    work.mkdir(parents=True, exist_ok=True)
    try:
        return make()
    except Incomplete as incomplete:
        return {"state": VOID, "reason": str(incomplete)}
    except Exception as failure:  # hours of other cells are still to come
        (work / "failure").write_text(traceback.format_exc())
        return {"state": FAILED, "reason": f"{str(failure)[-600:] or type(failure).__name__} (see {work})"}


def tuned_once(work: Path, tune: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What `tune` gives, kept in tuning.json beside the library that it leaves in work/library. A tuning that ended before
    its cell did is not repeated, nor is one whose operators are `missing` a record."""
    path = work / "tuning.json"
    if path.is_file():
        found: dict[str, Any] = json.loads(path.read_text())
        if found.get("missing") or (work / "library" / "model.so").is_file():
            return found
    tuning = tune()
    write_whole(path, json.dumps(tuning))
    return tuning


def verdict(wrong: str) -> Cell:
    """State and reason of a cell whose library was verified: `wrong` says what it computes otherwise, "" nothing."""
    if wrong:
        return {"state": VOID, "reason": f"it computes something else than ONNX Runtime: {wrong}"}
    return {"state": DONE, "reason": ""}
