// The line of facts, the big number, the controls and what went wrong.

import { duration, faster, given, latency, percent, ratio, significant, slower, whole } from "../format.js";
import { Clock, goes } from "./clock.js";
import { ordinary, stateWord } from "./words.js";

const SPEAK = 10000; // ms between two announcements of the big number
const TICK = 250; // ms
const STEADY = 0.05; // of a baseline: a larger spread is said
const MORE = 1.005; // times: less is none
const SETTLING = 600; // ms in which a double click's second half may come

export class Headline {
  constructor(root, state) {
    this.state = state;
    this.part = (name) => root.querySelector(`[data-part="${name}"]`);
    this.spoken = 0;
    this.name = document.title;
    this.skew = Number(root.dataset.now) - Date.now() / 1000; // s, of the server's clock before ours
    this.clock = new Clock();
    this.live = false; // whether the server is heard
    root.querySelector(".controls").addEventListener("click", (event) => this.#settling(event), true);
    this.draw();
    this.changed = -Infinity; // what was there from the beginning came under nobody's pointer
    setInterval(() => this.#elapsed(), TICK);
  }

  draw() {
    const { run } = this.state;
    this.#state();
    this.#set("phase", run.state === "running" ? run.phase : "");
    this.#elapsed();
    this.#set("trials", `${whole(run.trials)} tried`);
    this.#set("failures", run.failures ? `${whole(run.failures)} failed` : run.trials ? "none failed" : "");
    this.#set("known", this.#known());
    this.#set("ahead", this.#ahead());
    const { headline } = this.state;
    const [value, ...unit] = latency(headline.seconds, headline.spread).split(" ");
    this.#set("latency", value);
    this.#set("unit", unit.join(" "));
    const sum = this.state.corrected ? "sum of operators, after the best were measured again" : "sum of operators";
    this.#set("of", headline.seconds ? (headline.whole ? "end to end, verified" : sum) : "");
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

  #elapsed() {
    const { run } = this.state, seconds = this.clock.seconds(run, this.live);
    this.#ticking("elapsed", duration(goes(run.state) ? Math.round(seconds) : seconds));
    this.#ticking("left", this.#left(seconds));
  }

  /** What ticks moves nothing beside it: it keeps the room that it once took. */
  #ticking(name, text) {
    const element = this.part(name);
    if (!goes(this.state.run.state)) element.style.minWidth = "";
    if (element.textContent === text) return;
    this.#set(name, text);
    if (goes(this.state.run.state)) element.style.minWidth = `${element.getBoundingClientRect().width}px`;
  }

  #left(seconds) {
    const { run } = this.state;
    if (run.state !== "running") return "";
    const left = [];
    if (run.budget.seconds) left.push(run.budget.seconds - seconds);
    if (run.budget.trials && run.trials) left.push(((run.budget.trials - run.trials) * run.clock) / run.trials);
    return left.length ? `${duration(Math.round(Math.max(0, Math.min(...left))))} left` : "";
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
    // An expectation has no third digit; of operators with a slot or two it has none.
    const gain = expected.gain < 0.001 ? percent(expected.gain) : `${significant(100 * expected.gain, 2)} %`;
    const told = tooEarly ? "too early to say" : `${gain} less latency`;
    const limit = budget.gain && state === "running" ? `; ends under ${given(100 * budget.gain)} %` : "";
    return `expected of ${duration(expected.seconds)} more: ${told}${limit}`;
  }

  /**
   * Ratios of like with like: of the library end to end to the baselines, of the sum of operators to what it was at first. What
   * the operators alone take is no promise of the whole network, and is said without weight while there is no library.
   */
  #gains() {
    const { run, baselines, curve } = this.state;
    const { seconds, whole, library } = this.state.headline;
    const box = this.part("gains"), parts = [];
    if (library) {
      if (!whole) parts.push([`library of ${duration(library.clock)}, end to end: `, latency(library.seconds), ""]);
      for (const line of baselines) {
        const times = line.seconds / library.seconds;
        parts.push(["", faster(times), ` than ${named(line)}`, slower(times) ? "warn" : ""]);
      }
    }
    if (!whole && run.latency && curve[0]?.[1] > MORE * run.latency) parts.push(["", ratio(curve[0][1] / run.latency), " since first measured, sum of operators"]);
    if (whole && run.latency) parts.push(["sum of operators ", latency(run.latency), `; end to end is ${ratio(seconds / run.latency)} that`]);
    if (seconds && !library && baselines.length) {
      const told = baselines.map((line) => `${faster(line.seconds / seconds)} than ${named(line)}`).join(" and ");
      parts.push([`operators alone ${told}; the whole network is timed with the library`, "", ""]);
    }
    const text = JSON.stringify(parts);
    if (this.gains === text) return;
    this.gains = text;
    box.replaceChildren(...parts.map(([before, strong, after, mark]) => {
      const span = document.createElement("span"), bold = document.createElement("b");
      bold.textContent = strong;
      if (mark) bold.className = mark;
      span.append(before, ...(strong ? [bold] : []), after);
      return span;
    }));
  }

  #controls() {
    const { state, wanted } = this.state.run;
    const active = ["running", "queued", "interrupted"].includes(state);
    const used = document.activeElement;
    const shown = {
      pause: active && wanted !== "pause",
      resume: state === "paused" || state === "failed" || (state === "running" && wanted === "pause"),
      stop: active || state === "paused",
    };
    shown.keep = shown.stop && this.state.measured;
    for (const [name, is] of Object.entries(shown)) {
      if (this.part(name).hidden !== is) continue;
      this.part(name).hidden = !is;
      this.changed = performance.now();
    }
    // Who works without a mouse stays where the button was.
    if (used?.closest("[data-part][hidden]")) used.closest(".controls")?.focus();
  }

  /** A button that came under the pointer is not what the press was meant for; of a key it is, and `detail` is 0. */
  #settling(event) {
    if (!event.detail || event.timeStamp - this.changed > SETTLING) return;
    event.preventDefault();
    event.stopPropagation();
  }

  #trouble() {
    const { error, next_step: next, state, attempt } = this.state.run, told = `${attempt} ${error}`;
    if (this.troubled !== undefined && this.troubled !== told) this.part("trouble").querySelector("details").open = false; // another's log
    this.troubled = told;
    const plain = ordinary(this.state.run);
    this.part("trouble").classList.toggle("plain", plain);
    const role = plain ? "status" : "alert";
    if (this.part("told").getAttribute("role") !== role) this.part("told").setAttribute("role", role);
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

/** A baseline, with its figure where that is not steady. */
function named({ name, seconds, spread }) {
  return spread > STEADY * seconds ? `${name} (${latency(seconds, spread).replaceAll(" ", "\u00a0")})` : name;
}
