from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def zoo_cache() -> Path:
    """Where test networks are kept between runs; ZOO_CACHE names another place."""
    return Path(os.environ.get("ZOO_CACHE", Path(tempfile.gettempdir()) / f"network-zoo-{os.getuid()}"))
