"""A run's page in a browser: how it is opened, and what it has come to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.browser.chromium import until
from tests.browser.site import Site

SEQ = "return window.run?.state.seq"


@contextmanager
def begun(site: Site, name: str, **asked: Any) -> Iterator[str]:
    """The key of a run of a network of this name, which the test tells; it ends whatever becomes of the test."""
    network = site.tell("network", name=name)["network"]
    key = str(site.tell("run", network=network, **asked)["run"])
    try:
        yield key
    finally:
        site.tell("end", run=key)


def open_run(browser: Any, site: Site, run: str) -> None:
    browser.get(f"{site.url}/runs/{run}/")
    until(lambda: browser.execute_script(SEQ))


def reaches(browser: Any, seq: int) -> None:
    until(lambda: (browser.execute_script(SEQ) or 0) >= seq, 60)


def part(browser: Any, name: str) -> str:
    return str(browser.find_element("css selector", f"[data-part={name}]").text)
