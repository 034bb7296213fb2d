// The line of facts, the big number, the controls and what went wrong.

import { duration, latency, percent, ratio, whole } from "../format.js";
import { stateWord } from "./words.js";

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
    this.#set("trials", `${whole(run.trials)} tried`);
    this.#set("failures", run.failures ? `${whole(run.failures)} failed` : "none failed");
    this.#set("known", this.#known());
    this.#set("ahead", this.#ahead());
    const { headline } = this.state;
    const [value, ...unit] = latency(headline.seconds, headline.spread).split(" ");
    this.#set("latency", value);
    this.#set("unit", unit.join(" "));
    this.#set("of", headline.seconds ? (headline.whole ? "end to end, verified" : "sum of operators") : "");
    // A tab in the background has only its title to tell how far it is.
    const title = [headline.seconds && latency(headline.seconds), this.part("state-word").textContent, this.name].filter(Boolean).join(", ");
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
    const word = wait > 0 ? `tries again in ${duration(Math.ceil(wait))}` : stateWord(run);
    if (element.dataset.state === run.state && this.part("state-word").textContent === word) return;
    element.dataset.state = run.state;
    const use = element.querySelector("use");
    use.setAttribute("href", `${use.getAttribute("href").split("#")[0]}#${run.state === "done" && run.finished_reason === "stopped" ? "stopped" : run.state}`);
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
    const { operators } = this.state, count = (what) => operators.filter((operator) => operator[what]).length;
    const known = count("known"), alike = count("alike");
    if (!known) return alike ? `${alike} of ${operators.length} operators like some of earlier runs` : "";
    return `${known} of ${operators.length} operators known from earlier runs${alike ? `, ${alike} like some of them` : ""}`;
  }

  /** What tuning a tenth longer should still bring, where that is known, and below what a run ends that has that limit. */
  #ahead() {
    const { expected, budget, state } = this.state.run;
    const { tooEarly } = this.state;
    if (!expected?.seconds || (tooEarly && state !== "running")) return "";
    // Of operators with a slot or two little is known, and much is expected: half or more would say nothing.
    const told = tooEarly && expected.gain >= 0.5 ? "too early to say" : `${tooEarly ? "perhaps " : ""}${percent(expected.gain)} less latency`;
    const limit = budget.gain && state === "running" ? `; ends under ${percent(budget.gain)}` : "";
    return `expected of ${duration(expected.seconds)} more: ${told}${limit}`;
  }

  /** Ratios of the big number, and what else there is: the sum beside the library, or an older library beside the sum. */
  #gains() {
    const { run, baselines, curve } = this.state;
    const { seconds, whole, library } = this.state.headline;
    const box = this.part("gains"), parts = [];
    if (seconds) for (const line of baselines) parts.push(["", ratio(line.seconds / seconds), ` against ${line.name}${whole ? "" : ", sum of operators"}`]);
    if (run.latency && curve.length && !baselines.some((line) => /untuned/i.test(line.name))) parts.push(["", ratio(curve[0][1] / run.latency), " since first measured, sum of operators"]);
    if (whole && run.latency) parts.push(["sum of operators ", latency(run.latency), `; end to end is ${ratio(seconds / run.latency)} that`]);
    else if (library) parts.push([`library of ${duration(library.clock)}: `, latency(library.seconds), baselines.length ? `, ${ratio(baselines[0].seconds / library.seconds)} against ${baselines[0].name}` : " end to end"]);
    const text = JSON.stringify(parts);
    if (this.gains === text) return;
    this.gains = text;
    box.replaceChildren(...parts.map(([before, strong, after]) => {
      const span = document.createElement("span"), bold = document.createElement("b");
      bold.textContent = strong;
      span.append(before, bold, after);
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

  /** A change of state at once, the latency now and then. */
  #speak() {
    const { seconds, whole } = this.state.headline, now = Date.now(), word = stateWord(this.state.run);
    const changed = this.said !== undefined && this.said !== word;
    this.said = word;
    if (!changed && (!seconds || now - this.spoken < SPEAK)) return;
    this.spoken = now;
    const told = seconds ? `${latency(seconds)}, ${whole ? "end to end" : "sum of operators"}` : "";
    this.#set("spoken", [changed && word, told].filter(Boolean).join(": "));
  }
}
