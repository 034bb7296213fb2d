// What the clock of a run shows between two events: the time since the last one is added.

export class Clock {
  constructor(now = () => performance.now() / 1000) { Object.assign(this, { now, told: null, shown: 0 }); }

  /**
   * Seconds; it goes on while the run does and the line is `live`, as far as the budget, and never back within an attempt. Of a
   * later attempt the run's clock stands until that is where the one before was (workers/child/clock.py): so does this one
   * until it is told to go on.
   */
  seconds({ clock, state, budget, attempt }, live) {
    const now = this.now(), goes = state === "running" || state === "stopping";
    if (attempt !== this.attempt || !goes) Object.assign(this, { attempt, shown: 0, stands: attempt > 1 && clock > 0 });
    else if (clock !== this.told) this.stands = false;
    if (clock !== this.told || !goes || !live || this.stands) Object.assign(this, { told: clock, since: now });
    const guessed = Math.min(clock + now - this.since, budget.seconds ?? Infinity);
    this.shown = Math.max(this.shown, clock, guessed);
    return this.shown;
  }
}
