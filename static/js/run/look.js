// Colours and ticks that all plots share.

import { OTHERS } from "./state.js";

let colours = null;

/** The tokens of the present theme, read once a theme. */
export function look() {
  if (!colours) {
    const style = getComputedStyle(document.documentElement);
    const value = (name) => style.getPropertyValue(`--${name}`).trim();
    colours = Object.fromEntries(["text", "soft", "grid", "accent", "page", "sunken", "band", "bad"].map((name) => [name, value(name)]));
    colours.series = Array.from({ length: OTHERS + 1 }, (_, i) => value(`s${i}`));
    colours.font = value("sans");
  }
  return colours;
}

document.addEventListener("themechange", () => { colours = null; });

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400];

export function timeTicks(from, to, most) {
  const step = STEPS.find((size) => (to - from) / size <= most) || 86400 * Math.ceil((to - from) / 86400 / most);
  const ticks = [];
  for (let t = Math.ceil(from / step) * step; t <= to + 1e-9; t += step) ticks.push(t);
  return ticks;
}

export function timeLabel(seconds) {
  if (seconds === 0) return "0";
  if (seconds < 60) return `${seconds} s`;
  const hours = Math.floor(seconds / 3600), minutes = Math.floor((seconds % 3600) / 60), rest = seconds % 60;
  return [hours && `${hours} h`, minutes && `${minutes} min`, rest && `${rest} s`].filter(Boolean).join(" ");
}

/** Round values from `low` to `high`, about evenly far apart on a logarithmic scale. */
export function logTicks(low, high, most) {
  const decades = Math.log10(high / low);
  const within = (values) => values.filter((v) => v >= low * 0.9999 && v <= high * 1.0001);
  const start = Math.floor(Math.log10(low)), end = Math.ceil(Math.log10(high));
  const grid = (digits) => {
    const values = [];
    for (let e = start; e <= end; e++) for (const d of digits) values.push(d * 10 ** e);
    return within(values);
  };
  if (decades > 2.5) { const all = grid([1]); const every = Math.ceil(all.length / most); return all.filter((_, i) => i % every === 0); }
  for (const digits of [[1, 1.5, 2, 3, 4, 5, 6, 8], [1, 2, 3, 5], [1, 2, 5], [1, 3], [1]]) {
    const found = grid(digits);
    if (found.length <= most && found.length >= 3) return found;
  }
  // Less than a decade: linear steps read better.
  const raw = (high - low) / most, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw);
  const ticks = [];
  for (let v = Math.ceil(low / step) * step; v <= high * 1.0001; v += step) ticks.push(v);
  return ticks;
}

const QUARTER = 21600; // s, of a day
const LADDER = [30, 60, 90, 120, 180, 240, 300, 450, 600, 900, 1200, 1800, 2700, 3600, 5400, 7200, 10800, 14400, 21600, 28800, 43200, 86400];

/** Where the time axis ends: in steps, so that it does not creep with every point. */
export function horizon(state) {
  const clock = Math.max(state.run.clock, 1);
  if (!state.running) return clock;
  const next = LADDER.find((step) => step >= clock * 1.02) ?? QUARTER * Math.ceil((clock * 1.02) / QUARTER);
  const budget = state.run.budget.seconds;
  return budget && budget >= clock ? Math.min(next, budget) : next;
}
