// The time axis that curve, lanes and scatter share: its window, the pointer on it, zooming by dragging, keys or buttons.

import { duration, latency, short } from "../format.js";
import { horizon, look, timeLabel, timeTicks } from "./look.js";

const FINGER = 96; // px that what is told stands over a finger, which would cover it
const SHORTEST = 2; // s of a window: the axis tells whole ones

export class Timeline {
  constructor(state, highlight, tip) {
    Object.assign(this, { state, highlight, tip });
    this.zoom = null;
    this.drag = null;
    this.finger = false; // whether it is a finger that points
    this.onWindow = () => {};
    this.reset = document.querySelector("[data-reset-zoom]");
    this.reset?.addEventListener("click", () => {
      document.querySelector("[data-zoom]").focus(); // it hides itself
      this.show(null);
    });
    for (const button of document.querySelectorAll("[data-zoom]")) {
      button.addEventListener("click", () => { this.#zoom(Number(button.dataset.zoom)); this.#leave(); });
      button.addEventListener("blur", (event) => this.#blur(event));
    }
    this.told = document.querySelector("[data-pointed]"); // what the keys point at, and what is shown, for who has the page read
    this.offer();
    // What a finger points at stays until the next one is put elsewhere; a zoom goes there.
    document.addEventListener("pointerdown", ({ pointerType, target }) => {
      if (pointerType !== "touch" || target.closest("[data-zoom]")) return;
      if (target.closest("[data-op]")) { this.highlight.at(null); this.tip.hide(); } else this.#leave(); // one that lights itself
    }, true);
  }

  get from() { return this.zoom ? this.zoom[0] : 0; }
  get to() { return this.zoom ? this.zoom[1] : horizon(this.state); }
  get area() { return this.curve?.area; }

  pixel(time) { return this.area.left + ((time - this.from) / (this.to - this.from)) * (this.area.right - this.area.left); }
  time(pixel) { return this.from + ((pixel - this.area.left) / (this.area.right - this.area.left)) * (this.to - this.from); }

  show(range) {
    this.zoom = range;
    if (this.reset) this.reset.hidden = !this.zoom;
    this.told.textContent = this.zoom ? `Shown is ${duration(this.from)} to ${duration(this.to)}` : "All is shown";
    this.offer();
    this.onWindow();
  }

  /** Which buttons are of use. None is disabled, or it would lose the keyboard. */
  offer() {
    const span = this.to - this.from;
    for (const button of document.querySelectorAll("[data-zoom]")) {
      const useless = String(Number(button.dataset.zoom) < 1 ? span / 2 < SHORTEST : !this.zoom);
      if (button.getAttribute("aria-disabled") !== useless) button.setAttribute("aria-disabled", useless);
    }
  }

  /** To so many times what is shown, around what is pointed at or else the middle of what there is; all of it at most. */
  #zoom(times, time = this.highlight.time ?? (this.from + Math.min(this.to, this.state.run.clock)) / 2) {
    const span = times * (this.to - this.from);
    if (span >= SHORTEST) this.#around(time, span);
  }

  #around(time, span) {
    const whole = horizon(this.state), from = Math.min(whole - span, Math.max(0, time - span / 2));
    this.show(span < whole ? [from, from + span] : null);
  }

  /** The times that are told under a plot, whose words begin at `y`. */
  axis(ctx, y) {
    const colours = look(), { area } = this;
    ctx.font = `12px ${colours.font}`;
    ctx.fillStyle = colours.soft;
    ctx.textBaseline = "top";
    for (const tick of timeTicks(this.from, this.to, Math.max(3, ctx.canvas.clientWidth / 130))) {
      const x = this.pixel(tick);
      ctx.textAlign = x > area.right - 20 ? "right" : x < area.left + 8 ? "left" : "center";
      ctx.fillText(timeLabel(tick), x, y);
    }
  }

  /** The pointer's line, and what is being dragged over, into a plot. */
  cursor(ctx, area) {
    const colours = look(), { time } = this.highlight;
    if (this.drag) {
      ctx.fillStyle = colours.band;
      const [a, b] = this.drag.map((t) => Math.min(area.right, Math.max(area.left, this.pixel(t))));
      ctx.fillRect(Math.min(a, b), area.top, Math.abs(b - a), area.bottom - area.top);
    }
    if (time === null || time < this.from || time > this.to) return;
    ctx.strokeStyle = colours.soft;
    ctx.lineWidth = 1;
    ctx.beginPath();
    const x = Math.round(this.pixel(time)) + 0.5;
    ctx.moveTo(x, area.top);
    ctx.lineTo(x, area.bottom);
    ctx.stroke();
  }

  /**
   * Lets a plot be pointed at. `at(time, y)` says at what: {operator, text}, the text where it is another than that of the time;
   * null: at nothing of its own. `y` is null for the keys.
   */
  attach(canvas, at = () => null) {
    const touched = ({ pointerType }) => pointerType === "touch";
    const point = (event) => {
      const box = canvas.getBoundingClientRect();
      const time = this.time(event.clientX - box.left);
      this.finger = touched(event);
      this.#point(time, at(time, event.clientY - box.top));
      this.tip.at(event.clientX, event.clientY - (touched(event) ? FINGER : 0));
    };
    canvas.addEventListener("pointermove", point);
    canvas.addEventListener("pointerleave", (event) => { if (!touched(event)) this.#leave(); });
    canvas.addEventListener("pointercancel", () => this.#leave()); // the page is scrolled
    canvas.addEventListener("pointerdown", (event) => { if (touched(event)) point(event); else this.#drag(canvas, event); });
    canvas.addEventListener("dblclick", () => this.show(null));
    canvas.addEventListener("keydown", (event) => this.#key(canvas, event, at));
    canvas.addEventListener("blur", (event) => this.#blur(event));
  }

  slotAt(time, operator) {
    const { slots } = this.state;
    for (let i = slots.length - 1; i >= 0; i--) {
      const [, index, began, ended] = slots[i];
      if (began <= time && time <= ended && (operator === undefined || operator === index)) return slots[i];
    }
    return null;
  }

  #point(time, found) {
    if (time < this.from || time > this.to) { this.#leave(); return; }
    this.highlight.set(found ? found.operator : this.slotAt(time)?.[1] ?? null);
    this.highlight.at(time);
    this.tip.say(found?.text ?? this.describe(time));
  }

  #leave() {
    this.highlight.at(null);
    this.highlight.set(null);
    this.tip.hide();
  }

  /** What a finger points at was pointed at before the focus follows it; the buttons go where the keys point. */
  #blur({ relatedTarget }) {
    if (!this.finger && !relatedTarget?.closest("[data-zoom]")) this.#leave();
  }

  describe(time) {
    const lines = [duration(time)];
    const { curve, drawn } = this.state;
    let low = 0, high = curve.length;
    while (low < high) { const middle = (low + high) >> 1; if (curve[middle][0] <= time) low = middle + 1; else high = middle; }
    if (low && time <= this.state.run.clock) {
      lines[0] += `: ${latency(curve[low - 1][1])}${drawn.line[low - 1][1] < curve[low - 1][1] ? ", measured again" : ""}`;
    }
    const slot = this.slotAt(time);
    if (slot) {
      const [number, index, , , before, after, trials] = slot;
      const operator = this.state.byIndex.get(index);
      lines.push(`Slot ${number}: #${index} ${operator ? short(operator.name) : ""}`);
      lines.push(before !== null && after !== null ? `${trials} tried, ${before === after ? `stays ${latency(after)}` : `${latency(before)} → ${latency(after)}`}` : `${trials} tried`);
    }
    return lines.join("\n");
  }

  #drag(canvas, event) {
    if (event.button !== 0) return;
    const box = canvas.getBoundingClientRect();
    const clamp = (e) => Math.min(this.to, Math.max(this.from, this.time(e.clientX - box.left)));
    const start = clamp(event);
    const move = (e) => { this.drag = [start, clamp(e)]; this.onWindow("drag"); };
    const leave = () => {
      for (const [name, act] of Object.entries(acts)) window.removeEventListener(name, act);
      this.drag = null;
    };
    const up = (e) => {
      leave();
      const end = clamp(e);
      if (Math.abs(this.pixel(end) - this.pixel(start)) > 8) this.#around((start + end) / 2, Math.max(SHORTEST, Math.abs(end - start)));
      else this.onWindow("drag");
    };
    const cancel = () => { leave(); this.onWindow("drag"); }; // a pen that scrolls the page
    const acts = { pointermove: move, pointerup: up, pointercancel: cancel };
    for (const [name, act] of Object.entries(acts)) window.addEventListener(name, act);
  }

  #key(canvas, event, at) {
    if (event.ctrlKey || event.metaKey || event.altKey) return; // the browser's: back, smaller
    const span = this.to - this.from;
    const time = this.highlight.time ?? this.state.run.clock;
    const moves = { ArrowLeft: -span / 100, ArrowRight: span / 100, PageUp: -span / 10, PageDown: span / 10 };
    if (event.key in moves) this.#byKey(canvas, Math.min(this.to, Math.max(this.from, time + moves[event.key])), at);
    else if (event.key === "+" || event.key === "-") this.#zoom(event.key === "+" ? 0.5 : 2, time);
    else if (event.key === "Escape") this.show(null);
    else return;
    event.preventDefault();
  }

  #byKey(canvas, time, at) {
    const box = canvas.getBoundingClientRect();
    this.finger = false;
    this.#point(time, at(time, null));
    this.tip.at(box.left + this.pixel(time), box.top + 24);
    this.told.textContent = this.tip.text;
  }
}

export class Tip {
  constructor(element) { this.element = element; }

  get text() { return this.element.textContent; }

  say(text) {
    if (this.element.textContent !== text) this.element.textContent = text;
    this.element.hidden = false;
  }

  at(x, y) {
    const { offsetWidth: width, offsetHeight: height } = this.element;
    const left = Math.min(window.innerWidth - width - 8, x + 14), top = Math.min(window.innerHeight - height - 8, y + 16);
    this.element.style.transform = `translate(${Math.max(8, left)}px, ${Math.max(8, top)}px)`;
  }

  hide() { this.element.hidden = true; }
}
