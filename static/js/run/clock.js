// What the clock of a run shows between two events: the time since the last one is added.

/** Whether a run's time goes by: one that is being stopped finishes what it has in hand. */
export const goes = (state) => state === "running" || state === "stopping";

export class Clock {
  constructor(now = () => performance.now() / 1000) { Object.assign(this, { now, told: null, shown: 0 }); }

  /**
   * Seconds; it goes on while the run does and the line is `live`, as far as the budget, and never back within an attempt. Of a
   * later attempt the run's clock stands until that is where the one before was (workers/child/clock.py): so does this one
   * until it is told to go on.
   */
  seconds({ clock, state, budget, attempt }, live) {
    const now = this.now();
    if (attempt !== this.attempt || !goes(state)) Object.assign(this, { attempt, shown: 0, stands: attempt > 1 && clock > 0 });
    else if (clock !== this.told) this.stands = false;
    if (clock !== this.told || !goes(state) || !live || this.stands) Object.assign(this, { told: clock, since: now });
    const guessed = Math.min(clock + now - this.since, budget.seconds ?? Infinity);
    this.shown = Math.max(this.shown, clock, guessed);
    return this.shown;
  }
}
