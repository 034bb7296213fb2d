"""A run that is put together of parts, in a real browser, and what it says of them at its end."""

from __future__ import annotations

from typing import Any

import pytest
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from tests.browser.chromium import complaints, size, until
from tests.browser.journal import opening
from tests.browser.site import Site

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

REPORT = {
    "parts": {"scheduler": "round_robin", "explorer": "simulated_annealing", "sampler": "greedy"},
    "slots": 12, "decided_by_belief": 0, "differs_from_round_robin": 0,
    "search": {"reached": 0, "enumerated": 0, "evaluations": 900, "explorer": 60},
}  # fmt: skip
WIDER = "return document.documentElement.scrollWidth > document.documentElement.clientWidth"
TEXT = """
const found = document.readyState === 'complete' ? [...document.querySelectorAll(arguments[0])] : [];
return found.map((one) => one.innerText).join(' ');
"""


def choose(browser: Any, role: str, part: str) -> None:
    Select(browser.find_element("id", f"id_{role}")).select_by_value(part)


def start(browser: Any) -> None:
    browser.find_element("xpath", "//button[text()='Start tuning']").send_keys(Keys.ENTER)


def text_of(browser: Any, selector: str) -> str:
    """Of a page that is there whole; in one step, for between two its elements may have gone."""
    return str(browser.execute_script(TEXT, selector))


def test_parts_are_chosen_refused_together_chosen_again_and_told_of(site: Site, browser: Any) -> None:
    site.tell("network", name="squeezenet")
    browser.get(f"{site.url}/runs/new?method=adatune")
    scheduler = browser.find_element("id", "id_scheduler")
    assert not scheduler.is_displayed()
    browser.find_element("xpath", "//summary[text()='Parts']").send_keys(Keys.ENTER)
    until(scheduler.is_displayed)
    for width in (320, 1280):
        size(browser, width, 900)
        assert not browser.execute_script(WIDER)
    choose(browser, "scheduler", "round_robin")
    choose(browser, "cost_model", "xgboost")
    start(browser)
    until(lambda: "choose cost_model random_forest" in text_of(browser, "[role=alert]"))
    assert Select(browser.find_element("id", "id_cost_model")).first_selected_option.text == "Boosted trees (xgboost)"
    choose(browser, "cost_model", "")
    start(browser)
    until(lambda: "AdaTune with scheduler round_robin" in text_of(browser, ".facts-line"))
    run = browser.current_url.rstrip("/").rpartition("/")[2]
    site.tell("begin", run=run)
    site.tell("tell", run=run, slots=12)
    assert not browser.find_element("id", "effects").is_displayed()
    site.tell("conclude", run=run, report=REPORT)
    until(lambda: "Slots: 12." in text_of(browser, "#effects"))
    assert "The explorer changed nothing: it found what it began with." in text_of(browser, "#effects")
    browser.get(site.url)
    until(lambda: "AdaTune with scheduler round_robin" in text_of(browser, "#runs"))
    assert complaints(browser) == []


def test_operators_to_tune_are_chosen_out_of_sight_and_said_with_what_is_known_of_them(
    site: Site, browser: Any
) -> None:
    site.tell("network", name="squeezenet")
    browser.get(f"{site.url}/runs/new")
    operators = browser.find_element("id", "id_operators")
    assert not operators.is_displayed()
    browser.find_element("xpath", "//summary[text()='Seed, layout and operators']").send_keys(Keys.ENTER)
    until(operators.is_displayed)
    for width in (320, 1280):
        size(browser, width, 900)
        assert not browser.execute_script(WIDER)
    choose(browser, "operators", "compute")
    start(browser)
    until(lambda: "tunes convolutions and matrix products only" in text_of(browser, ".facts-line"))
    run = browser.current_url.rstrip("/").rpartition("/")[2]
    try:
        site.tell("begin", run=run)
        known = lambda: browser.find_element("css selector", "[data-part=known]")  # noqa: E731
        until(lambda: "layout NHWC, tunes convolutions" in text_of(browser, "#made"))
        assert not known().is_displayed()
        (listed,) = [event for event in opening(12) if event["kind"] == "operators"]
        listed["operators"][0]["known"], listed["operators"][1]["alike"] = 9, 2
        site.tell("events", run=run, told=[listed])
        until(lambda: known().text == "1 of 12 operators known from earlier runs, 1 like some of them")
        browser.refresh()
        until(lambda: known().text == "1 of 12 operators known from earlier runs, 1 like some of them")
        assert complaints(browser) == []
    finally:
        site.tell("end", run=run)
