"""A site of each test's own."""

from __future__ import annotations

import os
from pathlib import Path
from unittest import TestCase

import pytest

from tests.apps.rows import Site


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """On PostgreSQL only what asks the database: the rest has passed without."""
    if os.environ.get("DATABASE_URL", "").startswith("postgres"):
        items[:], others = [one for one in items if _asks(one)], [one for one in items if not _asks(one)]
        config.hook.pytest_deselected(items=others)


def _asks(item: pytest.Item) -> bool:
    fixtures = {"db", "transactional_db"} & set(getattr(item, "fixturenames", ()))
    case = getattr(item, "cls", None)
    return bool(fixtures) or item.get_closest_marker("django_db") is not None or (case and issubclass(case, TestCase))


@pytest.fixture(autouse=True)
def _own_data(data_dir: Path) -> None:
    """No test keeps files where another finds them."""


@pytest.fixture
def site(db: None) -> Site:
    return Site()
