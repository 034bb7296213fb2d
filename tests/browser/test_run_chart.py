"""What the curve of a run shows of bests that were measured again, of libraries far over it, and where there is little room."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser import journal
from tests.browser.chromium import complaints, dark, size, until
from tests.browser.run_page import begun, open_run, part, reaches
from tests.browser.site import Site

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

DRAWN = """
const chart = window.Chart.getChart('curve'), {min, max} = chart.scales.y;
const [line, wholes, again, now] = chart.data.datasets.map(({data}) => data.map(({x, y}) => [x, y]));
return {line, wholes, again, now, min, max, clock: window.run.state.run.clock};
"""
WORDS = """
const of = CanvasRenderingContext2D.prototype, {fillText} = of, words = {};
of.fillText = function (text, x, y) {
  if (this.canvas.id !== 'curve' || text.length < 9) return; // not what stands on the axis
  const {width} = this.measureText(text), left = this.textAlign === 'right' ? x - width : x;
  words[text.replace(/[^A-Za-z↑ ]/g, '').trim()] = {left, right: left + width, y};
};
document.dispatchEvent(new Event('themechange'));
of.fillText = fillText;
return words;
"""
FIELD = """
const {left, right, top, bottom} = window.Chart.getChart('curve').chartArea, canvas = document.querySelector('#curve');
const box = canvas.getBoundingClientRect();
return {left: box.left + left, right: box.left + right, top: box.top + top, bottom: box.top + bottom};
"""
NOTICE = """
const notice = document.querySelector('#no-curve > span'), style = getComputedStyle(notice);
const {left, right, top, bottom} = notice.getBoundingClientRect();
return {left, right, top, bottom, background: style.backgroundColor, text: notice.textContent};
"""
LINE = """
const [line] = window.run.state.baselines, chart = window.Chart.getChart('curve');
return line && chart.canvas.getBoundingClientRect().top + chart.scales.y.getPixelForValue(line.seconds);
"""
THEMES = """
window.themes = [];
document.addEventListener('themechange', () => window.themes.push(document.documentElement.dataset.theme));
"""
FITTED = """
const {clientWidth, width} = document.querySelector(arguments[0]);
return clientWidth > 0 && width === Math.round(clientWidth * devicePixelRatio);
"""
WINDOW = "const {min, max} = window.Chart.getChart('curve').scales.x; return [min, max]"
LINES = """
const notice = document.querySelector('#no-curve > span'), range = document.createRange(), lines = [];
for (const node of notice.childNodes) for (let i = 0; i < (node.length ?? 0); i++) {
  range.setStart(node, i); range.setEnd(node, i + 1);
  const {top} = range.getBoundingClientRect(), last = lines.at(-1);
  if (last && Math.abs(last.top - top) < 4) last.text += node.data[i]; else lines.push({top, text: node.data[i]});
}
return lines.map(({text}) => text.trim());
"""


@pytest.fixture
def single(site: Site) -> Iterator[str]:
    """A run of one operator, of weight one."""
    with begun(site, "of one operator", operators=1) as key:
        yield key


def measured(clock: float, serial: int, seconds: float, again: int = 0) -> dict[str, Any]:
    """A batch of one configuration; of an earlier one a later round."""
    measurement = {**journal.measurement(0, serial, seconds), "round": again}
    figures = {"latency": None, "trials": 0, "failures": 0, "spent": {"build": clock}}
    return {"kind": "batch", "clock": clock, "slot": 0, "measurements": [measurement], **figures}


def baseline(name: str, seconds: float) -> dict[str, Any]:
    return {"kind": "baseline", "clock": 60.0, "name": name, "seconds": seconds, "spread": 0.0, "threads": 2}


def whole(clock: float, seconds: float) -> dict[str, Any]:
    made_of = {"spread": 0.0, "runs": 9, "latency": 1e-9, "verified": True, "error": ""}
    return {"kind": "end_to_end", "clock": clock, "seconds": seconds, **made_of}


def test_the_best_so_far_never_rises_and_what_it_came_to_when_measured_again_is_marked(
    site: Site, browser: Any, single: str
) -> None:
    open_run(browser, site, single)
    luck = [measured(4.0, 1, 0.010), measured(5.0, 2, 0.0080), measured(6.0, 2, 0.0082, again=1)]
    site.tell("events", run=single, told=luck)
    until(lambda: part(browser, "of") == "sum of operators, after the best were measured again")
    assert (part(browser, "latency"), part(browser, "unit")) == ("8.20", "ms")
    until(lambda: browser.execute_script(DRAWN)["again"] == [[6.0, 0.0082]])
    assert [y for _, y in browser.execute_script(DRAWN)["line"]] == [0.010, 0.008, 0.008]
    assert {"Measured again  ms"} == {words for words in browser.execute_script(WORDS) if "ms" in words}
    # Below the line it is the best so far again; what was corrected stays marked.
    site.tell("events", run=single, told=[measured(7.0, 3, 0.0081), measured(8.0, 4, 0.0070)])
    until(lambda: part(browser, "of") == "sum of operators")
    until(lambda: browser.execute_script(DRAWN)["now"] == [[8.0, 0.007]])
    assert "Best so far  ms" in browser.execute_script(WORDS)
    live = browser.execute_script(DRAWN)
    assert live["again"] == [[7.0, 0.0081]]
    assert [y for _, y in live["line"]] == sorted((y for _, y in live["line"]), reverse=True)
    browser.refresh()
    until(lambda: browser.execute_script(DRAWN)["now"] == [[8.0, 0.007]])
    assert browser.execute_script(DRAWN)["again"] == live["again"]
    assert complaints(browser) == []


def test_pointing_behind_a_correction_says_that_it_is_one(site: Site, browser: Any, single: str) -> None:
    told = [measured(4.0, 1, 0.010), measured(10.0, 1, 0.011, again=1), measured(20.0, 2, 0.0109)]
    site.tell("events", run=single, told=told)
    open_run(browser, site, single)
    browser.find_element("css selector", "#curve").send_keys("\ue012")  # to the left
    until(lambda: "11.0 ms, measured again" in browser.find_element("css selector", ".tip").text)


def test_where_the_line_has_come_to_has_a_dot(site: Site, browser: Any, run: str) -> None:
    told = site.tell("tell", run=run, slots=14)
    open_run(browser, site, run)
    reaches(browser, told["seq"])
    until(lambda: browser.execute_script(DRAWN)["now"])
    drawn = browser.execute_script(DRAWN)
    assert drawn["now"] == [[drawn["clock"], told["latency"]]]


def test_a_library_far_over_the_curve_leaves_it_its_room(site: Site, browser: Any, run: str) -> None:
    latency = site.tell("tell", run=run, slots=14)["latency"]
    open_run(browser, site, run)
    before = until(lambda: browser.execute_script(DRAWN)["max"])
    site.tell("events", run=run, told=[whole(61.0, 2 * latency), whole(62.0, 10 * before)])
    drawn = until(lambda: len((found := browser.execute_script(DRAWN))["wholes"]) == 2 and found)
    assert drawn["max"] < 3 * before
    assert drawn["wholes"] == [[61.0, 2 * latency], [62.0, drawn["max"]]]  # at the upper edge
    assert "↑ End to end  ms" in browser.execute_script(WORDS)


@pytest.mark.parametrize("width", [390, 1280])
def test_no_words_are_printed_over_others_and_the_best_has_its_own(
    site: Site, browser: Any, compared: str, width: int
) -> None:
    run = compared
    latency = site.tell("tell", run=run, slots=20)["latency"]
    lines = [baseline("ONNX Runtime", 20 * latency), baseline("TVM untuned", 60 * latency), whole(61.0, 30 * latency)]
    site.tell("events", run=run, told=[*lines, baseline("near", 1.01 * latency)])
    size(browser, width, 844)
    open_run(browser, site, run)
    until(lambda: len(browser.execute_script("return window.run.state.baselines")) == 3)
    words = until(lambda: len(found := browser.execute_script(WORDS)) == 5 and found)
    assert {name.removesuffix("ms").strip() for name in words} == {
        "↑ ONNX Runtime", "↑ TVM untuned", "↑ End to end", "near", "Best so far",
    }  # fmt: skip
    heights = sorted(word["y"] for word in words.values())
    assert min(below - above for above, below in pairwise(heights)) >= 14
    box = browser.find_element("css selector", "#curve").rect
    assert all(0 <= word["left"] and word["right"] <= box["width"] for word in words.values())
    assert heights[0] >= 0
    assert heights[-1] <= box["height"]


def test_a_dot_from_before_its_best_was_measured_again_says_that(site: Site, browser: Any, single: str) -> None:
    site.tell("events", run=single, told=[measured(4.0, 1, 0.010), measured(10.0, 1, 0.011, again=1)])
    open_run(browser, site, single)
    browser.find_element("css selector", "#tried > summary").click()
    until(lambda: browser.execute_script(FITTED, "#scatter"))  # before it is drawn nothing can be pointed at
    pointed = lambda: browser.find_element("css selector", "[data-pointed]").get_attribute("textContent")  # noqa: E731
    browser.find_element("css selector", "#scatter").send_keys(Keys.ARROW_LEFT)
    until(lambda: pointed().endswith("11.0 ms, 1.00 x its best"))
    browser.find_element("css selector", "#scatter").send_keys(Keys.PAGE_UP * 8)
    until(lambda: pointed().endswith("10.0 ms, before its best was measured again"))


def test_what_is_printed_is_light(site: Site, browser: Any, run: str) -> None:
    dark(browser, True)
    site.tell("tell", run=run, slots=14)
    open_run(browser, site, run)
    browser.execute_script(THEMES)
    browser.execute_cdp_cmd("Page.printToPDF", {})
    assert browser.execute_script("return window.themes") == ["light", "dark"]
    assert complaints(browser) == []


@pytest.mark.parametrize("width", [320, 1280])
def test_why_there_is_no_curve_is_said_within_its_field(site: Site, browser: Any, run: str, width: int) -> None:
    size(browser, width, 844)
    open_run(browser, site, run)
    notice = until(lambda: "not yet:" in (found := browser.execute_script(NOTICE))["text"] and found)
    field = browser.execute_script(FIELD)
    for side, sign in (("left", 1), ("top", 1), ("right", -1), ("bottom", -1)):
        assert sign * notice[side] >= sign * field[side], side
    assert notice["background"] not in ("rgba(0, 0, 0, 0)", "transparent")
    site.tell("events", run=run, told=[baseline("ONNX Runtime", 0.01)])
    # A lone one is seen.
    until(lambda: (line := browser.execute_script(LINE)) and (width < 700 or line < notice["top"]))
    # A line ends with a word, of a name too.
    lines = browser.execute_script(LINES)
    text = "".join(notice["text"].split())
    assert "".join("".join(line.split()) for line in lines) == text
    names = ["max_pool2d0", "conv2d1_add_relu", "conv2d2_add_relu"]
    whole_words = {piece for name in names for piece in name.replace("_", "_ ").split()}
    assert all(any(piece in line for line in lines) for piece in whole_words)


def zoom(browser: Any, word: str) -> Any:
    return browser.find_element("xpath", f"//button[text()='{word}']")


def span(browser: Any) -> float:
    shown = browser.execute_script(WINDOW)
    return float(shown[1] - shown[0])


def test_buttons_show_half_or_twice_as_much_of_the_time(site: Site, browser: Any, run: str) -> None:
    site.tell("tell", run=run, slots=30)
    open_run(browser, site, run)
    clock, whole = browser.execute_script(DRAWN)["clock"], until(lambda: span(browser))
    for parts in (2, 4):
        zoom(browser, "Zoom in").send_keys(Keys.ENTER)
        until(lambda parts=parts: span(browser) == pytest.approx(whole / parts))
    assert sum(browser.execute_script(WINDOW)) / 2 == pytest.approx(clock / 2, abs=clock / 4)
    for parts in (2, 1):
        zoom(browser, "Zoom out").send_keys(Keys.ENTER)
        until(lambda parts=parts: span(browser) == pytest.approx(whole / parts))
    assert not zoom(browser, "Show all").is_displayed()
    zoom(browser, "Zoom out").send_keys(Keys.ENTER)
    assert span(browser) == pytest.approx(whole)


TIMES = "return [...document.querySelectorAll('[data-zoom]')].map((button) => button.getAttribute('aria-disabled'))"


def test_a_window_of_time_is_never_so_short_that_its_axis_tells_nothing(site: Site, browser: Any, run: str) -> None:
    site.tell("tell", run=run, slots=30)
    open_run(browser, site, run)
    until(lambda: span(browser))
    assert browser.execute_script(TIMES) == ["true", "false"]  # out, in
    for _ in range(12):
        zoom(browser, "Zoom in").send_keys(Keys.ENTER)
    until(lambda: browser.execute_script(TIMES) == ["false", "true"])
    assert 2 <= span(browser) < 4
    assert browser.execute_script("return document.activeElement.textContent") == "Zoom in"


def test_an_axis_has_the_unit_of_what_is_told_beside_it(site: Site, browser: Any, single: str) -> None:
    site.tell("events", run=single, told=[measured(5.0, 1, 7e-4), measured(9.0, 2, 6e-4)])
    open_run(browser, site, single)
    labels = "return window.Chart.getChart('curve').scales.y.ticks.map(({label}) => label)"
    units = lambda: {label.split()[1] for label in browser.execute_script(labels)}  # noqa: E731
    until(lambda: units() == {"µs"})
    site.tell("events", run=single, told=[baseline("ONNX Runtime", 1.5e-3)])
    until(lambda: units() == {"ms"})


def test_who_shows_all_of_the_time_without_a_mouse_stays_among_the_buttons(site: Site, browser: Any, run: str) -> None:
    site.tell("tell", run=run, slots=30)
    open_run(browser, site, run)
    zoom(browser, "Zoom in").send_keys(Keys.ENTER)
    until(lambda: zoom(browser, "Show all").is_displayed())
    zoom(browser, "Show all").send_keys(Keys.ENTER)
    until(lambda: not zoom(browser, "Show all").is_displayed())
    assert browser.execute_script("return document.activeElement.dataset.zoom")


def test_no_button_is_printed_of_a_run_that_is_zoomed_into(site: Site, browser: Any, run: str) -> None:
    site.tell("tell", run=run, slots=30)
    open_run(browser, site, run)
    zoom(browser, "Zoom in").send_keys(Keys.ENTER)
    until(lambda: zoom(browser, "Show all").is_displayed())
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    buttons = browser.find_elements("css selector", "[aria-label='Time that is shown'] button")
    assert [button.is_displayed() for button in buttons] == [False] * 3
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


HORIZONS = """
const [clocks, done] = arguments, page = document.querySelector('script[src$="run/page.js"]').src;
import(page.replace('page.js', 'look.js')).then(({horizon}) =>
  done(clocks.map((clock) => horizon({running: true, run: {clock, budget: {}}}))));
