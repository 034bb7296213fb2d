"""A run of 100,000 measurements: kept, opened, watched and taken up again in little time and memory; prints its figures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.browser.chromium import chromium, complaints, needs_chromium, tasks, until
from tests.browser.site import Site
from tests.tries import quickest
from workers.supervision.batch import BATCH_EVENTS

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

OPERATORS, SLOTS, A_SLOT = 30, 6250, 16
MIB = float(1 << 20)
ROWS = "return [window.run?.state.run.trials ?? 0, document.querySelectorAll('#operators tbody tr').length]"
BODY = "return performance.getEntriesByType('navigation')[0].decodedBodySize"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else ""
    running = Site(tmp_path, url)
    try:
        running.up()
        yield running
    finally:
        running.close()


DEAREST = 10.0
"""Keeping an event may take the processor so many times as long as saying and reading it as JSON in the same moments:
twice what it takes on SQLite. In seconds it would be a gate of the machine, and of what else runs on it."""
OPENS = 3.0
"""s of the processor, of the server and the page; the least of some openings, for other tests run beside."""


def relayed(site: Site, network: str, slots: int = SLOTS, batch: int = BATCH_EVENTS) -> tuple[str, dict[str, Any]]:
    """A run that a child told as fast as it could, and what keeping it took, so many events at once at most."""
    run = str(site.tell("run", network=network, operators=OPERATORS)["run"])
    return run, site.tell("relay", run=run, operators=OPERATORS, slots=slots, batch=batch)


def dear(kept: dict[str, Any]) -> float:
    """Processor time of keeping events, of what their JSON takes."""
    return float(kept["processor"] / kept["plain"])


def opened(browser: Any, site: Site, run: str, slots: int) -> float:
    """Seconds of the processor until the page of a run stands with all its operators; of a server that never made it."""
    browser.get("about:blank")
    site.stop_web()
    site.start_web()
    browser.get(site.url)  # what a first page takes of a new server is not this one's
    server = psutil.Process(site.web.pid)
    before = server.cpu_times()
    with tasks(browser) as lasted:
        browser.get(f"{site.url}/runs/{run}/")
        until(lambda: browser.execute_script(ROWS) == [slots * A_SLOT, OPERATORS], 60)
    after = server.cpu_times()
    return after.user - before.user + after.system - before.system + sum(lasted) / 1000


def test_a_run_of_100_000_measurements_stays_fast(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    needs_chromium()
    network = site.tell("network", name="squeezenet")["network"]
    empty = site.tell("disk")["bytes"]
    slots = SLOTS // 4 if site.database else SLOTS  # tests/apps keep as many there too
    run, kept = relayed(site, network, slots)
    disk = site.tell("disk")["bytes"] - empty
    browser = chromium(tmp_path / "profile")
    try:
        browser.get(site.url + site.tell("link")["path"])
        before = site.memory("VmRSS")
        took = quickest(lambda: opened(browser, site, run, slots), OPENS, tries=6)
        body = browser.execute_script(BODY)
        peak = site.memory("VmHWM")
        assert complaints(browser) == []
    finally:
        browser.quit()
    order = site.tell("resume", run=run)
    with capsys.disabled():
        print(  # noqa: T201
            f"\nkept: {kept['trials']} measurements in {kept['seconds']:.1f} s,"
            f" {kept['events'] / kept['seconds']:.0f} events/s, each {dear(kept):.1f} times what its JSON takes,"
            f" {kept['events'] / kept['writes']:.0f} a transaction; {disk / MIB:.0f} MiB on disk"
            f"\nopened: {took:.2f} s, {body / MIB:.2f} MiB sent; the server holds {before / MIB:.0f} MiB before,"
            f" {peak / MIB:.0f} MiB at most"
            f"\nresumed: order made in {order['made']:.2f} s, written in {order['said']:.2f} s,"
            f" {order['bytes'] / MIB:.1f} MiB; the worker holds {order['peak'] / MIB:.0f} MiB at most"
        )
    assert (kept["trials"], order["measurements"], order["slots"]) == (slots * A_SLOT, slots * A_SLOT, slots)
    assert dear(kept) < DEAREST
    assert took < OPENS
    assert peak - before < 100 * MIB


@pytest.mark.mutation
@pytest.mark.parametrize("site", ["sqlite"], indirect=True)
def test_a_transaction_for_every_event_is_too_dear(site: Site) -> None:
    _, kept = relayed(site, site.tell("network", name="squeezenet")["network"], slots=100, batch=1)
    assert dear(kept) > DEAREST
