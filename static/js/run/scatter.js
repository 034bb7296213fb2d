// Every configuration tried, as a multiple of the best of its operator; failures on a line of their own, when asked for.

import { clipped, fitted } from "./canvas.js";
import { look, timeLabel, timeTicks } from "./look.js";
import { significant } from "../format.js";

const WORST = 10; // multiples above are drawn at the top

export class Scatter {
  constructor(canvas, state, timeline, failures) {
    Object.assign(this, { canvas, state, timeline, failures });
    failures.addEventListener("change", () => this.draw());
    document.addEventListener("themechange", () => this.draw());
  }

  draw() {
    if (!this.canvas.offsetParent || !this.timeline.area) return; // folded away
    const { ctx, width, height } = fitted(this.canvas);
    const area = { ...this.timeline.area, top: 8, bottom: height - (this.failures.checked ? 48 : 24) };
    this.#grid(ctx, area, width, height);
    this.#marks(ctx, area);
    this.timeline.cursor(ctx, area);
  }

  #y(area, multiple) {
    return area.bottom - (Math.log(Math.min(WORST, Math.max(1, multiple))) / Math.log(WORST)) * (area.bottom - area.top);
  }

  #grid(ctx, area, width, height) {
    const colours = look();
    ctx.font = `12px ${colours.font}`;
    ctx.fillStyle = colours.soft;
    ctx.strokeStyle = colours.grid;
    ctx.textBaseline = "middle";
    ctx.textAlign = "right";
    for (const multiple of [1, 1.5, 2, 3, 5, 10]) {
      const y = Math.round(this.#y(area, multiple)) + 0.5;
      ctx.beginPath();
      ctx.moveTo(area.left, y);
      ctx.lineTo(area.right, y);
      ctx.stroke();
      ctx.fillText(multiple === WORST ? "≥ 10 x" : `${significant(multiple, 2)} x`, area.left - 8, y);
    }
    if (this.failures.checked) ctx.fillText("failed", area.left - 8, area.bottom + 16);
    ctx.textBaseline = "top";
    for (const tick of timeTicks(this.timeline.from, this.timeline.to, Math.max(3, this.canvas.clientWidth / 130))) {
      const x = this.timeline.pixel(tick);
      ctx.textAlign = x > area.right - 20 ? "right" : x < area.left + 8 ? "left" : "center";
      ctx.fillText(timeLabel(tick), x, height - 16);
    }
    ctx.textAlign = "left";
    if (width - area.right > 120) ctx.fillText(clipped(ctx, "best of its operator", width - area.right - 10), area.right + 10, area.bottom - 6);
  }

  #marks(ctx, area) {
    const colours = look(), { state, timeline } = this, lit = timeline.highlight.operator;
    for (const [clock, index, seconds] of state.points) {
      if (clock < timeline.from || clock > timeline.to) continue;
      const best = state.byIndex.get(index)?.best;
      const mine = index === lit;
      ctx.globalAlpha = mine ? 1 : lit === null ? 0.55 : 0.12;
      const x = timeline.pixel(clock);
      if (seconds === null) {
        if (!this.failures.checked) continue;
        ctx.fillStyle = colours.bad;
        ctx.fillRect(x - 1, area.bottom + 11, 2, 10);
      } else if (best) {
        ctx.fillStyle = mine && state.colour(index) === 8 ? colours.accent : colours.series[state.colour(index)];
        const y = this.#y(area, seconds / best);
        ctx.fillRect(x - 1.5, y - 1.5, 3, 3);
      }
    }
    ctx.globalAlpha = 1;
  }
}