"""


def test_the_axis_of_a_run_of_days_goes_on_by_quarters_of_a_day(site: Site, browser: Any, run: str) -> None:
    open_run(browser, site, run)
    hours = [23, 23.6, 24, 28, 29, 29.5, 100]
    ends = browser.execute_async_script(HORIZONS, [3600 * hour for hour in hours])
    assert [end / 3600 for end in ends] == [24, 30, 30, 30, 30, 36, 102]


PLACE = "const {left, top, width, height} = arguments[0].getBoundingClientRect(); return [left, top, width, height]"
SHOWN = f"arguments[0].scrollIntoView({{block: 'center'}}); {PLACE}"


def tap(browser: Any, x: float, y: float) -> None:
    for kind, points in (("touchStart", [{"x": x, "y": y}]), ("touchEnd", [])):
        browser.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})


def test_a_finger_reads_a_value_that_stays_and_zooms_there(site: Site, browser: Any, run: str) -> None:
    site.tell("tell", run=run, slots=30)
    size(browser, 390, 844)
    browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
    open_run(browser, site, run)
    tip, whole = browser.find_element("css selector", ".tip"), until(lambda: span(browser))
    for place, share in (("#lanes", 0.7), ("#curve", 0.4)):
        left, top, width, height = browser.execute_script(SHOWN, browser.find_element("css selector", place))
        field = browser.execute_script(FIELD)
        x, y = field["left"] + share * (field["right"] - field["left"]), top + height / 2
        tap(browser, x, y)
        until(lambda: re.match(r"\d+ s: [\d.]+ ms\nSlot ", tip.text))
        assert sum(browser.execute_script(PLACE, tip)[1::2]) < y  # not under the finger
    left, top, width, height = browser.execute_script(PLACE, zoom(browser, "Zoom in"))
    tap(browser, left + width / 2, top + height / 2)
    until(lambda: span(browser) == pytest.approx(whole / 2))
    assert sum(browser.execute_script(WINDOW)) / 2 == pytest.approx(0.4 * whole, rel=0.02)
    tap(browser, x, y)
    until(tip.is_displayed)
    tap(browser, 8, top)
    until(lambda: not tip.is_displayed())
    assert complaints(browser) == []


def test_a_run_that_failed_before_it_measured_anything_speaks_of_an_end(site: Site, browser: Any) -> None:
    with begun(site, "fails early", operators=3) as run:
        open_run(browser, site, run)
        empty = lambda: browser.find_element("css selector", "#no-curve").text  # noqa: E731
        until(lambda: empty().startswith("The curve begins when every operator was measured once; not yet: #0 "))
        told = site.tell("fail", run=run, reason="no room", printed="")
        reaches(browser, told["seq"])
        names = "#0 max_pool2d0, #1 conv2d1_add_relu, #2 conv2d2_add_relu"
        until(lambda: empty() == f"There is no curve: the run ended before it measured {names}.")
        assert not browser.find_element("css selector", "[data-part=failures]").is_displayed()  # none was tried


def test_a_run_of_few_operators_has_no_room_for_lanes_that_it_has_not(site: Site, browser: Any) -> None:
    with begun(site, "three lanes", operators=3) as run:
        open_run(browser, site, run)
        height = lambda: browser.find_element("css selector", "#lanes").size["height"]  # noqa: E731
        assert height() == 192  # nine, until it is known which are the dearest
        reaches(browser, site.tell("tell", run=run, slots=3)["seq"])
        until(lambda: height() == 192 - 6 * 18)
