// Configurations tried, as multiples of the best of their operator; failures on a line of their own, when asked for.

import { clipped, fitted } from "./canvas.js";
import { look } from "./look.js";
import { duration, latency, ratio, short, significant } from "../format.js";
import { OTHERS } from "./state.js";
import { words } from "./words.js";

const WORST = 10; // multiples above are drawn at the top
const NEAR = 8; // px from a dot that is pointed at
const FAILED = 16; // px from the field to the line of failures

export class Scatter {
  constructor(canvas, state, timeline, failures) {
    Object.assign(this, { canvas, state, timeline, failures });
    failures.addEventListener("change", () => this.draw());
    document.addEventListener("themechange", () => this.draw());
  }

  draw() {
    if (!this.canvas.offsetParent || !this.timeline.area) return; // folded away
    const { ctx, width, height } = fitted(this.canvas);
    const area = this.area = { ...this.timeline.area, top: 8, bottom: height - (this.failures.checked ? 48 : 24) };
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
    if (this.failures.checked) ctx.fillText("failed", area.left - 8, area.bottom + FAILED);
    this.timeline.axis(ctx, height - 16);
    ctx.textAlign = "left";
    if (width - area.right > 120) ctx.fillText(clipped(ctx, "best of its operator", width - area.right - 10), area.right + 10, area.bottom - 6);
  }

  #marks(ctx, area) {
    const colours = look(), { state, timeline } = this, lit = timeline.highlight.operator;
    for (const { point, x, y } of this.#dots(area)) {
      const [, index, seconds] = point, mine = index === lit;
      ctx.globalAlpha = mine ? 1 : lit === null ? 0.55 : 0.12;
      if (seconds === null) {
        ctx.fillStyle = colours.bad;
        ctx.fillRect(x - 1, y - 5, 2, 10);
      } else {
        ctx.fillStyle = mine && state.colour(index) === OTHERS ? colours.accent : colours.series[state.colour(index)];
        ctx.fillRect(x - 1.5, y - 1.5, 3, 3);
      }
    }
    ctx.globalAlpha = 1;
  }

  /** What is drawn of the points, and where. */
  *#dots(area) {
    const { state, timeline } = this;
    for (const point of state.points) {
      const [clock, index, seconds] = point, best = state.byIndex.get(index)?.best;
      if (clock < timeline.from || clock > timeline.to) continue;
      if (seconds === null ? !this.failures.checked : !best) continue;
      yield { point, x: timeline.pixel(clock), y: seconds === null ? area.bottom + FAILED : this.#y(area, seconds / best) };
    }
  }

  /** The dot that is pointed at, as its plot's `at` (timeline.attach); for the keys, the nearest in time. */
  at(time, height) {
    if (!this.area) return null;
    const left = this.timeline.pixel(time);
    let nearest = null, least = height === null ? Infinity : NEAR;
    for (const { point, x, y } of this.#dots(this.area)) {
      const far = height === null ? Math.abs(x - left) : Math.hypot(x - left, y - height);
      if (far < least) [nearest, least] = [point, far];
    }
    return nearest && { operator: nearest[1], text: this.#told(nearest) };
  }

  #told([clock, index, seconds, cause]) {
    const { name, best } = this.state.byIndex.get(index);
    const beside = seconds < best ? "before its best was measured again" : `${ratio(seconds / best)} its best`;
    const found = seconds === null ? `failed: ${words.causes[cause] ?? cause}` : `${latency(seconds)}, ${beside}`;
    return `${duration(clock)}: #${index} ${short(name)}\n${found}`;
  }
}
