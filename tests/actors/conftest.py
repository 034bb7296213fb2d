from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import zoo
from tests.operations.running import Site


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """Everything but the processes: start those a test needs."""
    found = Site(tmp_path)
    try:
        found.prepare(zoo.tiny(tmp_path))
        yield found
    finally:
        found.close()
