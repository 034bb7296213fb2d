// What happened, newest first: the run's own lines, its phases, what became of it, and when its latency was first known.

import { duration, latency } from "../format.js";
import { ordinary, stateWord, words } from "./words.js";

const MOST = 200;

export class Log {
  constructor(list, state) {
    Object.assign(this, { list, state });
    this.drawn = -1;
    this.became = null; // the last change of state
    this.pausing = false; // whether its attempt was asked to pause, and may end so though it was told to go on
    this.measured = false; // whether it was told that every operator was
    this.draw();
  }

  draw() {
    const [first] = this.state.curve;
    for (const event of this.state.log.filter(({ seq }) => seq > this.drawn)) {
      if (first && first[0] <= event.clock) this.#measured(first);
      this.drawn = event.seq;
      if (event.kind !== "state") this.#add(event.clock, event.text, event.level);
      else {
        this.#add(event.clock, change(event, this.became, this.pausing), levelOf(event));
        this.pausing = event.state === "running" && (event.wanted === "pause" || (this.pausing && event.attempt === this.became.attempt));
        this.became = event;
      }
    }
    if (first) this.#measured(first);
    while (this.list.children.length > MOST) this.list.lastElementChild.remove();
    this.list.parentElement.hidden = !this.list.children.length;
  }

  #measured([clock, seconds]) {
    if (!this.measured) this.#add(clock, `${words.happened.measured}: ${latency(seconds)}`);
    this.measured = true;
  }

  #add(clock, text, level = "info") {
    if (text) this.list.prepend(entry(clock, text, level));
  }
}

/** What a change of state says, by the one before it (null: none is known) and whether its attempt was to pause; empty where that was said already. */
function change(now, before, pausing) {
  const { happened } = words;
  if (now.state === "running") {
    if (before?.state !== "running") return now.attempt > 1 ? `${happened.on}, attempt ${now.attempt}` : happened.started;
    if (before.attempt !== now.attempt) return `${happened.gone}, attempt ${now.attempt}`;
    return now.wanted === before.wanted ? "" : now.wanted === "pause" ? stateWord(now) : happened.on;
  }
  if (now.state === "queued") {
    if (now.error) return now.error;
    return { running: pausing ? "" : happened.gone, paused: happened.resumed, failed: happened.resumed }[before?.state] ?? (now.attempt ? "" : happened.asked);
  }
  return now.state === "failed" ? `${stateWord(now)}: ${now.error}` : stateWord(now);
}

function levelOf(event) {
  if (event.state === "failed") return "error";
  return event.state === "queued" && event.error && !ordinary(event) ? "warning" : "info";
}

function entry(clock, words, level) {
  const item = document.createElement("li"), time = document.createElement("time"), text = document.createElement("span");
  item.dataset.level = level;
  time.textContent = duration(clock);
  text.textContent = (level === "info" ? "" : `${level}: `) + words;
  item.append(time, text);
  return item;
}
