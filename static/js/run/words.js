// What short names are called: apps/dashboard/words.py has them, the page brings them along.

export const words = JSON.parse(document.getElementById("words").textContent);

/** Whether it stands still for no failure, though it says why: others have their turn. As words.ordinary says it. */
export function ordinary({ state, error }) { return state === "queued" && error === words.happened.turn; }

/** What a run does; words.of_state says it by the same rules, and when another attempt is made. */
export function stateWord({ state, wanted, finished_reason: reason }) {
  if (state === "running" && wanted === "pause") return words.states.pausing;
  if (state !== "done") return words.states[state] ?? state;
  if (reason === "stopped") return words.reasons.stopped;
  return words.reasons[reason] ? `done: ${words.reasons[reason]}` : "done";
}
