// What the clock went into: one bar a category, largest first.

import { duration, percent } from "../format.js";
import { look } from "./look.js";
import { svg } from "./svg.js";
import { words } from "./words.js";

const ROW = 24;

export class Spent {
  constructor(box, state) {
    Object.assign(this, { box, state });
    document.addEventListener("themechange", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(box);
  }

  rows() {
    const all = Object.entries(this.state.spent).map(([key, seconds]) => ({ name: words.spent[key] || key, about: words.about[key] || "", seconds }));
    const total = all.reduce((sum, row) => sum + row.seconds, 0) || 1;
    return all.map((row) => ({ ...row, share: row.seconds / total })).sort((a, b) => b.seconds - a.seconds);
  }

  draw() {
    const rows = this.rows(), width = this.box.clientWidth;
    if (!width) return;
    const colours = look(), label = 104, end = 136;
    const height = rows.length * ROW || ROW;
    const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": "Where the clock went", "font-size": 12, "font-family": colours.font });
    const most = rows[0]?.share || 1;
    rows.forEach((row, i) => {
      const y = i * ROW, long = Math.max(1, (row.share / most) * (width - label - end));
      picture.append(
        svg("text", { x: 0, y: y + 16, fill: colours.text }, [row.name, svg("title", {}, row.about)]),
        svg("rect", { x: label, y: y + 5, width: long, height: 14, rx: 2, fill: colours.accent, opacity: 0.75 }),
        svg("text", { x: label + long + 6, y: y + 16, fill: colours.soft }, `${duration(row.seconds)} (${percent(row.share)})`),
      );
    });
    if (!rows.length) picture.append(svg("text", { x: 0, y: 16, fill: colours.soft }, "Nothing yet."));
    this.box.replaceChildren(picture);
  }
}
