"""Rows, and browsers of their owner and of somebody else."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.test import Client

from tests.apps.rows import Site


@pytest.fixture(autouse=True)
def _own_data(data_dir: Path) -> None:
    """No test keeps files where another finds them."""


@pytest.fixture
def site(db: None) -> Site:
    return Site()


@pytest.fixture
def ada(site: Site) -> Client:
    client = Client()
    client.force_login(site.ada)
    return client


@pytest.fixture
def bob(site: Site) -> Client:
    client = Client()
    client.force_login(site.bob)
    return client
