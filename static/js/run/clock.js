// What the clock of a run shows between two events: the time since the last one is added.

export class Clock {
  constructor(now = () => performance.now() / 1000) { Object.assign(this, { now, told: null, shown: 0 }); }

  /** Seconds; it goes on while the run does and the line is `live`, as far as the budget, and never back while it goes on. */
  seconds({ clock, state, budget }, live) {
    const now = this.now();
    if (clock !== this.told || state !== "running" || !live) { this.told = clock; this.since = now; }
    if (state !== "running") this.shown = 0;
    const guessed = Math.min(clock + now - this.since, budget.seconds ?? Infinity);
    this.shown = Math.max(this.shown, clock, guessed);
    return this.shown;
  }
}
