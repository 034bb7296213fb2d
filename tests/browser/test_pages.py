"""What all pages have, in a real browser: after signing out, without a connection, in the dark, on any width; and uploads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser.chromium import HEIGHT, WIDTH, complaints, dark, sign_out, size, until
from tests.browser.site import Site

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

PAPER = "return getComputedStyle(document.documentElement).backgroundColor"
UNSCRIPTED = f"document.documentElement.removeAttribute('data-theme'); {PAPER}"
LEFT_OVER = """
const bar = document.querySelector('.top .wide'), last = bar.lastElementChild;
return bar.getBoundingClientRect().right - parseFloat(getComputedStyle(bar).paddingRight) - last.getBoundingClientRect().right;
"""
DROP = """
const dropped = new DataTransfer();
dropped.items.add(new File(['x'], arguments[0]));
document.querySelector('.drop').dispatchEvent(new DragEvent('drop', {dataTransfer: dropped, bubbles: true, cancelable: true}));
"""
LEAVING = """
const event = new Event('beforeunload', {cancelable: true});
window.dispatchEvent(event);
return event.defaultPrevented;
"""
SENT = "return performance.getEntriesByType('resource').filter((e) => e.name.endsWith('/networks/')).length"


def main_text(browser: Any) -> str:
    return str(browser.find_element("css selector", "main").text)


def status(browser: Any) -> str:
    return str(browser.find_element("css selector", "[data-status]").text)


def test_after_signing_out_back_shows_nothing(site: Site, browser: Any) -> None:
    site.tell("network", name="a network of nobody else")
    for path in ("/", "/networks/"):
        browser.get(site.url + path)
    until(lambda: "a network of nobody else" in main_text(browser))
    browser.find_element("xpath", "//button[text()='Sign out']").click()
    until(lambda: "/login/" in browser.current_url)
    browser.back()
    until(lambda: browser.find_element("css selector", "h1").text == "Sign in")
    assert "a network of nobody else" not in main_text(browser)


def test_a_list_that_gets_no_answer_says_so_until_it_gets_one(site: Site, browser: Any) -> None:
    network = site.tell("network", name="squeezenet")["network"]
    run = site.tell("run", network=network)["run"]
    browser.get(site.url)
    line = browser.find_element("css selector", "[data-connection]")
    assert line.aria_role == "status"
    try:
        site.stop_web()
        try:
            until(lambda: line.text == "The connection is lost; what is shown is from before.")
            assert "squeezenet" in main_text(browser)
        finally:
            site.start_web()
        until(lambda: line.text == "")
    finally:
        site.tell("end", run=run)


TOLD = """
window.said = [];
const region = document.querySelector('[role=status]:has(#inspecting)');
new MutationObserver(() => window.said.push(region.textContent)).observe(region, {childList: true, subtree: true});
"""
ASKED = "return performance.getEntriesByType('resource').filter((e) => e.name.endsWith('/state')).length"


def test_what_stays_as_it_was_is_not_read_aloud_every_second(site: Site, browser: Any) -> None:
    network = site.tell("network", name="a network that is read", state="inspecting")["network"]
    browser.get(f"{site.url}/networks/{network}/")
    browser.execute_script(TOLD)
    until(lambda: browser.execute_script(ASKED) >= 3)
    assert "Reading the network" in main_text(browser)
    assert browser.execute_script("return window.said") == []
    assert complaints(browser) == []


UNSEEN = """
let seen = false;
window.withheld = 0;
window.show = () => { seen = true; document.dispatchEvent(new Event('visibilitychange')); };
Object.defineProperty(document, 'hidden', {get: () => !seen, configurable: true});
window.addEventListener('htmx:beforeRequest', ({defaultPrevented}) => { window.withheld += defaultPrevented; });
"""
READ_ANEW = (
    "return performance.getEntriesByName(location.href).filter((e) => e.initiatorType === 'xmlhttprequest').length"
)


def test_a_page_that_nobody_sees_asks_for_nothing_until_it_is_seen(site: Site, browser: Any) -> None:
    network = site.tell("network", name="a network that is read", state="inspecting")["network"]
    browser.get(f"{site.url}/networks/{network}/")
    browser.execute_script(UNSEEN)
    until(lambda: browser.execute_script("return window.withheld") >= 1)  # what was under way is there
    before = browser.execute_script(ASKED)
    until(lambda: browser.execute_script("return window.withheld") >= 3)
    assert browser.execute_script(ASKED) == before
    browser.execute_script("window.show()")
    until(lambda: browser.execute_script(ASKED) > before)


def test_a_list_is_read_anew_as_soon_as_it_is_seen_again(site: Site, browser: Any) -> None:
    """Where nothing goes on it asks once a minute only."""
    run = site.tell("run", network=site.tell("network", name="squeezenet")["network"])["run"]
    site.tell("end", run=run)
    browser.get(f"{site.url}/")
    browser.execute_script(UNSEEN)
    assert browser.execute_script(READ_ANEW) == 0
    browser.execute_script("window.show()")
    until(lambda: browser.execute_script(READ_ANEW) == 1)


MARK = """
window.rows = document.getElementById('rows');
getSelection().selectAllChildren(window.rows.querySelector('a.name'));
"""


def test_what_is_marked_in_a_list_stays_marked_until_it_is_not(site: Site, browser: Any, run: str) -> None:
    browser.get(site.url)
    browser.execute_script(MARK)
    until(lambda: "Words are marked" in browser.find_element("css selector", "[data-connection]").text)
    assert browser.execute_script("return window.rows.isConnected && !getSelection().isCollapsed")
    browser.execute_script("getSelection().removeAllRanges()")
    until(lambda: not browser.execute_script("return window.rows.isConnected"))


def test_without_its_script_a_page_is_as_dark_as_the_system(browser: Any) -> None:
    for shade, paper in (("dark", "rgb(18, 20, 23)"), ("light", "rgb(250, 250, 248)")):
        dark(browser, shade == "dark")
        until(lambda wanted=paper: browser.execute_script(UNSCRIPTED) == wanted)


def test_the_theme_that_was_chosen_is_shown_whatever_the_system_has(browser: Any) -> None:
    dark(browser, True)
    until(lambda: browser.execute_script(PAPER) == "rgb(18, 20, 23)")
    browser.find_element("css selector", "[data-theme-switch]").click()
    assert browser.execute_script(PAPER) == "rgb(250, 250, 248)"
    dark(browser, False)
    browser.refresh()
    browser.find_element("css selector", "[data-theme-switch]").click()
    assert browser.execute_script(PAPER) == "rgb(18, 20, 23)"


@pytest.mark.parametrize("width", [WIDTH, 390, 320])
def test_the_bar_at_the_top_reaches_to_the_right_edge_signed_in_or_not(site: Site, browser: Any, width: int) -> None:
    size(browser, width, HEIGHT)
    browser.get(f"{site.url}/methods/")
    assert browser.execute_script(LEFT_OVER) == pytest.approx(0, abs=1)
    sign_out(browser)
    browser.get(f"{site.url}/login/")
    assert browser.execute_script(LEFT_OVER) == pytest.approx(0, abs=1)


def test_a_short_page_leaves_the_room_that_a_long_one_has_its_scrollbar_in(browser: Any) -> None:
    assert browser.execute_script("return innerWidth - document.body.clientWidth") > 0


def test_what_is_kept_stands_in_the_same_columns(site: Site, browser: Any) -> None:
    """Bars have a track, whatever little of it they fill."""
    network = site.tell("network", name="squeezenet")["network"]
    run = site.tell("run", network=network)["run"]
    site.tell("library", run=run)
    site.tell("end", run=run)
    browser.get(f"{site.url}/storage/")
    tables = browser.find_elements("css selector", "table.kept")
    ends = [[cell.rect["x"] for cell in table.find_elements("css selector", "thead th")] for table in tables]
    assert len(ends) == 2
    assert ends[0] == pytest.approx(ends[1], abs=1)
    for table in tables:
        summary = table.find_element("css selector", "summary").rect
        assert summary["x"] + summary["width"] == pytest.approx(table.rect["x"] + table.rect["width"] - 8, abs=1)
    track = browser.find_element("css selector", ".in-use svg")
    assert track.value_of_css_property("background-color") == "rgba(241, 242, 240, 1)"


def test_a_machine_s_name_has_the_width_of_a_phone(site: Site, browser: Any) -> None:
    size(browser, 390, HEIGHT)
    browser.get(f"{site.url}/targets/")
    name, card = (browser.find_element("css selector", which).rect for which in (".card h2", ".card"))
    assert name["width"] > 0.8 * card["width"]


@pytest.fixture
def slow(browser: Any) -> Iterator[Any]:
    """Little is sent in a second."""
    browser.execute_cdp_cmd("Network.enable", {})
    limits = {"offline": False, "latency": 0, "downloadThroughput": -1}
    browser.execute_cdp_cmd("Network.emulateNetworkConditions", {**limits, "uploadThroughput": 100_000})
    yield browser
    browser.execute_cdp_cmd("Network.emulateNetworkConditions", {**limits, "uploadThroughput": -1})


def test_an_upload_can_be_broken_off_and_another_file_waits_until_then(site: Site, slow: Any, tmp_path: Path) -> None:
    file = tmp_path / "first.onnx"
    file.write_bytes(b"x" * 5_000_000)
    slow.get(f"{site.url}/networks/")
    cancel = slow.find_element("css selector", "[data-cancel]")
    assert not cancel.is_displayed()
    slow.find_element("css selector", "input[type=file]").send_keys(str(file))
    until(lambda: "% of 5.00 MB" in slow.find_element("css selector", "[data-sent]").text)
    slow.execute_script(DROP, "second.onnx")
    assert status(slow) == "first.onnx is being sent."
    assert slow.execute_script(LEAVING) is True
    cancel.send_keys(Keys.ENTER)
    until(lambda: status(slow) == "first.onnx was not sent.")
    assert not cancel.is_displayed()
    assert slow.execute_script("return document.activeElement.type") == "file"
    assert slow.execute_script(LEAVING) is False
    slow.execute_script(DROP, "second.onnx")
    until(lambda: not slow.current_url.endswith("/networks/"))
    until(lambda: slow.find_element("css selector", "h1").text == "second")
    slow.get(f"{site.url}/networks/")
    assert "first" not in main_text(slow)
    assert complaints(slow) == []


@pytest.mark.parametrize(
    ("bound", "words"),
    [
        ("limit", ["A network has at most 2.00 GB here. Upload a smaller"]),
        ("room", ["There is room for", "Storage page"]),
    ],
)
def test_a_file_that_is_too_large_is_not_sent(
    site: Site, browser: Any, tmp_path: Path, bound: str, words: list[str]
) -> None:
    """For the site, or for the room that its owner has left."""
    file = tmp_path / "large.onnx"
    file.write_bytes(b"x" * 1_000_000)
    browser.get(f"{site.url}/networks/")
    browser.execute_script(f"document.querySelector('[data-upload]').dataset.{bound} = '999999'")
    browser.find_element("css selector", "input[type=file]").send_keys(str(file))
    until(lambda: status(browser).startswith(f"large.onnx has 1.00 MB. {words[0]}"))
    assert all(word in status(browser) for word in words)
    assert browser.execute_script(SENT) == 0
