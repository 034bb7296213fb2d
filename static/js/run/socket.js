// The run's line to the server: goes on from the last number seen, whatever happens to the network in between.

const SILENCE = 25000; // ms; the server says something every ten seconds
const LONGEST = 15000;

export class Line {
  constructor(path, seq, { onEvents, onStatus }) {
    this.path = path;
    this.seq = seq;
    this.onEvents = onEvents;
    this.onStatus = onStatus;
    this.failures = 0;
    this.#open();
    window.addEventListener("online", () => this.#soon(0));
  }

  #open() {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    this.timer = null;
    this.socket = new WebSocket(`${scheme}://${location.host}${this.path}?after=${this.seq()}`);
    const socket = this.socket;
    socket.onopen = () => { this.#listen(); };
    socket.onmessage = (message) => this.#hear(socket, JSON.parse(message.data));
    socket.onclose = (event) => { if (socket === this.socket) this.#lost(event); };
  }

  #hear(socket, frame) {
    this.failures = 0;
    this.onStatus("live");
    this.#listen();
    if (!frame.events) return;
    // Acknowledged when drawn, not when heard: a slow page must slow the server down.
    this.onEvents(frame.events, () => { if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ ack: frame.seq })); });
  }

  #listen() {
    clearTimeout(this.watchdog);
    this.watchdog = setTimeout(() => this.socket.close(), SILENCE);
  }

  #lost(event) {
    clearTimeout(this.watchdog);
    if (event.code === 4404) { this.onStatus("gone"); return; }
    if (event.code === 4429) { this.onStatus("crowded"); this.#soon(LONGEST); return; }
    this.onStatus("lost");
    this.#soon(Math.min(LONGEST, 500 * 2 ** this.failures++) * (0.75 + Math.random() / 2));
  }

  #soon(delay) {
    if (this.socket.readyState <= WebSocket.OPEN && delay === 0) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.#open(), delay);
  }
}
