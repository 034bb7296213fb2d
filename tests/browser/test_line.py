"""The run page's line to a server that stands still: nobody closes it, and nobody answers."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from tests.browser.chromium import until
from tests.browser.site import Site

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

FASTER = 8
"""So much faster passes the time of the page's scripts: they wait 25 s for a word."""
LINE = """
const [path, faster, done] = arguments, page = document.querySelector('script[src$="run/page.js"]').src;
const after = window.setTimeout, Real = window.WebSocket;
window.inTime = () => { window.setTimeout = after; };
window.setTimeout = (act, wait) => after(act, wait / faster);
window.made = 0;
window.WebSocket = class extends Real { constructor(address) { super(address); window.made += 1; } };
window.said = [];
import(page.replace('page.js', 'socket.js')).then(({Line}) => {
  const onStatus = (word) => { if (window.said.at(-1) !== word) window.said.push(word); };
  new Line(path, () => 0, {onEvents: () => {}, onStatus});
  done();
});
"""
SAID = "return window.said"
LIVE = "return window.said.at(-1) === 'live' && (window.said = ['live'])"
MADE = "return window.made"
ONLINE = "const before = window.made; window.dispatchEvent(new Event('online')); return window.made > before"


def test_a_line_that_nobody_answers_on_is_lost_at_once_and_another_is_tried(site: Site, browser: Any, run: str) -> None:
    browser.get(f"{site.url}/runs/{run}/")
    until(lambda: browser.execute_script("return window.run?.state.seq"))
    browser.execute_async_script(LINE, f"/ws/runs/{run}/", FASTER)
    # Its time to open is shorter too: it may be lost before it is live.
    until(lambda: browser.execute_script(LIVE))
    site.web.send_signal(signal.SIGSTOP)
    try:
        # A closing handshake that nobody answers takes a browser ten seconds more.
        until(lambda: browser.execute_script(SAID) == ["live", "lost"], 8)
        before = browser.execute_script(MADE)
        until(lambda: browser.execute_script(MADE) > before + 1)  # each of them waits to be opened
        assert browser.execute_script(ONLINE)
        browser.execute_script("window.inTime()")
    finally:
        site.web.send_signal(signal.SIGCONT)
    until(lambda: browser.execute_script(SAID) == ["live", "lost", "live"], 60)


REFUSED = """
const [path, times, done] = arguments, page = document.querySelector('script[src$="run/page.js"]').src;
const Real = window.WebSocket;
let left = times;
window.WebSocket = class extends Real {
  constructor(address) { super(left-- > 0 ? address.replace(/[0-9a-f-]{36}/, crypto.randomUUID()) : address); }
};
window.said = [];
import(page.replace('page.js', 'socket.js')).then(({Line}) => {
  const onStatus = (word) => { if (window.said.at(-1) !== word) window.said.push(word); };
  new Line(path, () => 0, {onEvents: () => {}, onStatus});
  done();
});
"""


@pytest.mark.parametrize(("times", "said"), [(1, "live"), (2, "gone")])
def test_a_line_that_is_not_let_to_its_run_is_tried_once_more(
    site: Site, browser: Any, run: str, times: int, said: str
) -> None:
    """As of who signed in anew in another tab: the browser has another cookie."""
    browser.get(f"{site.url}/runs/{run}/")
    until(lambda: browser.execute_script("return window.run?.state.seq"))
    browser.execute_async_script(REFUSED, f"/ws/runs/{run}/", times)
    until(lambda: browser.execute_script(SAID) == [said])
