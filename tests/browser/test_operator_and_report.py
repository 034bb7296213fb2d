"""An operator's page, and a report opened as a file, in a real browser: light and dark, by keyboard, and offline."""

from __future__ import annotations

import struct
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser.chromium import chromium, complaints, dark, needs_chromium, size, until
from tests.browser.run_page import begun
from tests.browser.site import Site

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

PAPER = "return getComputedStyle(document.documentElement).backgroundColor"
SIZES = "return [document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
ASKED = "return performance.getEntriesByType('resource').map((e) => e.name)"
SMALLEST = """
return [...document.querySelectorAll('svg.chart')].filter((chart) => chart.checkVisibility()).map((chart) => {
  const box = chart.getBoundingClientRect(), texts = [...chart.querySelectorAll('text')];
  const inside = ({left, right}) => left >= box.left - 1 && right <= box.right + 1;
  const scale = box.width / chart.viewBox.baseVal.width;
  const within = box.left >= 0 && box.right <= innerWidth;
  return within && scale * 12 > 10 && texts.every((text) => inside(text.getBoundingClientRect()));
});
"""
ENDS = """
const box = document.querySelector(arguments[0]), chart = box.querySelector('svg');
return [box.scrollWidth > box.clientWidth, chart.getBoundingClientRect().right];
"""
LINKS = "#operators tbody td.name a"
OPENED = "details[open] table tbody"


@pytest.fixture
def run(site: Site) -> str:
    """A finished run with a baseline and a verified network."""
    network = site.tell("network", name="squeezenet")["network"]
    run = str(site.tell("run", network=network)["run"])
    told = site.tell("tell", run=run, slots=120)
    clock = 3.0 + 1.5 * 120
    line = {"kind": "baseline", "clock": clock, "name": "ONNX Runtime", "spread": 2e-5, "runs": 40, "threads": 2}
    whole = {"kind": "end_to_end", "clock": clock, "spread": 1e-5, "runs": 40, "verified": True, "error": ""}
    site.tell("events", run=run, told=[line | {"seconds": told["latency"] * 1.3}])
    site.tell("events", run=run, told=[whole | {"seconds": told["latency"] * 1.05, "latency": told["latency"]}])
    site.tell("conclude", run=run)
    return run


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Any]:
    """Somebody who was sent a file."""
    needs_chromium()
    driver = chromium(tmp_path / "reader")
    try:
        yield driver
    finally:
        driver.quit()


def seen(browser: Any, path: Path, width: int = 1280) -> str:
    """Keeps a picture of the whole page; returns the colour of its paper."""
    size(browser, width, 900)
    _, height = browser.execute_script(SIZES)
    size(browser, width, height)
    assert browser.save_screenshot(str(path))
    assert path.stat().st_size > 20_000
    return str(browser.execute_script(PAPER))


def legible(browser: Any) -> list[bool]:
    """Of each chart that is shown: whether it is within the screen, and its words within it and large enough."""
    return list(browser.execute_script(SMALLEST))


def both(browser: Any, folder: Path, name: str) -> None:
    papers = []
    for shade in ("light", "dark"):
        dark(browser, shade == "dark")
        papers.append(seen(browser, folder / f"{name}-{shade}.png"))
    assert papers == ["rgb(250, 250, 248)", "rgb(18, 20, 23)"]


def test_an_operator_is_reached_and_read_without_a_mouse(site: Site, browser: Any, run: str, tmp_path: Path) -> None:
    browser.get(f"{site.url}/runs/{run}/")

    name = until(lambda: browser.find_element("css selector", LINKS).text)
    until(lambda: browser.find_element("css selector", LINKS).send_keys(Keys.ENTER) or True)  # rows may be drawn anew
    until(lambda: "/operators/" in browser.current_url)
    until(lambda: browser.find_element("css selector", "h1").text == name)
    until(lambda: len(browser.find_elements("css selector", "svg.chart.wide polyline")) == 3)
    until(lambda: browser.find_elements("css selector", "circle.came"))
    knobs = lambda: browser.find_element("css selector", "table.knobs").text  # noqa: E731
    until(lambda: knobs().count("loop of 56, outer to inner") == 8)
    summaries = "details.as-table > summary"
    until(lambda: len(browser.find_elements("css selector", summaries)) == 3)
    for summary in browser.find_elements("css selector", summaries):
        summary.send_keys(Keys.ENTER)
    tables = until(lambda: len(found := browser.find_elements("css selector", OPENED)) == 3 and found)
    assert all(table.find_elements("css selector", "tr") for table in tables)
    assert browser.find_element("css selector", "details[open] svg.chart.wide polygon").rect["width"] > 100
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    for kind in ("png", "csv"):
        browser.find_element("css selector", f"#{kind}-the-chain").send_keys(Keys.ENTER)
    until(lambda: len(list(tmp_path.glob("squeezenet-operator-*-chain.???"))) == 2)
    heading, *steps = next(tmp_path.glob("*-chain.csv")).read_text().splitlines()
    assert heading == "step,slowest_tenth_s,slowest_quarter_s,median_s,fastest_quarter_s,fastest_tenth_s"
    assert steps
    assert all(0 < float(cell) < 1 for step in steps for cell in step.split(",")[1:])
    browser.refresh()
    both(browser, tmp_path, "operator")
    assert complaints(browser) == []
    size(browser, 390, 844)
    assert browser.execute_script(SIZES)[0] <= 390
    assert legible(browser) == [True] * 2
    seen(browser, tmp_path / "operator-narrow.png", 390)
    browser.find_element("css selector", "a[rel=next], a[rel=prev]").send_keys(Keys.ENTER)
    until(lambda: browser.find_element("css selector", "h1").text != name)


