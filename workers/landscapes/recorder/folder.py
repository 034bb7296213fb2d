"""The parts of a recording on the disk, and whose they are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from workers.engine.space import Operator
from workers.landscapes import files
from workers.landscapes.landscape import LandscapeError


def curve_path(folder: Path, operator: int, seed: int) -> Path:
    return folder / f"curve-{operator}-{seed}.npz"


def space_path(folder: Path, operator: int) -> Path:
    return folder / f"space-{operator}.npz"


def _network_path(folder: Path) -> Path:
    return folder / "network.npz"


def same_network(folder: Path, operators: Sequence[Operator]) -> None:
    """Notes whose parts the folder holds; LandscapeError when they are another network's."""
    path, mine = _network_path(folder), files.fingerprint(operators)
    if not path.exists():
        rows = [files.described(operator) for operator in operators]
        files.write(path, "network", {"fingerprint": mine, "operators": rows}, {})
    elif (kept := files.read(path, "network")[0]["fingerprint"]) != mine:
        raise LandscapeError(
            f"{folder} was begun with other operators or spaces ({kept}, now {mine}); name another directory"
        )


def network(folder: Path) -> tuple[list[dict[str, Any]], str]:
    header, _ = files.read(_network_path(folder), "network")
    return header["operators"], header["fingerprint"]


def whole(folder: Path, seed: int) -> bool:
    if not _network_path(folder).exists():
        return False
    return all(curve_path(folder, row["index"], seed).exists() for row in network(folder)[0])
