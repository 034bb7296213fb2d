"""Chromium without a screen, and how it is asked."""

from __future__ import annotations

import json
import os
import shutil
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.common.exceptions import JavascriptException, NoSuchElementException, StaleElementReferenceException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from websockets.sync.client import connect

PATIENCE = 20.0
NOT_YET = (JavascriptException, NoSuchElementException, StaleElementReferenceException)
"""What is asked for is not on the page yet, or the page is just putting another in its place."""
WIDTH, HEIGHT = 1280, 900
_MAIN, _TASK = "CrRendererMain", "ThreadControllerImpl::RunTask"
_SWITCHES = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars"
)


def needs_chromium() -> None:
    """Skips where there is no browser; CI has to have one."""
    if shutil.which("chromium") and shutil.which("chromedriver"):
        return
    reason = "no chromium with its driver on this machine (apt install chromium chromium-driver)"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


class Chromium(webdriver.Chrome):
    """Comes back from `get` with a whole page: on a busy machine the driver's own did with one that had half its styles."""

    def get(self, url: str) -> None:
        super().get(url)
        self._whole()

    def refresh(self) -> None:
        super().refresh()
        self._whole()

    def back(self) -> None:
        super().back()
        self._whole()

    def _whole(self) -> None:
        until(lambda: self.execute_script("return document.readyState") == "complete")


def chromium(profile: Path) -> Any:
    options = Options()
    for switch in _SWITCHES.split():
        options.add_argument(switch)
    options.add_argument(f"--user-data-dir={profile}")
    options.add_argument(f"--window-size={WIDTH},{HEIGHT}")
    options.binary_location = "/usr/bin/chromium"
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chromium(options=options, service=Service("/usr/bin/chromedriver"))
    size(driver, WIDTH, HEIGHT)
    return driver


def size(driver: Any, width: int, height: int) -> None:
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def sign_out(driver: Any) -> None:
    """As when the session ended meanwhile: the page knows nothing of it."""
    for cookie in driver.get_cookies():
        if cookie["name"].startswith("sessionid"):
            driver.delete_cookie(cookie["name"])


def as_new(driver: Any, url: str) -> None:
    """As if it had just been started: one empty tab in a process of its own, and nothing kept, of the site at `url` above
    all. A start takes two seconds of a core."""
    old = driver.window_handles
    driver.switch_to.new_window("tab")
    tab = driver.current_window_handle
    for handle in old:
        driver.switch_to.window(handle)
        driver.close()
    driver.switch_to.window(tab)
    driver.execute_cdp_cmd(
        "Page.bringToFront", {}
    )  # it was opened behind the others: nothing on it would have the focus
    driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
    driver.execute_cdp_cmd("Network.clearBrowserCache", {})
    driver.execute_cdp_cmd("Storage.clearDataForOrigin", {"origin": url, "storageTypes": "all"})
    driver.get_log("browser")
    size(driver, WIDTH, HEIGHT)


def read_aloud(driver: Any, within: str, role: str) -> list[tuple[str, str]]:
    """Name and description of all that has this role in the first element of a selector, as a screen reader has them."""
    document = driver.execute_cdp_cmd("DOM.getDocument", {"depth": 0})["root"]["nodeId"]
    found = driver.execute_cdp_cmd("DOM.querySelector", {"nodeId": document, "selector": within})["nodeId"]
    nodes = driver.execute_cdp_cmd("Accessibility.queryAXTree", {"nodeId": found, "role": role})["nodes"]
    return [(node["name"]["value"], node.get("description", {}).get("value", "")) for node in nodes]


def dark(driver: Any, on: bool) -> None:
    feature = {"name": "prefers-color-scheme", "value": "dark" if on else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})


def until(true: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    """The first true answer; raises TimeoutError, from what was last in its way."""
    deadline = time.monotonic() + seconds
    while True:
        missing = None
        try:
            if answer := true():
                return answer
        except NOT_YET as error:
            missing = error
        if time.monotonic() > deadline:
            raise TimeoutError("it did not happen in time") from missing
        time.sleep(0.05)


@contextmanager
def tasks(driver: Any) -> Iterator[list[float]]:
    """Of the main threads of all pages: how long each task that ends meanwhile had the processor, in ms; known afterwards.
    By the clock a task is as long as what else runs on the machine makes it."""
    lasted = list[float]()
    debugger = driver.capabilities["goog:chromeOptions"]["debuggerAddress"]
    with urllib.request.urlopen(f"http://{debugger}/json/version", timeout=PATIENCE) as answer:
        address = json.load(answer)["webSocketDebuggerUrl"]
    with connect(address, max_size=None, proxy=None, open_timeout=PATIENCE) as line:  # what was traced is large
        categories = {"includedCategories": ["toplevel"], "excludedCategories": ["*"]}
        line.send(json.dumps({"id": 1, "method": "Tracing.start", "params": {"traceConfig": categories}}))
        assert "error" not in (started := json.loads(line.recv(3 * PATIENCE))), started
        yield lasted
        line.send(json.dumps({"id": 2, "method": "Tracing.end"}))
        traced, said = list[Any](), dict[str, Any]()
        while said.get("method") != "Tracing.tracingComplete":
            said = json.loads(line.recv(3 * PATIENCE))
            traced += said["params"]["value"] if said.get("method") == "Tracing.dataCollected" else ()
    assert not said["params"]["dataLossOccurred"]
    threads = {(e["pid"], e["tid"]) for e in traced if e["name"] == "thread_name" and e["args"]["name"] == _MAIN}
    mine = [e for e in traced if e["name"] == _TASK and e["ph"] == "X" and (e["pid"], e["tid"]) in threads]
    assert any("tdur" in e for e in mine)
    lasted += [e.get("tdur", 0) / 1000 for e in mine]  # a task of less than a microsecond comes without its time


def complaints(driver: Any) -> list[str]:
    """Errors on the console, broken security policy among them."""
    return [entry["message"] for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
