"""As a new user: `manage.py up`, upload, start, watch, reload, stop and keep, download, run. Nothing in it is played."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.request
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.browser.chromium import chromium, complaints, needs_chromium, until
from tests.processes import eventually
from tests.running import MANAGE, Running
from tests.zoo import ZOO

pytestmark = [pytest.mark.browser, pytest.mark.tvm, pytest.mark.timeout(400)]

LATENCY = "return window.run?.state.run.latency"
SEQ = "return window.run?.state.seq ?? 0"


@pytest.fixture
def site(tmp_path: Path) -> Any:
    found = Running(tmp_path)
    try:
        yield found
    finally:
        found.close()


def press(browser: Any, text: str) -> None:
    shown = [b for b in browser.find_elements("css selector", "button") if b.text == text and b.is_displayed()]
    shown[0].click()


def downloaded(browser: Any, link: str) -> bytes:
    cookies = "; ".join(f"{cookie['name']}={cookie['value']}" for cookie in browser.get_cookies())
    with urllib.request.urlopen(urllib.request.Request(link, headers={"Cookie": cookies}), timeout=60) as answer:
        assert answer.headers["Content-Disposition"].startswith("attachment")
        return bytes(answer.read())


def test_from_upload_to_a_library_that_runs(site: Running, tmp_path: Path) -> None:
    needs_chromium()
    network = ZOO["tiny"](tmp_path)
    launcher = site.start("up", *MANAGE, "up")
    eventually(lambda: "Ctrl-C" in site.log("up") or launcher.poll() is not None, 60, "the start")
    link = re.search(r"http://\S+", site.log("up"))
    assert link, site.logs()
    browser = chromium(tmp_path / "profile")
    try:
        browser.get(link[0])
        home = link[0].partition("/login")[0]
        until(lambda: browser.find_elements("id", "welcome"))
        welcome = browser.current_window_handle
        browser.switch_to.new_window("tab")
        browser.get(f"{home}/networks/")
        browser.find_element("css selector", "input[type=file]").send_keys(str(network))
        # Choosing a file uploads it; the page then shows what was found in it.
        until(lambda: re.search(r"/networks/[0-9a-f-]{36}/", browser.current_url), 60)
        until(lambda: browser.find_elements("css selector", "a[href*='/runs/new']"), 60)

        def ready() -> bool:
            browser.get(f"{home}/runs/new")
            return bool(browser.find_elements("css selector", "#id_minutes"))

        eventually(ready, 120, "this machine's measurement")
        press(browser, "Start tuning")
        until(lambda: browser.execute_script(LATENCY), 120)
        first = browser.execute_script(SEQ)
        until(lambda: browser.execute_script(SEQ) > first + 5, 60)
        before = browser.execute_script(LATENCY)
        browser.refresh()
        until(lambda: browser.execute_script(LATENCY), 30)
        assert browser.execute_script(LATENCY) <= before
        press(browser, "Stop and compile best")
        library = until(lambda: browser.find_elements("css selector", "#downloads a[href*='/artifacts/']"), 180)
        archive = tmp_path / "archive.zip"
        archive.write_bytes(downloaded(browser, library[0].get_attribute("href")))
        browser.switch_to.window(welcome)  # which began with no run
        until(lambda: browser.find_elements("id", "runs"))
        assert complaints(browser) == []
    finally:
        browser.quit()
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(tmp_path / "library")
    metadata = json.loads((tmp_path / "library" / "metadata.json").read_text())
    assert metadata["verified"]["passed"]
    ran = subprocess.run(
        [sys.executable, str(tmp_path / "library" / "run.py")], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert re.match(r"tiny: [\d.]+ ms a run", ran.stdout)
    launcher.terminate()
    assert launcher.wait(30) == 0
    assert not site.processes()
