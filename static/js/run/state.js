// What the page knows of a run: a snapshot, and every event after it folded in. What they hold, and the columns of a slot and of a
// point, stands in apps/tuning/live.py. Knows nothing of the document.

import { monotone } from "./monotone.js";

export const OTHERS = 8; // the colour, and the lane, of all operators that have none of their own
const SPARK = 80;
const POINTS = 6000;
const LOG = 200;
const SLOTS = 10000;
const FIRST = "ONNX Runtime"; // of what there is to compare with

export class RunState {
  #drawn = null;

  constructor(snapshot) {
    Object.assign(this, snapshot);
    if (this.curve.at(-1)?.[1] === this.curve.at(-2)?.[1]) this.curve.pop(); // how far the run has come is no change
    this.byIndex = new Map(this.operators.map((operator) => [operator.index, operator]));
    this.lastSlot = this.slots.at(-1)?.[0] ?? -1; // they come in the order of their numbers
    this.gains = new Map(this.operators.map((operator) => [operator.index, operator.gain]));
    this.colours = new Map();
    this.#colour();
  }

  /** Folds events in, drops those known already, and names the topics that changed. */
  fold(events) {
    const changed = new Set();
    for (const event of events) {
      if (event.seq <= this.seq) continue;
      this.seq = event.seq;
      if (event.clock > this.run.clock) this.run.clock = event.clock;
      changed.add("run");
      const topic = this[`_${event.kind}`]?.(event);
      if (topic) changed.add(topic);
    }
    return changed;
  }

  get weightedSum() {
    let total = 0;
    for (const operator of this.operators) total += operator.weight * (operator.best || 0);
    return total;
  }

  /** Whether there is a best of each operator that has one, as apps/tuning/requests/artifacts.py decides; the others are given up. */
  get measured() {
    return this.operators.some(({ best }) => best) && this.operators.every((operator) => operator.best || operator.given_up);
  }

  /** Whether there is something that no library has. */
  get uncompiled() {
    return this.measured && !this.headline.whole;
  }

  get running() {
    return ["running", "queued", "stopping", "interrupted"].includes(this.run.state);
  }

  /** End-to-end measurements of libraries that computed what the reference computes. */
  get wholes() {
    return this.end_to_end.filter((point) => point.seconds && point.verified);
  }

  /**
   * The latency that is told first: that of the last library, while nothing better was found since (`whole`), else the sum of
   * operators. apps/dashboard/figures.py chooses by the same rule.
   */
  get headline() {
    const library = this.wholes.at(-1), sum = this.run.latency;
    if (!library || (sum && library.latency && sum < library.latency)) return { seconds: sum, spread: 0, whole: false, library };
    return { seconds: library.seconds, spread: library.spread, whole: true, library };
  }

  /** The curve as far as the run has come: it has changes only. */
  get curveToNow() {
    const { curve, run } = this, last = curve.at(-1);
    return last && run.clock > last[0] ? [...curve, [run.clock, last[1]]] : curve;
  }

  /** The curve as its line is drawn. Asked for with every move of the pointer. */
  get drawn() {
    return this.#drawn ??= monotone(this.curve);
  }

  /** Whether the best was measured again and came out slower than it was believed to be. */
  get corrected() {
    return this.drawn.over;
  }

  /** Whether what is expected is mostly of operators that little is known of. */
  get tooEarly() {
    const { expected } = this.run;
    return expected?.unknown > expected?.gain / 2;
  }

  /** Seconds won for the network by the slots of an operator. */
  gain(index) {
    return this.gains.get(index) || 0;
  }

  colour(index) {
    return this.colours.get(index) ?? OTHERS;
  }

