"""A site of each test's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apps.rows import Site


@pytest.fixture(autouse=True)
def _own_data(data_dir: Path) -> None:
    """No test keeps files where another finds them."""


@pytest.fixture
def site(db: None) -> Site:
    return Site()
