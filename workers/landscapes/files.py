"""Landscapes on disk: a JSON header and arrays in one compressed npz file, times as 16-bit logarithms.

A landscape belongs to the design space it was recorded in: its header has the file's format, the version of the
product's spaces and a fingerprint of the operators' knobs.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.engine.space import SPACE_VERSION, Operator
from workers.landscapes.landscape import LandscapeError
from workers.messages.whole import whole

FORMAT = 1

SHORTEST = 1e-9
STEP = 5e-4
Codes = NDArray[np.uint16]
Arrays = dict[str, NDArray[Any]]


def codes(seconds: Any) -> Codes:
    """Times as 1 + round(ln(t / 1 ns) / 0.0005): exact to 0.025 %, from 1 ns to 46 hours; 0 is no time."""
    times = np.asarray(seconds, dtype=np.float64)
    known = np.isfinite(times) & (times > 0)
    steps = np.rint(np.log(np.where(known, times, 1.0) / SHORTEST) / STEP)
    found: Codes = np.where(known, 1 + np.clip(steps, 0, 65534), 0).astype(np.uint16)
    return found


def times_of(stored: Codes) -> NDArray[np.float64]:
    """Inverse of `codes`, in seconds; nan where there is no time."""
    found: NDArray[np.float64] = np.where(stored > 0, SHORTEST * np.exp(STEP * (stored.astype(np.float64) - 1)), np.nan)
    return found


def fingerprint(operators: Sequence[Operator]) -> str:
    """Of the design space: keys, weights and every option of every knob."""
    rows = [
        [o.key, o.weight, [[[k.name, k.kind, k.options] for k in sketch.knobs] for sketch in o.sketches]]
        for o in operators
    ]
    return hashlib.sha256(json.dumps([SPACE_VERSION, rows]).encode()).hexdigest()[:16]


def described(operator: Operator) -> dict[str, Any]:
    """What of an operator is no design space, as JSON."""
    kept = ("index", "name", "key", "weight", "flops", "bytes", "work", "at_once")
    return {name: getattr(operator, name) for name in kept}


def write(path: Path, kind: str, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Whole or not at all."""
    text = json.dumps({**header, "format": FORMAT, "space_version": SPACE_VERSION, "kind": kind}, sort_keys=True)
    with whole(path) as partial, partial.open("wb") as file:
        np.savez_compressed(file, header=np.frombuffer(text.encode(), dtype=np.uint8), **arrays)


def read(path: Path, *kinds: str) -> tuple[dict[str, Any], Arrays]:
    """Header and arrays; LandscapeError when it is damaged, of another version, or of another kind than `kinds`."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as found:
            arrays = {name: found[name] for name in found.files}
        header = json.loads(arrays.pop("header").tobytes().decode())
    except FileNotFoundError:
        raise LandscapeError(f"{path}: there is no such landscape; record it (manage.py landscape record)") from None
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, EOFError) as error:
        raise LandscapeError(f"{path} is no landscape or damaged ({error}); record it anew") from error
    if not isinstance(header, dict) or header.get("kind") not in kinds:
        raise LandscapeError(f"{path} is not a {' or '.join(kinds)} landscape; name another file")
    versions = (header.get("format"), header.get("space_version"))
    if versions != (FORMAT, SPACE_VERSION):
        raise LandscapeError(
            f"{path} has format and space version {versions}, this product {(FORMAT, SPACE_VERSION)}: its figures "
            "belong to other programs; record it anew"
        )
    return header, arrays
