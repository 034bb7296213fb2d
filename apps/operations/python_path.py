"""Where Python finds the project's rooms in processes that work elsewhere."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def first(root: Path, environment: Mapping[str, str]) -> str:
    """PYTHONPATH with the project before what is there."""
    return os.pathsep.join([str(root), *filter(None, [environment.get("PYTHONPATH")])])
