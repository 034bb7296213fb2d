// The operator table: a row is touched only when its figures changed.

import { latency, percent, short, significant, whole } from "../format.js";
import { monotone } from "./monotone.js";
import { spark } from "./spark.js";
import { svg } from "./svg.js";
import { words } from "./words.js";

const RESORT = 5000; // ms: rows must not run away under the reader

const PLACE = `sort ${location.pathname}`;

const speed = (o) => (o.best && o.flops ? o.flops / o.best : null);

/** As a table's columns (export.js); sorted by their values. */
export function columns(state) {
  const share = (o) => (o.best && state.weightedSum ? (o.weight * o.best) / state.weightedSum : null);
  const peak = (o) => (speed(o) && state.run.peak_flops ? speed(o) / (o.at_once * state.run.peak_flops) : null);
  const known = (value, text) => (o) => (value(o) === null ? "–" : text(value(o)));
  return [
    { key: "operator", heading: "Operator", value: (o) => o.index, text: (o) => `#${o.index} ${short(o.name)}` },
    { key: "spark", heading: "Best so far", value: (o) => o.best },
    { key: "weight", heading: "Weight", value: (o) => o.weight },
    { key: "work_flop", heading: "MFLOP", value: (o) => o.flops || null, text: (o) => (o.flops ? significant(o.flops / 1e6) : "–") },
    { key: "latency_s", heading: "Latency", value: (o) => o.best, text: (o) => latency(o.best) },
    { key: "share", heading: "Share", value: share, text: known(share, percent) },
    { key: "speed_flop_per_s", heading: "GFLOPS", value: speed, text: known(speed, (value) => significant(value / 1e9)) },
    { key: "of_peak", heading: "Of peak", value: peak, text: known(peak, percent) },
    { key: "tried", heading: "Tried", value: (o) => o.trials, text: (o) => whole(o.trials) },
    { key: "failed", heading: "Failed", value: (o) => o.failures, text: (o) => whole(o.failures) },
    { key: "won_s_per_s", heading: "Won a min", value: (o) => rate(state, o), text: known((o) => rate(state, o), (value) => (value ? latency(60 * value) : "0")) },
    { key: "why", heading: "Why chosen last", value: (o) => o.rule, text: (o) => why(o) },
  ];
}

/** Seconds off the network's latency a second of its slots; a first slot begins at what was tried once: its gain is no rate. */
function rate(state, o) {
  return o.slots > 1 && o.seconds ? state.gain(o.index) / o.seconds : null;
}

function why(o) {
  if (!o.rule) return "";
  return words.rules[o.rule] || o.rule.replaceAll("_", " ");
}

/** The figures that decided it. */
function because(o) {
  const own = o.terms?.operators?.[o.index];
  if (!Array.isArray(own)) return "";
  if ("gradient_ms" in o.terms) {
    const [backward, forward] = own.map((value) => `${significant(value, 2)} ms a slot`);
    return `: ${backward} lately, ${forward} ahead`;
  }
  return `: ${own.map((value) => `${significant(value, 2)} ms`).join(", ")} at its last slot`;
}

/** What the small curve shows that its line does not. */
function beside({ terms, spark: points }) {
  const { x, mean_ms: mean, low_ms: low } = terms?.belief || {};
  const { line, over } = monotone(points);
  const corrected = over ? `Measured again: ${latency(points.at(-1)[1])}, before ${latency(line.at(-1)[1])}` : "";
  if (!low) return corrected;
  return `${corrected && `${corrected}. `}Expected at configuration ${whole(x.at(-1))}: ${latency(mean.at(-1) / 1e3)}, with 80 % not under ${latency(low.at(-1) / 1e3)}`;
}

export class Operators {
  constructor(table, state, highlight) {
    Object.assign(this, { table, state, highlight });
    this.sort = kept(columns(state)) ?? { key: "share", down: true };
    this.rows = new Map();
    this.#head();
    this.draw(true);
  }

  draw(resort = false) {
    const total = this.state.weightedSum; // of which a share is, also while there is no complete sum
    for (const operator of this.state.operators) this.#row(operator, total);
    if (resort || this.grown) this.#order();
    else this.#soon();
    this.grown = false;
    this.table.closest("section").hidden = !this.state.operators.length;
  }

