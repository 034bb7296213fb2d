// Slots on the curve's time axis: a lane for each of the eight dearest operators, one for all others, labelled directly.

import { short, whole } from "../format.js";
import { clipped, fitted } from "./canvas.js";
import { look } from "./look.js";
import { OTHERS } from "./state.js";

const ROW = 18, AXIS = 30, LINE = 14;

export class Lanes {
  constructor(canvas, state, timeline) {
    Object.assign(this, { canvas, state, timeline });
    document.addEventListener("themechange", () => this.draw());
  }

  /** The operators of the lanes, top down; null is the lane of the others, where there are any. */
  rows() {
    const { operators, colours } = this.state;
    // Before the colours are given out the lanes stand empty.
    if (!colours.size) return [...Array(OTHERS).fill(undefined), null];
    const rows = [];
    for (const operator of operators) {
      const colour = this.state.colour(operator.index);
      if (colour < OTHERS) rows[colour] = operator;
    }
    return rows.length < operators.length ? [...rows, null] : rows;
  }

  /** What the lane of the others is called; nothing before anyone knows of operators. */
  rest() {
    const { operators, colours } = this.state;
    if (!operators.length) return "";
    const [count, word] = colours.size ? [operators.length - this.rows().length + 1, "other"] : [operators.length, "operator"];
    return `${count} ${word}${count === 1 ? "" : "s"}`;
  }

  /** How many slots of a long run are drawn; nothing where all are. */
  get choice() {
    const { slots, lastSlot } = this.state;
    return slots.length < lastSlot ? `${whole(slots.length)} of ${whole(lastSlot)} slots, all of the latest` : "";
  }

  laneAt(y) { return this.rows()[Math.floor(y / ROW)]; }

  draw() {
    this.canvas.parentElement.style.height = `${this.rows().length * ROW + AXIS + (this.choice ? LINE : 0)}px`;
    const { ctx, width } = fitted(this.canvas);
    const area = this.timeline.area;
    if (!area) return;
    this.#background(ctx, width, area);
    this.#slots(ctx, area);
    const bottom = this.rows().length * ROW;
    this.timeline.axis(ctx, bottom + 4);
    ctx.textAlign = "left";
    ctx.fillText(clipped(ctx, this.choice, width - area.left), area.left, bottom + 4 + LINE);
    this.timeline.cursor(ctx, { ...area, top: 0, bottom });
  }

  #background(ctx, width, area) {
    const colours = look(), rows = this.rows(), lit = this.timeline.highlight.operator;
    ctx.font = `12px ${colours.font}`;
    ctx.textBaseline = "middle";
    rows.forEach((operator, lane) => {
      const y = lane * ROW;
      ctx.fillStyle = colours.sunken;
      ctx.fillRect(area.left, y + 2, area.right - area.left, ROW - 4);
      if (operator === undefined) return;
      const strong = operator ? operator.index === lit : lit !== null && this.state.colour(lit) === OTHERS;
      ctx.fillStyle = strong ? colours.text : colours.soft;
      const room = width - area.right - 10;
      ctx.font = `${strong ? "600 " : ""}12px ${colours.font}`;
      const shown = operator ?? (strong ? this.state.byIndex.get(lit) : null);
      const text = shown ? `#${shown.index}${room > 80 ? ` ${short(shown.name)}` : ""}` : room > 80 ? this.rest() : this.rest() && "rest";
      ctx.textAlign = "left";
      ctx.fillText(clipped(ctx, text, room), area.right + 10, y + ROW / 2 + 0.5);
    });
  }

  #slots(ctx, area) {
    const { state, timeline } = this, colours = look(), lit = timeline.highlight.operator;
    const rows = new Map(this.rows().map((operator, lane) => [operator ? operator.index : -1, lane]));
    for (const [, index, began, ended] of state.slots) {
      if (ended < timeline.from || began > timeline.to) continue;
      const lane = rows.get(index) ?? rows.get(-1);
      const left = Math.max(area.left, timeline.pixel(began)), right = Math.min(area.right, timeline.pixel(ended));
      const mine = index === lit;
      ctx.globalAlpha = lit === null || mine ? 1 : 0.28;
      ctx.fillStyle = mine && state.colour(index) === OTHERS ? colours.accent : colours.series[state.colour(index)];
      const wide = right - left;
      ctx.fillRect(left, lane * ROW + 2, Math.max(1, wide > 4 ? wide - 1 : wide), ROW - 4);
    }
    ctx.globalAlpha = 1;
  }
}
