"""What stands at the top of a run's page: its clock, its buttons, and what is said beside its latency."""

from __future__ import annotations

from typing import Any

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser.chromium import complaints, size, until
from tests.browser.run_page import begun, open_run, part
from tests.browser.site import Site

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

CLOCK = """
const [steps, done] = arguments, page = document.querySelector('script[src$="run/page.js"]').src;
import(page.replace('page.js', 'clock.js')).then(({Clock}) => {
  let time = 0;
  const clock = new Clock(() => time);
  done(steps.map(([at, told, state, live, attempt = 1]) => {
    time = at;
    return clock.seconds({clock: told, state, budget: {seconds: 60}, attempt}, live);
  }));
});
"""
LATER = """
window.now ??= performance.now.bind(performance);
window.later = 1000 * arguments[0];
performance.now = () => window.now() + window.later;
"""
PLACES = """
const seen = document.querySelectorAll('.controls button, .controls summary, .headline, #latency-section');
return [...seen].filter((e) => !e.closest('.popover > form')).map((e) => e.getBoundingClientRect()).map(({x, y}) => [x, y]);
"""


def test_the_clock_goes_on_between_two_events_as_far_as_the_budget(site: Site, browser: Any, run: str) -> None:
    """At which time, what was told last, the state, and whether the server is heard; then what is shown."""
    open_run(browser, site, run)
    steps = [
        (0, 10, "running", True, 10),
        (3, 10, "running", True, 13),
        (4, 12, "running", True, 13),  # never back
        (7, 12, "running", True, 15),
        (8, 12, "running", False, 15),  # nobody knows
        (20, 12, "running", False, 15),
        (24, 12, "running", True, 16),
        (30, 40, "running", True, 40),
        (99, 40, "running", True, 60),
        (99, 61, "running", True, 61),  # what is told counts
        (120, 61, "paused", True, 61),
        (150, 61, "running", True, 61),
        (151, 50, "paused", True, 50),
        (151, 50, "running", True, 50),
        (155, 50, "running", True, 54),
        (157, 50, "stopping", True, 56),  # what is in hand is finished
        (160, 57, "stopping", True, 57),
        (162, 57, "stopping", True, 59),
        (163, 57, "done", True, 57),
    ]
    shown = browser.execute_async_script(CLOCK, [step[:4] for step in steps])
    assert shown == [step[4] for step in steps]


def test_the_clock_of_a_later_attempt_stands_until_it_is_told_to_go_on(site: Site, browser: Any, run: str) -> None:
    """At which time, what was told last, the state, the attempt; then what is shown."""
    open_run(browser, site, run)
    steps = [
        (0, 10, "running", 1, 10),
        (5, 10, "running", 1, 15),
        (6, 10, "interrupted", 1, 10),
        (8, 10, "running", 2, 10),  # back to what is kept
        (20, 10, "running", 2, 10),  # it loads TVM and the network
        (21, 10.5, "running", 2, 10.5),
        (24, 10.5, "running", 2, 13.5),
        (25, 10.5, "running", 3, 10.5),  # another worker took it over
        (30, 10.5, "running", 3, 10.5),
        (31, 11, "running", 3, 11),
        (32, 11, "running", 3, 12),
    ]
    told = [(at, clock, state, True, attempt) for at, clock, state, attempt, _ in steps]
    assert browser.execute_async_script(CLOCK, told) == [step[-1] for step in steps]
    # Of one that never got as far as a clock nothing stands.
    early = [(0, 0, "running", True, 2), (3, 0, "running", True, 2)]
    assert browser.execute_async_script(CLOCK, early) == [0, 3]


def test_a_run_that_tells_nothing_shows_that_its_time_goes_by_and_moves_nothing(
    site: Site, browser: Any, run: str
) -> None:
    site.tell("tell", run=run, slots=2)  # six of 180 seconds
    open_run(browser, site, run)
    # Long before the server's next word.
    until(lambda: browser.execute_script("return document.querySelector('[data-part=elapsed]').style.minWidth"), 9)
    browser.execute_script(LATER, 150)
    until(lambda: part(browser, "elapsed").startswith("2 min"))
    beside = browser.find_element("css selector", "[data-part=trials]").rect["x"]
    browser.execute_script(LATER, 1000)
    until(lambda: (part(browser, "elapsed"), part(browser, "left")) == ("3 min", "0 s left"))
    assert browser.find_element("css selector", "[data-part=trials]").rect["x"] == beside


def test_an_expectation_has_two_digits(site: Site, browser: Any) -> None:
    with begun(site, "of one operator that is known", operators=1) as run:
        site.tell("tell", run=run, slots=4)
        open_run(browser, site, run)
        until(lambda: part(browser, "ahead") == "expected of 1 min more: 13 % less latency")