  #count(slot) {
    const [number, index, , , before, after] = slot;
    if (number <= this.lastSlot) return false;
    this.lastSlot = number;
    if (before !== null && after !== null) {
      const weight = this.byIndex.get(index)?.weight || 0;
      this.gains.set(index, this.gain(index) + weight * Math.max(0, before - after));
    }
    return true;
  }

  // A colour is given once, by what the operators cost when all of them were measured for the first time: it must not
  // wander while the run goes on, nor differ after a reload. Those of which nothing ran come last.
  #colour() {
    if (this.colours.size || !this.measured) return;
    const cost = (operator) => operator.weight * (operator.spark[0]?.[1] ?? operator.best ?? 0);
    const ranked = [...this.operators].sort((a, b) => cost(b) - cost(a));
    ranked.forEach((operator, rank) => this.colours.set(operator.index, Math.min(rank, OTHERS)));
  }

  _batch(event) {
    const run = this.run;
    run.latency = event.latency;
    run.trials = event.trials;
    run.failures = event.failures;
    this.spent = event.spent;
    for (const [index, figures] of Object.entries(event.operators)) this.#figures(Number(index), figures);
    this.points.push(...event.points);
    if (this.points.length > POINTS) this.#thin();
    this.#curve(event);
    this.#colour();
    return "batch";
  }

  /** Every other of the points; of improvements only when they alone are half of what there is room for, as a snapshot does. */
  #thin() {
    const best = new Map(), seen = { true: 0, false: 0 };
    const better = this.points.map(([, index, seconds]) => {
      if (seconds === null || seconds >= (best.get(index) ?? Infinity)) return false;
      best.set(index, seconds);
      return true;
    });
    const many = better.filter(Boolean).length > POINTS / 2;
    this.points = this.points.filter((_, i) => (better[i] && !many) || seen[better[i]]++ % 2 === 1);
  }

  #figures(index, figures) {
    const operator = this.byIndex.get(index);
    if (!operator) return;
    // Not with operator.best: a snapshot's is newer than its spark when a batch was kept while it was made.
    if (figures.best !== null && figures.best !== operator.spark.at(-1)?.[1]) {
      operator.spark.push([figures.trials, figures.best]);
      // The first stays: the colour hangs on it.
      if (operator.spark.length > SPARK) operator.spark = operator.spark.filter((_, i) => i % 2 === 0 || i === operator.spark.length - 1);
    }
    Object.assign(operator, figures);
    operator.version = (operator.version || 0) + 1;
  }

  #curve(event) {
    if (event.latency === null || event.latency === this.curve.at(-1)?.[1]) return;
    this.curve.push([event.clock, event.latency]);
    this.#drawn = null;
  }

  _slot(event) {
    if (!this.#count(event.slot)) return null;
    if (event.expected) this.run.expected = event.expected;
    this.slots.push(event.slot);
    const half = SLOTS / 2; // of the earlier half every other one, as a snapshot thins them
    if (this.slots.length > SLOTS) this.slots = this.slots.filter((_, i) => i >= half || i % 2 === 0);
    const operator = this.byIndex.get(event.slot[1]);
    if (operator) {
      Object.assign(operator, event.operator, { terms: event.terms, rule: event.slot[7] });
      operator.version = (operator.version || 0) + 1;
    }
    return "slot";
  }

  _operators(event) {
    for (const told of event.operators) {
      const known = this.byIndex.get(told.index);
      if (known) Object.assign(known, told);
      else {
        const fresh = { best: null, trials: 0, failures: 0, given_up: false, slots: 0, seconds: 0, rule: "", terms: {}, spark: [], ...told };
        this.operators.push(fresh);
        this.byIndex.set(told.index, fresh);
      }
    }
    return "operators";
  }

  _started() {
    return "started";
  }

  _phase(event) {
    this.run.phase = event.text;
    this._log(event);
    return "phase";
  }

  _state(event) {
    for (const name of ["state", "wanted", "attempt", "again", "error", "next_step", "finished_reason"]) {
      if (event[name] !== undefined) this.run[name] = event[name];
    }
    this._log(event);
    return "state";
  }

  _finished(event) {
    this.run.finished_reason = event.reason === "paused" ? "" : event.reason;
    return "state";
  }

  _failed(event) {
    this.run.error = event.reason || event.error || this.run.error;
    this.run.next_step = event.next_step || this.run.next_step;
    return "state";
  }

  _log(event) {
    this.log.push(event);
    if (this.log.length > LOG) this.log.shift();
    return event.uncompared ? "uncompared" : "log";
  }

  _end_to_end(event) {
    if (!this.end_to_end.some((point) => point.clock === event.clock && point.seconds === event.seconds)) this.end_to_end.push(event);
    return "points";
  }

  _baseline(event) {
    const place = this.baselines.findIndex((line) => line.name === event.name);
    if (place >= 0) this.baselines[place] = event;
    else if (event.name === FIRST) this.baselines.unshift(event);
    else this.baselines.push(event);
    return "points";
  }

  _artifact() {
    return "artifact";
  }
}
