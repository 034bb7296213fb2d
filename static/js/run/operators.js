// The operator table: a row is touched only when its figures changed.

import { count, latency, percent, short, significant } from "../format.js";
import { spark } from "./spark.js";
import { svg } from "./svg.js";
import { words } from "./words.js";

const RESORT = 5000; // ms: rows must not run away under the reader

const speed = (o) => (o.best && o.flops ? o.flops / o.best : null);

/** key, heading, value to sort by, text */
export function columns(state) {
  const share = (o) => (o.best && state.weightedSum ? (o.weight * o.best) / state.weightedSum : null);
  const peak = (o) => (speed(o) && state.run.peak_flops ? speed(o) / state.run.peak_flops : null);
  return [
    ["name", "Operator", (o) => o.index, (o) => `#${o.index} ${short(o.name)}`],
    ["spark", "Best by trial", (o) => o.spark.length, null],
    ["weight", "Weight", (o) => o.weight, (o) => String(o.weight)],
    ["work", "MFLOP", (o) => o.flops, (o) => (o.flops ? significant(o.flops / 1e6) : "–")],
    ["best", "Latency", (o) => o.best, (o) => latency(o.best)],
    ["share", "Share", share, (o) => (share(o) === null ? "–" : percent(share(o)))],
    ["gflops", "GFLOPS", speed, (o) => (speed(o) ? significant(speed(o) / 1e9) : "–")],
    ["peak", "Of peak", peak, (o) => (peak(o) ? `${(100 * peak(o)).toFixed(0)} %` : "–")],
    ["trials", "Trials", (o) => o.trials, (o) => count(o.trials)],
    ["failures", "Failed", (o) => o.failures, (o) => count(o.failures)],
    ["gain", "Won a min", (o) => rate(state, o), (o) => (rate(state, o) ? latency(rate(state, o)) : rate(state, o) === null ? "–" : "0")],
    ["why", "Why chosen last", (o) => o.rule, (o) => why(o)],
  ];
}

function rate(state, o) {
  return o.seconds ? (60 * state.gain(o.index)) / o.seconds : null;
}

function why(o) {
  if (!o.rule) return "";
  return words.rules[o.rule] || o.rule.replaceAll("_", " ");
}

function whyInFull(o) {
  const own = o.terms?.operators?.[o.index];
  if (!Array.isArray(own)) return why(o);
  if ("gradient_ms" in o.terms) {
    const [backward, forward] = own.map((value) => `${significant(value, 2)} ms a slot`);
    return `${why(o)}: ${backward} lately, ${forward} ahead`;
  }
  return `${why(o)}: ${own.map((value) => `${significant(value, 2)} ms`).join(", ")} at its last slot`;
}

function expected({ terms }) {
  const { x, mean_ms: mean, low_ms: low } = terms?.belief || {};
  if (!low) return "";
  return `Expected at configuration ${count(x.at(-1))}: ${latency(mean.at(-1) / 1e3)}, with 80 % not under ${latency(low.at(-1) / 1e3)}`;
}

export class Operators {
  constructor(table, state, highlight) {
    Object.assign(this, { table, state, highlight });
    this.sort = { key: "share", down: true };
    this.rows = new Map();
    this.#head();
    this.draw(true);
  }

  draw(resort = false) {
    for (const operator of this.state.operators) this.#row(operator);
    if (resort || this.grown) this.#order();
    else this.later ??= setTimeout(() => this.#unlessRead(), RESORT);
    this.grown = false;
    this.table.closest("section").hidden = !this.state.operators.length;
  }

  #unlessRead() {
    this.later = null;
    if (!this.table.matches(":hover, :focus-within")) this.#order();
  }

  light(operator) {
    for (const [index, row] of this.rows) row.element.classList.toggle("lit", index === operator);
  }

  #head() {
    const row = this.table.tHead.rows[0];
    for (const [key, heading] of columns(this.state)) {
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.dataset.key = key;
      if (!["name", "spark", "why"].includes(key)) cell.className = "num";
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = heading;
      button.addEventListener("click", () => this.#sortBy(key));
      cell.append(button);
      row.append(cell);
    }
  }

  #sortBy(key) {
    const same = this.sort.key === key;
    this.sort = { key, down: same ? !this.sort.down : !["name", "why"].includes(key) };
    this.#order();
  }

  #order() {
    const [, , value] = columns(this.state).find(([key]) => key === this.sort.key);
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

  #row(operator) {
    let row = this.rows.get(operator.index);
    if (!row) {
      row = this.#fresh(operator);
      this.rows.set(operator.index, row);
      this.grown = true;
      this.table.tBodies[0].append(row.element);
    }
    const total = this.state.run.latency;
    if (row.version === operator.version && row.total === total && row.colour === this.state.colour(operator.index)) return;
    Object.assign(row, { version: operator.version, total });
    this.#fill(row, operator);
  }

  #fresh(operator) {
    const element = document.createElement("tr");
    element.dataset.op = operator.index;
    const cells = {};
    for (const [key] of columns(this.state)) {
      const cell = document.createElement("td");
      cell.className = { name: "name", why: "why", spark: "" }[key] ?? "num";
      cells[key] = cell;
      element.append(cell);
    }
    cells.swatch = document.createElement("span");
    cells.text = document.createElement("a");
    cells.text.href = `operators/${operator.index}/`;
    cells.name.append(cells.swatch, cells.text);
    cells.name.title = operator.name;
    cells.line = svg("polyline", { points: "" });
    cells.band = svg("polygon", { points: "" });
    cells.spark.append(svg("svg", { viewBox: "0 0 72 20", class: "spark", "aria-hidden": "true", preserveAspectRatio: "none" }, [cells.band, cells.line]));
    return { element, cells };
  }

  #fill(row, operator) {
    const { cells } = row;
    for (const [key, , , text] of columns(this.state)) {
      if (!text) continue;
      const cell = key === "name" ? cells.text : cells[key];
      const shown = text(operator);
      if (cell.textContent !== shown) cell.textContent = shown;
    }
    cells.why.title = whyInFull(operator);
    row.colour = this.state.colour(operator.index);
    cells.swatch.className = `swatch bg${row.colour}`;
    const drawn = `${operator.spark.length} ${operator.slots}`;
    if (row.drawn !== drawn) {
      row.drawn = drawn;
      const { line, band } = spark(operator);
      cells.line.setAttribute("points", line);
      cells.band.setAttribute("points", band);
      cells.spark.title = expected(operator);
    }
  }
}
