// The run's line to the server: goes on from the last number seen, whatever happens to the network in between.

const SILENCE = 25000; // ms; the server says something every ten seconds
const OPENING = 8000; // ms until a line that does not open is given up
const ADMITTED = 1000; // ms after which an open line is believed: one that is refused opens too, and is closed at once
const LONGEST = 15000;
// Why the server closed a line: apps/dashboard/consumers.py and origins.py.
const FOREIGN = 4403, NOT_THERE = 4404, BEHIND = 4410, CROWDED = 4429;

export class Line {
  constructor(path, seq, { onEvents, onStatus }) {
    this.path = path;
    this.seq = seq;
    this.onEvents = onEvents;
    this.onStatus = onStatus;
    this.failures = 0;
    this.refused = false; // whether the last line was told that there is no such run
    this.#open();
    // Whatever line there is may be one of the network before.
    window.addEventListener("online", () => this.#open());
  }

  #open() {
    this.#leave();
    this.fresh = true; // nothing was heard on this one yet
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = this.socket = new WebSocket(`${scheme}://${location.host}${this.path}?after=${this.seq()}`);
    // One that was left may still speak, or close, much later.
    const heard = (act) => (event) => { if (socket === this.socket) act(event); };
    socket.onopen = heard(() => {
      this.#listen(SILENCE);
      this.timer = setTimeout(() => this.#live(), ADMITTED);
    });
    socket.onmessage = heard((message) => this.#hear(socket, JSON.parse(message.data)));
    socket.onclose = heard((event) => this.#lost(event.code));
    this.#listen(OPENING);
  }

  #hear(socket, frame) {
    this.failures = 0;
    this.refused = false;
    this.#live();
    this.#listen(SILENCE);
    if (!frame.events) return;
    // Acknowledged when drawn, not when heard: a slow page must slow the server down.
    this.onEvents(frame.events, () => { if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ ack: frame.seq })); });
  }

  #live() {
    const { fresh } = this;
    this.fresh = false;
    this.onStatus("live", fresh);
  }

  /** Without waiting for the close of a line that nobody answers on: that alone takes long. */
  #listen(patience) {
    clearTimeout(this.watchdog);
    this.watchdog = setTimeout(() => this.#lost(), patience);
  }

  #leave() {
    clearTimeout(this.watchdog);
    clearTimeout(this.timer);
    const { socket } = this;
    this.socket = null;
    socket?.close();
  }

  #lost(code) {
    this.#leave();
    if (code === NOT_THERE && this.refused) { this.onStatus("gone"); return; }
    // Who signed in anew in another tab has another cookie, which only another line brings.
    if (code === NOT_THERE) { this.refused = true; this.#soon(500); return; }
    if (code === FOREIGN) { this.onStatus("foreign"); return; }
    if (code === BEHIND) { location.reload(); return; } // what was missed is drawn sooner than told
    if (code === CROWDED) { this.onStatus("crowded"); this.#soon(LONGEST); return; }
    this.onStatus("lost");
    this.#soon(Math.min(LONGEST, 500 * 2 ** this.failures++));
  }

  /** Not all pages at the same moment. */
  #soon(delay) {
    this.timer = setTimeout(() => this.#open(), delay * (0.75 + Math.random() / 2));
  }
}