@pytest.mark.parametrize("width", [1280, 390])
def test_what_is_asked_before_a_run_is_stopped_moves_nothing(site: Site, browser: Any, run: str, width: int) -> None:
    site.tell("tell", run=run, slots=30)
    size(browser, width, 844)
    open_run(browser, site, run)
    until(lambda: part(browser, "gains"))
    summary = browser.find_element("xpath", "//summary[text()='Stop without compiling']")
    button = browser.find_element("xpath", "//button[text()='Stop this run']")
    before = browser.execute_script(PLACES)
    summary.click()
    until(button.is_displayed)
    assert browser.execute_script(PLACES) == before
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    button.send_keys(Keys.ESCAPE)
    until(lambda: not button.is_displayed())
    assert browser.execute_script("return document.activeElement.tagName") == "SUMMARY"
    summary.click()
    until(button.is_displayed)
    browser.find_element("css selector", ".headline").click()
    until(lambda: not button.is_displayed())
    assert complaints(browser) == []


def test_that_a_button_got_no_answer_is_said_until_the_server_is_there_again(
    site: Site, browser: Any, run: str
) -> None:
    open_run(browser, site, run)
    refused = lambda: browser.find_element("css selector", "#refused").text  # noqa: E731
    site.stop_web()
    try:
        browser.find_element("css selector", "[data-part=pause] button").click()
        until(lambda: "The server cannot be reached" in refused())
    finally:
        site.start_web()
    browser.execute_script("window.dispatchEvent(new Event('online'))")
    until(lambda: refused() == "")


ASKED = """
window.asked = 0, window.later = [];
const {setTimeout} = window;
window.setTimeout = (act, wait) => wait === 15000 ? window.later.push(act) : setTimeout(act, wait);
document.body.addEventListener('downloads', () => { window.asked += 1; });
document.body.dispatchEvent(new Event('downloads'));
"""
COUNTED = "return [window.asked, window.later.length]"


def test_a_part_that_got_no_answer_is_asked_for_after_a_while_and_when_the_server_is_there_again(
    site: Site, browser: Any, run: str
) -> None:
    open_run(browser, site, run)
    site.stop_web()
    try:
        browser.execute_script(ASKED)
        until(lambda: browser.execute_script(COUNTED) == [1, 1])
        browser.execute_script("window.later[0]()")
        until(lambda: browser.execute_script(COUNTED) == [2, 2])
    finally:
        site.start_web()
    browser.execute_script("window.dispatchEvent(new Event('online'))")
    until(lambda: browser.execute_script(COUNTED) == [3, 2])
    browser.execute_script("window.later[1]()")
    assert browser.execute_script(COUNTED) == [3, 2]


def test_that_there_is_nothing_to_compare_with_is_said_when_it_happens(site: Site, browser: Any, compared: str) -> None:
    open_run(browser, site, compared)
    assert part(browser, "state-word") == "running"
    site.tell("uncompared", run=compared, reason="no memory")
    told = lambda: browser.find_element("css selector", "#waiting").text  # noqa: E731
    until(lambda: "What the run is compared with was not measured: no memory\nNext step: buy another." in told())
    assert browser.find_element("css selector", "#take-baselines").is_displayed()
    assert complaints(browser) == []


def test_a_busy_machine_is_named_beside_the_latency_and_another_library_is_one_click_away(
    site: Site, browser: Any, compared: str
) -> None:
    run = compared
    latency = site.tell("tell", run=run, slots=14)["latency"]
    line = {"kind": "baseline", "clock": 60.0, "threads": 2}
    steady = {**line, "name": "TVM untuned", "seconds": 0.1, "spread": 0.001}
    site.tell("events", run=run, told=[{**line, "name": "ONNX Runtime", "seconds": 0.01, "spread": 0.001}, steady])
    whole = {"kind": "end_to_end", "clock": 61.0, "seconds": 0.005, "spread": 0.001, "runs": 9, "verified": True}
    site.tell("events", run=run, told=[{**whole, "latency": latency, "error": ""}])
    site.tell("library", run=run)
    open_run(browser, site, run)
    until(lambda: "2.00 x faster than ONNX Runtime (10.0 ms ± 1.0)" in part(browser, "gains"))
    assert "20.0 x faster than TVM untuned\n" in part(browser, "gains") + "\n"
    busy = browser.find_element("css selector", "#busy")
    assert busy.text.startswith("The machine was busy when this was timed.")
    busy.find_element("css selector", "button").click()
    result = lambda: browser.find_element("css selector", "#result").text  # noqa: E731
    until(lambda: "Compiling the best, about a minute" in result())
    until(lambda: not browser.find_elements("css selector", "#busy button"))
    assert complaints(browser) == []


def test_what_is_compiled_stands_where_it_will_be_taken(site: Site, browser: Any, run: str) -> None:
    site.tell("tell", run=run, slots=14)
    open_run(browser, site, run)
    result = lambda: browser.find_element("css selector", "#result").text  # noqa: E731
    assert "Compiling" not in result()
    browser.find_element("xpath", "//button[text()='Stop and compile best']").click()
    until(lambda: site.tell("wanted", run=run)["wanted"] == "stop")
    site.tell("conclude", run=run)
    until(lambda: "Compiling the best, about a minute" in result())
    site.tell("library", run=run)
    until(lambda: "Download library" in result() and "Compiling" not in result())
    assert complaints(browser) == []