  /** Once nobody reads there: what was drawn last must not stay in an order of before. */
  #soon() {
    this.later ??= setTimeout(() => {
      this.later = null;
      // The box that holds it is what the keyboard stops at.
      if ((this.table.closest(".scroll") ?? this.table).matches(":hover, :focus-within")) this.#soon();
      else this.#order();
    }, RESORT);
  }

  light(operator) {
    for (const [index, row] of this.rows) row.element.classList.toggle("lit", index === operator);
  }

  #head() {
    const row = this.table.tHead.rows[0];
    for (const { key, heading } of columns(this.state)) {
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.dataset.key = key;
      if (!["operator", "spark", "why"].includes(key)) cell.className = "num";
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = heading;
      button.addEventListener("click", () => this.#sortBy(key));
      // A title is no part of the column's name, which is said with every cell; text beside the button would be.
      if (words.about[key]) button.title = words.about[key];
      cell.append(button);
      row.append(cell);
    }
  }

  #sortBy(key) {
    const same = this.sort.key === key;
    this.sort = { key, down: same ? !this.sort.down : !["operator", "why"].includes(key) };
    try { sessionStorage.setItem(PLACE, JSON.stringify(this.sort)); } catch { /* private mode: lasts until a reload */ }
    this.#order();
  }

  #order() {
    const { value } = columns(this.state).find(({ key }) => key === this.sort.key);
    const sign = this.sort.down ? -1 : 1;
    const compare = (a, b) => {
      const [x, y] = [value(a), value(b)];
      if (x === y) return a.index - b.index;
      if (x === null) return 1;
      if (y === null) return -1;
      return sign * (x < y ? -1 : 1);
    };
    const wanted = [...this.state.operators].sort(compare).map((o) => this.rows.get(o.index).element);
    const body = this.table.tBodies[0];
    if (wanted.some((row, i) => body.rows[i] !== row)) body.append(...wanted);
    for (const cell of this.table.tHead.rows[0].cells) {
      if (cell.dataset.key === this.sort.key) cell.setAttribute("aria-sort", this.sort.down ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    }
  }

  #row(operator, total) {
    let row = this.rows.get(operator.index);
    if (!row) {
      row = this.#fresh(operator);
      this.rows.set(operator.index, row);
      this.grown = true;
      this.table.tBodies[0].append(row.element);
    }
    if (row.version === operator.version && row.total === total && row.colour === this.state.colour(operator.index)) return;
    Object.assign(row, { version: operator.version, total });
    this.#fill(row, operator);
  }

  #fresh(operator) {
    const element = document.createElement("tr");
    element.dataset.op = operator.index;
    const cells = {};
    for (const { key } of columns(this.state)) {
      const cell = document.createElement("td");
      cell.className = { operator: "name", why: "why", spark: "" }[key] ?? "num";
      if (key === "operator") cell.setAttribute("role", "rowheader");
      cells[key] = cell;
      element.append(cell);
    }
    cells.swatch = document.createElement("span");
    cells.text = document.createElement("a");
    cells.text.href = `operators/${operator.index}/`;
    cells.operator.append(cells.swatch, cells.text);
    cells.operator.title = operator.name;
    // What stands beside them for the pointer alone is read after them.
    cells.reason = document.createElement("span");
    cells.because = Object.assign(document.createElement("span"), { className: "sr" });
    cells.why.append(cells.reason, cells.because);
    cells.expected = Object.assign(document.createElement("span"), { className: "sr" });
    cells.line = svg("polyline", { points: "" });
    cells.band = svg("polygon", { points: "" });
    cells.again = svg("path", { d: "" });
    cells.spark.append(svg("svg", { viewBox: "0 0 72 20", class: "spark", "aria-hidden": "true", preserveAspectRatio: "none" }, [cells.band, cells.line, cells.again]), cells.expected);
    return { element, cells };
  }

  #fill(row, operator) {
    const { cells } = row;
    for (const { key, value, text = (o) => String(value(o)) } of columns(this.state)) {
      if (key === "spark") continue;
      const cell = { operator: cells.text, why: cells.reason }[key] ?? cells[key];
      const shown = text(operator);
      if (cell.textContent !== shown) cell.textContent = shown;
    }
    const more = because(operator);
    cells.why.title = why(operator) + more;
    if (cells.because.textContent !== more) cells.because.textContent = more;
    row.colour = this.state.colour(operator.index);
    cells.swatch.className = `swatch bg${row.colour}`;
    const drawn = `${operator.spark.length} ${operator.slots}`;
    if (row.drawn !== drawn) {
      row.drawn = drawn;
      const { line, band, again } = spark(operator);
      cells.line.setAttribute("points", line);
      cells.band.setAttribute("points", band);
      cells.again.setAttribute("d", again);
      cells.spark.title = cells.expected.textContent = beside(operator);
    }
  }
}

/** How this run's table was sorted before a reload. */
function kept(known) {
  try {
    const sort = JSON.parse(sessionStorage.getItem(PLACE));
    return known.some(({ key }) => key === sort?.key) ? sort : null;
  } catch { return null; }
}
