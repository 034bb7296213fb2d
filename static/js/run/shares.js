// Paid against won: what share of the slots' time an operator got, and what share of the gain it brought.

import { percent, short } from "../format.js";
import { look } from "./look.js";
import { OTHERS } from "./state.js";
import { svg } from "./svg.js";

const ROW = 24;
const MOST = 10;

export class Shares {
  constructor(box, state) {
    Object.assign(this, { box, state });
    document.addEventListener("themechange", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(box);
  }

  /** [{index | null, name, time, gain}], the costly first, the rest together. */
  rows() {
    const { operators } = this.state;
    const time = operators.reduce((sum, o) => sum + o.seconds, 0) || 1;
    const gain = operators.reduce((sum, o) => sum + this.state.gain(o.index), 0) || 1;
    const all = operators
      .map((o) => ({ index: o.index, name: `#${o.index} ${short(o.name)}`, time: o.seconds / time, gain: this.state.gain(o.index) / gain }))
      .filter((row) => row.time > 0 || row.gain > 0)
      .sort((a, b) => b.time - a.time || a.index - b.index);
    if (all.length <= MOST + 1) return all;
    const rest = all.slice(MOST);
    const sum = (key) => rest.reduce((total, row) => total + row[key], 0);
    return [...all.slice(0, MOST), { index: null, name: `${rest.length} others`, time: sum("time"), gain: sum("gain") }];
  }

  draw() {
    const rows = this.rows(), width = this.box.clientWidth;
    if (!width) return;
    const colours = look();
    const label = Math.min(208, width * 0.36), half = (width - label) / 2;
    // What the others come to together would leave the named ones no room.
    const scale = Math.max(0.01, ...rows.filter(({ index }) => index !== null).map((row) => Math.max(row.time, row.gain)));
    const height = (Math.max(1, rows.length) + 1) * ROW;
    const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": "Share of tuning time and share of gain for each operator", "font-size": 12, "font-family": colours.font });
    const head = (x, text) => svg("text", { x, y: 15, fill: colours.soft }, text);
    picture.append(head(label, "time paid"), head(label + half, "gain won"));
    rows.forEach((row, i) => picture.append(this.#row(row, (i + 1) * ROW, { label, half: half - 8, scale, colours })));
    if (!rows.length) picture.append(svg("text", { x: 0, y: ROW + 16, fill: colours.text }, "Nothing yet: no operator had a slot."));
    this.box.replaceChildren(picture);
    this.light();
  }

  #row(row, y, { label, half, scale, colours }) {
    const fill = colours.series[row.index === null ? OTHERS : this.state.colour(row.index)];
    const bar = (x, share) => {
      const most = Math.max(1, half - 52), long = Math.min(most, Math.max(share > 0 ? 1 : 0, (share / scale) * most));
      const cut = share > scale ? [svg("path", { d: `M${x + long - 14} ${y + 21}l6 -18h4l-6 18z`, fill: colours.page, class: "cut" })] : [];
      return [
        svg("rect", { x, y: y + 5, width: long, height: 14, rx: 2, fill }), ...cut,
        svg("text", { x: x + long + 6, y: y + 16, fill: colours.soft }, percent(share)),
      ];
    };
    const most = Math.floor((label - 12) / 6.6);
    const name = row.name.length > most ? `${row.name.slice(0, most - 1)}…` : row.name;
    const marked = row.index === null ? {} : { "data-op": row.index };
    const text = svg("text", { x: 0, y: y + 16, fill: colours.text, class: "label" }, [name, svg("title", {}, row.name)]);
    return svg("g", marked, [svg("rect", { x: 0, y, width: label + 2 * half, height: ROW, fill: "transparent" }), text, ...bar(label, row.time), ...bar(label + half + 8, row.gain)]);
  }

  light(operator = null) {
    for (const group of this.box.querySelectorAll("[data-op]")) group.classList.toggle("lit", Number(group.dataset.op) === operator);
  }
}
