"""Making room, in a real browser and by keyboard, and an upload of who is signed out meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser.chromium import complaints, dark, size, until
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


def test_a_large_upload_of_who_is_signed_out_meanwhile_is_told_so(site: Site, browser: Any, tmp_path: Path) -> None:
    """The server answers before it has read it."""
    file = tmp_path / "late.onnx"
    file.write_bytes(b"x" * 30_000_000)
    browser.get(f"{site.url}/networks/")
    browser.delete_cookie("sessionid")
    browser.find_element("css selector", "input[type=file]").send_keys(str(file))
    status = until(lambda: browser.find_elements("css selector", "[data-status].bad"))[0]
    assert status.text == "this upload: nobody is signed in. Next step: sign in, then send it again."
