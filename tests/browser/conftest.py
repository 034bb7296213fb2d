"""A real site and a real Chromium."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = str(Path(__file__).resolve().parents[2])
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)

from tests.browser.chromium import as_new, chromium, needs_chromium  # noqa: E402
from tests.browser.run_page import begun  # noqa: E402
from tests.browser.site import Site  # noqa: E402


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    running = Site(tmp_path_factory.mktemp("site"))
    try:
        running.up()
        yield running
    finally:
        running.close()


@pytest.fixture(scope="module")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One for all tests of a file."""
    needs_chromium()
    driver = chromium(tmp_path_factory.mktemp("profile"))
    try:
        yield driver
    finally:
        driver.quit()


@pytest.fixture
def browser(site: Site, chrome: Any) -> Any:
    """Signed in, and as new."""
    as_new(chrome, site.url)
    chrome.get(site.url + site.tell("link")["path"])
    return chrome


@pytest.fixture
def run(site: Site) -> Iterator[str]:
    """One that is told by the test."""
    with begun(site, "squeezenet") as key:
        yield key


@pytest.fixture
def compared(site: Site, request: pytest.FixtureRequest) -> Iterator[str]:
    """A run of a network of its own: later runs of a network begin with the baselines that are told of it."""
    with begun(site, request.node.name) as key:
        yield key
