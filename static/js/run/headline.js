// The line of facts, the big number, the controls and what went wrong.

import { count, duration, latency, percent, ratio } from "../format.js";
import { words } from "./words.js";

const SPEAK = 10000; // ms between two announcements of the big number

export class Headline {
  constructor(root, state) {
    this.state = state;
    this.part = (name) => root.querySelector(`[data-part="${name}"]`);
    this.spoken = 0;
    this.name = document.title;
    this.skew = Number(root.dataset.now) - Date.now() / 1000; // s, of the server's clock before ours
    this.draw();
  }

  draw() {
    const { run } = this.state;
    this.#state();
    this.#set("phase", run.state === "running" ? run.phase : "");
    this.#set("elapsed", duration(run.clock));
    this.#set("left", this.#left());
    this.#set("trials", `${count(run.trials)} tried`);
    this.#set("failures", run.failures ? `${count(run.failures)} failed` : "none failed");
    this.#set("known", this.#known());
    this.#set("ahead", this.#ahead());
    const [value, unit] = run.latency ? latency(run.latency).split(" ") : ["–", ""];
    this.#set("latency", value);
    this.#set("unit", unit);
    // A tab in the background has only its title to tell how far it is.
    const title = [run.latency && latency(run.latency), this.part("state-word").textContent, this.name].filter(Boolean).join(", ");
    if (document.title !== title) document.title = title;
    this.#gains();
    this.#controls();
    this.#trouble();
    this.#speak();
  }

  #set(name, text) {
    const element = this.part(name);
    if (element && element.textContent !== text) element.textContent = text;
    if (element && element.dataset.optional !== undefined) element.hidden = !text;
  }

  #state() {
    const { run } = this.state, element = this.part("state");
    const wait = run.state === "queued" && run.again ? run.again - this.skew - Date.now() / 1000 : 0;
    clearTimeout(this.tick);
    if (wait > 0) this.tick = setTimeout(() => this.#state(), 1000);
    const [state, word] = stateWord(run, wait);
    if (element.dataset.state === state && this.part("state-word").textContent === word) return;
    element.dataset.state = state;
    const use = element.querySelector("use");
    use.setAttribute("href", `${use.getAttribute("href").split("#")[0]}#${state === "done" && run.finished_reason === "stopped" ? "stopped" : state}`);
    this.#set("state-word", word);
  }

  #left() {
    const { run } = this.state;
    if (run.state !== "running") return "";
    const left = [];
    if (run.budget.seconds) left.push(run.budget.seconds - run.clock);
    if (run.budget.trials && run.trials) left.push(((run.budget.trials - run.trials) * run.clock) / run.trials);
    return left.length ? `${duration(Math.max(0, Math.min(...left)))} left` : "";
  }

  #known() {
    const { operators } = this.state, known = operators.filter((operator) => operator.known).length;
    return known ? `${known} of ${operators.length} operators known from earlier runs` : "";
  }

  /** What tuning a tenth longer should still bring, where that is known, and below what a run ends that has that limit. */
  #ahead() {
    const { expected, budget, state } = this.state.run;
    const { tooEarly } = this.state;
    if (!expected?.seconds || (tooEarly && state !== "running")) return "";
    const told = tooEarly ? "too early to say" : `${percent(expected.gain)} less latency`;
    const limit = budget.gain ? `; ends under ${percent(budget.gain)}` : "";
    return `expected of ${duration(expected.seconds)} more: ${told}${limit}`;
  }

  /** Ratios of whole networks once that was measured, else of the sum of operators, and they say so. */
  #gains() {
    const { run, baselines, end_to_end: whole, curve } = this.state;
    const box = this.part("gains"), parts = [];
    const ours = whole.filter((p) => p.seconds && p.verified).at(-1)?.seconds;
    const mine = ours || run.latency, of = ours ? "" : ", sum of operators";
    if (mine) for (const line of baselines) parts.push([ratio(line.seconds / mine), `against ${line.name}${of}`]);
    if (run.latency && curve.length && !baselines.some((line) => /untuned/i.test(line.name))) parts.push([ratio(curve[0][1] / run.latency), "since first measured"]);
    if (ours) parts.push([latency(ours), "end to end, verified"]);
    const text = JSON.stringify(parts);
    if (this.gains === text) return;
    this.gains = text;
    box.replaceChildren(...parts.map(([strong, rest]) => {
      const span = document.createElement("span"), bold = document.createElement("b");
      bold.textContent = strong;
      span.append(bold, ` ${rest}`);
      return span;
    }));
  }

  #controls() {
    const { state, wanted } = this.state.run;
    const active = ["running", "queued", "interrupted"].includes(state);
    const used = document.activeElement;
    this.part("pause").hidden = !active || wanted === "pause";
    this.part("resume").hidden = !(state === "paused" || state === "failed" || (state === "running" && wanted === "pause"));
    this.part("stop").hidden = !(active || state === "paused");
    this.part("keep").hidden = this.part("stop").hidden;
    // Who works without a mouse stays where the button was.
    if (used?.closest("[data-part][hidden]")) used.closest(".controls")?.focus();
  }

  #trouble() {
    const { error, next_step: next, state } = this.state.run;
    this.part("trouble").hidden = !(error && state !== "running");
    this.#set("error", error || "");
    this.#set("next-step", next ? `Next step: ${next}.` : "");
  }

  #speak() {
    const now = Date.now();
    if (!this.state.run.latency || now - this.spoken < SPEAK) return;
    this.spoken = now;
    this.#set("spoken", `Best latency ${latency(this.state.run.latency)}`);
  }
}

function stateWord(run, wait) {
  if (run.state === "running" && run.wanted === "pause") return ["paused", "pausing"];
  if (run.state === "queued") return ["queued", wait > 0 ? `tries again in ${duration(Math.ceil(wait))}` : "waiting for a worker"];
  if (run.state === "interrupted") return ["interrupted", "interrupted, goes on by itself"];
  if (run.state === "done") return ["done", words.reasons[run.finished_reason] ? `done: ${words.reasons[run.finished_reason]}` : "done"];
  return [run.state, run.state];
}
