from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def zoo_cache() -> Path:
    """Where test networks are kept between runs; ZOO_CACHE names another place."""
    return Path(os.environ.get("ZOO_CACHE", Path(tempfile.gettempdir()) / f"network-zoo-{os.getuid()}"))


@pytest.fixture(scope="session", autouse=True)
def lock_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """These runs neither wait for other runs on this machine nor make them wait."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TUNINGSITE_MEASURE_LOCK", str(tmp_path_factory.mktemp("lock") / "measure.lock"))
        yield
