"""A .pt2 file on the command line: converted to ONNX in a child, once, beside the run."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from workers.headless.ask import ask, made_in
from workers.headless.content import content_hash
from workers.headless.errors import UserMistake
from workers.messages.folders import passing_folder, remove_tree
from workers.messages.whole import whole

EXTENSION, FOLDER = ".pt2", ".tuningsite-convert-"


def as_onnx(network: Path, out: Path, allowed: bool) -> Path:
    """The file itself, or for a torch.export file its conversion, kept in `out` by the content it was made of.

    Raises UserMistake where it is not allowed or the file is refused.
    """
    if network.suffix.lower() != EXTENSION:
        return network
    if not allowed:
        raise UserMistake(
            f"{network}: torch.export files are off: loading one can run code of whoever made it, held back by nothing "
            "but a sandbox; export the network to ONNX, or give --allow-torch-export if you trust the file"
        )
    kept = out / f"{content_hash(network)}.onnx"
    if not kept.exists():
        with _alone(out) as alone:
            for left in out.glob(f"{FOLDER}*") if alone else ():  # by a command that was killed
                if left.is_dir() and not left.is_symlink():
                    remove_tree(left)
            if not kept.exists():
                _convert(network, out, kept)
    return kept


def _convert(network: Path, out: Path, kept: Path) -> None:
    with passing_folder(FOLDER, out) as work:
        order = {"task": "convert", "source": str(network.absolute()), "allowed": True, "work_dir": work}
        made = made_in(Path(work), ask(order)["onnx"], "converting")
        with whole(kept) as partial:  # its name says what is in it
            shutil.copyfile(made, partial, follow_symlinks=False)


@contextmanager
def _alone(out: Path) -> Iterator[bool]:
    """After any other conversion there, whose folder is not to be removed; False where the file system has no such locks."""
    folder = os.open(out, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
        except OSError:
            yield False
        else:
            yield True
    finally:
        os.close(folder)
