"""Making room, in a real browser and by keyboard, and an upload of who is signed out meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser.chromium import complaints, dark, sign_out, size, until
from tests.browser.site import Site

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

NAME = "a network that is to be deleted again"
ROW = f"//tr[.//a[text()='{NAME}']]"
PAPER = "return getComputedStyle(document.documentElement).backgroundColor"


def test_a_network_is_deleted_without_a_mouse(site: Site, browser: Any, tmp_path: Path) -> None:
    site.tell("network", name=NAME)
    browser.get(f"{site.url}/storage/")
    assert "are in use" in browser.find_element("css selector", "main").text
    summary = browser.find_element("xpath", f"{ROW}//summary")
    assert summary.accessible_name == f"Delete {NAME}"
    button = browser.find_element("xpath", f"{ROW}//button")
    assert not button.is_displayed()
    summary.send_keys(Keys.ENTER)
    until(button.is_displayed)
    for shade, paper in (("dark", "rgb(18, 20, 23)"), ("light", "rgb(250, 250, 248)")):
        dark(browser, shade == "dark")
        until(lambda wanted=paper: browser.execute_script(PAPER) == wanted)
        assert browser.save_screenshot(str(tmp_path / f"storage-{shade}.png"))
    button.send_keys(Keys.ENTER)
    until(lambda: not browser.find_elements("xpath", ROW))
    assert browser.current_url.endswith("/storage/")
    assert complaints(browser) == []


def test_room_can_be_made_on_a_phone(site: Site, browser: Any) -> None:
    name = "a network on a phone_" + "1234567890" * 10
    site.tell("network", name=name)
    size(browser, 390, 844)
    browser.get(f"{site.url}/storage/")
    box = browser.find_element("xpath", f"//tr[.//a[text()='{name}']]//summary").rect
    assert 0 <= box["x"] < box["x"] + box["width"] <= 390


def test_libraries_are_told_apart_and_runs_say_what_they_won_on_a_phone(site: Site, browser: Any) -> None:
    network = site.tell("network", name="squeezenet")["network"]
    run = str(site.tell("run", network=network)["run"])
    latency = site.tell("tell", run=run, slots=20)["latency"]
    line = {"kind": "baseline", "clock": 40.0, "name": "ONNX Runtime", "spread": 2e-5, "runs": 40, "threads": 2}
    site.tell("events", run=run, told=[line | {"seconds": 2 * latency}])
    site.tell("library", run=run)
    site.tell("end", run=run)
    size(browser, 390, 844)
    browser.get(f"{site.url}/storage/")
    row = browser.find_element("xpath", "//section[@aria-labelledby='libraries-title']//tbody/tr")
    assert " UTC" in row.text
    assert "5.00 ms" in row.text
    row.find_element("css selector", "summary").send_keys(Keys.ENTER)
    until(lambda: "that was compiled on" in row.text)
    browser.get(site.url)
    ratio = browser.find_element("css selector", "#runs tbody td:nth-child(5)")
    assert ratio.text.split("\n") == ["2.00 x faster than ONNX Runtime", "operators alone"]
    assert browser.find_element("css selector", "#runs .spark").is_displayed()
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390


def test_a_large_upload_of_who_is_signed_out_meanwhile_is_told_so(site: Site, browser: Any, tmp_path: Path) -> None:
    """The server answers before it has read it."""
    file = tmp_path / "late.onnx"
    file.write_bytes(b"x" * 30_000_000)
    browser.get(f"{site.url}/networks/")
    sign_out(browser)
    browser.find_element("css selector", "input[type=file]").send_keys(str(file))
    status = until(lambda: browser.find_elements("css selector", "[data-status].bad"))[0]
    assert status.text == "this upload: nobody is signed in. Next step: sign in, then send it again."