def test_an_operator_of_a_run_that_goes_on_comes_up_to_date_and_what_was_opened_stays_open(
    site: Site, browser: Any
) -> None:
    with begun(site, "squeezenet") as run:
        browser.get(f"{site.url}/runs/{run}/operators/0/")
        until(lambda: "Nothing was tried yet" in browser.find_element("css selector", "main").text)
        site.tell("tell", run=run, slots=60, at_once=60)  # the page comes up to date with all of them
        rows = lambda: len(browser.find_elements("css selector", "#steps tbody tr"))  # noqa: E731
        before = until(rows)
        until(lambda: browser.find_element("css selector", "#steps > summary").send_keys(Keys.ENTER) or True)
        until(lambda: browser.find_element("css selector", "#steps tbody").is_displayed())
        browser.execute_script("document.querySelector('#course').dataset.old = ''")
        browser.execute_script("document.querySelector('#steps-table').focus()")
        site.tell("tell", run=run, slots=240, at_once=240)
        until(lambda: not browser.find_elements("css selector", "#course[data-old]"))
        assert rows() > before
        assert browser.find_element("css selector", "#steps tbody").is_displayed()
        until(lambda: browser.execute_script("return document.activeElement.id") == "steps-table")
        assert complaints(browser) == []
    until(lambda: not browser.find_elements("css selector", "#course[hx-get]"))


def test_runs_are_compared_on_a_phone_too_and_taken_as_picture_and_figures(
    site: Site, browser: Any, run: str, tmp_path: Path
) -> None:
    """The picture is the wide one, and needs no style sheet."""
    network = site.tell("network", name="squeezenet")["network"]
    other = str(site.tell("run", network=network, seconds=60.0)["run"])
    site.tell("tell", run=other, slots=30)
    site.tell("conclude", run=other)
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    browser.get(f"{site.url}/networks/{network}/runs")
    both(browser, tmp_path, "compared")
    size(browser, 390, 844)
    assert browser.execute_script(SIZES)[0] <= 390
    assert legible(browser) == [True]
    seen(browser, tmp_path / "compared-narrow.png", 390)
    browser.find_element("css selector", "[data-save=png]").send_keys(Keys.ENTER)
    picture = tmp_path / "squeezenet-runs.png"
    until(lambda: picture.exists() and picture.stat().st_size > 20_000)
    width, height = struct.unpack(">II", picture.read_bytes()[16:24])
    assert (width, height) == (2 * 960, 2 * 360)
    browser.find_element("link text", "CSV").send_keys(Keys.ENTER)
    until((tmp_path / "squeezenet-runs.csv").exists)
    assert complaints(browser) == []


def test_a_report_opens_from_a_file_without_a_site(
    site: Site, browser: Any, reader: Any, run: str, tmp_path: Path
) -> None:
    browser.get(f"{site.url}/runs/{run}/")
    link = browser.find_element("css selector", "#downloads a[href$='report.html']").get_attribute("href")
    cookies = "; ".join(f"{cookie['name']}={cookie['value']}" for cookie in browser.get_cookies())
    with urllib.request.urlopen(urllib.request.Request(link, headers={"Cookie": cookies}), timeout=60) as answer:
        assert answer.headers["Content-Disposition"].startswith("attachment")
        file = tmp_path / "report.html"
        file.write_bytes(answer.read())
    reader.get(file.as_uri())
    assert reader.find_element("css selector", "h1").text == "squeezenet"
    assert reader.execute_script(ASKED) == []
    assert len(reader.find_elements("css selector", "svg.chart path.lane")) == 9
    both(reader, tmp_path, "report")
    size(reader, 390, 844)
    assert reader.execute_script(SIZES)[0] <= 390
    ends = reader.execute_script(ENDS, ".scroll:has(> svg.chart)")
    assert ends == pytest.approx([True, 390 - 16], abs=2)  # what is newest is in sight
    seen(reader, tmp_path / "report-narrow.png", 390)
    assert printed(reader, tmp_path / "report-print.png") == "rgb(26, 30, 35)"
    assert complaints(reader) == []


def printed(reader: Any, path: Path) -> str:
    """Keeps a picture as wide as the text of an A4 page, printed from a dark screen; returns the colour of its text."""
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    reader.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": features})
    seen(reader, path, 688)
    assert reader.execute_script(SIZES)[0] <= 688
    return str(reader.execute_script("return getComputedStyle(document.body).color"))
