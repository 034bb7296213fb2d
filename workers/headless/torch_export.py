"""A .pt2 file on the command line: converted to ONNX in a child, once, beside the run."""

from __future__ import annotations

import shutil
from pathlib import Path

from workers.headless.ask import ask, made_in
from workers.headless.content import content_hash
from workers.headless.errors import UserMistake
from workers.messages.folders import passing_folder
from workers.messages.whole import whole

EXTENSION = ".pt2"


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
        with passing_folder("convert-", out) as work:
            order = {"task": "convert", "source": str(network.absolute()), "allowed": True, "work_dir": work}
            made = made_in(Path(work), ask(order)["onnx"], "converting")
            with whole(kept) as partial:  # its name says what is in it
                shutil.copyfile(made, partial, follow_symlinks=False)
    return kept
