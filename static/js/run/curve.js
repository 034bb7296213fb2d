// Latency against time: a step line on a logarithmic scale, baselines and end-to-end points labelled at the right edge.

import { latency, significant, unitOf } from "../format.js";
import { logTicks, look, timeTicks } from "./look.js";

const LEFT = 64;
const LINE = 15; // px between two labels
const HALF = 8; // of it: words within the field are so far over their line
const MARK = 13; // px: or under or beside a mark
const FAR = 3; // what is so many times over the curve would press it flat: it is named, or marked, at the upper edge
const INSIDE = 14; // px that words within the field leave to a mark at its edge
const SIGNS = { far: "\u2191 ", again: "\u25cb " };

/** All of an axis are told in one unit: that of the highest. */
const tick = (seconds, [size, name]) => `${Number(significant(seconds / size, 4))} ${name}`;

export class Curve {
  constructor(canvas, state, timeline) {
    Object.assign(this, { canvas, state, timeline, lines: [] });
    this.chart = new window.Chart(canvas, {
      type: "line",
      data: { datasets: [this.#line(), this.#points("rectRot", 6), this.#points("circle", 4), this.#points("circle", 3.5)] },
      options: this.#options(),
      plugins: [
        { id: "bands", beforeDatasetsDraw: (chart) => this.#bands(chart) },
        { id: "edge", afterDatasetsDraw: (chart) => this.#edge(chart) },
      ],
    });
    document.addEventListener("themechange", () => { this.#paint(); this.draw(); });
    this.#paint();
    this.draw();
  }

  get area() { return this.chart.chartArea; }

  draw() {
    const { state, chart } = this;
    const box = this.canvas.parentElement;
    // The lanes below are aligned to this chart: it must not wait for its own look at the size.
    if (box.clientWidth !== chart.width || box.clientHeight !== chart.height) chart.resize(box.clientWidth, box.clientHeight);
    const { line, again } = state.drawn, point = ([x, y]) => ({ x, y }), points = line.map(point);
    const last = points.at(-1);
    if (last && state.run.clock > last.x) points.push({ x: state.run.clock, y: last.y });
    const narrow = box.clientWidth < 700;
    this.narrow = narrow;
    chart.options.layout.padding.right = narrow ? 44 : 176;
    Object.assign(chart.options.scales.x, { min: this.timeline.from, max: this.timeline.to });
    const corrected = again.map(point), high = [...points, ...corrected].map(({ y }) => y);
    this.lowest = last?.y;
    this.beyond = this.#beyond(high);
    this.lines = this.#lines();
    this.#range(high);
    const { max } = chart.options.scales.y;
    const marks = [points, state.wholes.map(({ clock: x, seconds: y }) => ({ x, y: this.beyond(y) ? max : y })), corrected, points.slice(-1)];
    marks.forEach((data, i) => { chart.data.datasets[i].data = data; });
    chart.update("none");
  }

  /** Only what is drawn over the line changed: the pointer, the operator pointed at. */
  redraw() { this.chart.draw(); }

  /** Whether a latency is far over the curve, or where there is none over the libraries; and over libraries that are not. */
  #beyond(curve) {
    const { run, wholes } = this.state, times = wholes.map(({ seconds }) => seconds), target = run.budget.latency || 0;
    const own = Math.max(target, ...(curve.length ? curve : times));
    const highest = Math.max(own, ...times.filter((y) => y <= FAR * own));
    return (y) => highest > 0 && y > FAR * highest;
  }

  /** What has words at the right edge: said once a change of the state, and drawn with every move of the pointer. */
  #lines() {
    const { run, wholes, baselines, corrected } = this.state, { beyond } = this, lines = [], target = run.budget.latency;
    if (target) lines.push({ y: target, name: "Your target", dashed: true });
    const whole = wholes.at(-1);
    if (whole) lines.push({ y: whole.seconds, name: "End to end", far: beyond(whole.seconds), mark: true });
    if (run.latency) lines.push({ y: run.latency, name: corrected ? "Measured again" : "Best so far", strong: true, mark: true, again: corrected, under: this.lowest });
    return [...baselines.map(({ seconds: y, name }) => ({ y, name, far: beyond(y), dashed: !beyond(y) })), ...lines];
  }

  #range(curve) {
    const near = [...this.lines.map(({ y }) => y), ...this.state.wholes.map(({ seconds }) => seconds)].filter((y) => !this.beyond(y));
    const values = [...curve, ...near];
    this.chart.options.scales.y.ticks.display = values.length > 0;
    if (!values.length) return;
    const low = Math.min(...values), high = Math.max(...values);
    const slack = Math.max(1.02, (high / low) ** 0.06);
    // Within the field the words of the best stand under its line.
    Object.assign(this.chart.options.scales.y, { min: low / (this.narrow ? slack ** 2 : slack), max: high * slack });
  }

  #line() {
    return { stepped: "before", borderWidth: 2, pointRadius: 0, data: [], normalized: true, parsing: false };
  }

  #points(pointStyle, radius) {
    return { type: "scatter", clip: false, pointStyle, radius, borderWidth: 2, data: [], parsing: false };
  }

  #options() {
    return {
      animation: false, responsive: true, maintainAspectRatio: false, normalized: true, events: [],
      layout: { padding: { top: 10, right: 176, bottom: 0, left: 0 } },
      plugins: { legend: { display: false }, tooltip: { enabled: false } },
      scales: {
        x: {
          type: "linear", display: true, ticks: { display: false }, border: { display: false }, grid: { drawTicks: false },
          afterFit: (scale) => { scale.height = 1; },
          afterBuildTicks: (scale) => { scale.ticks = timeTicks(scale.min, scale.max, Math.max(3, this.canvas.clientWidth / 130)).map((value) => ({ value })); },
        },
        y: {
          type: "logarithmic", border: { display: false }, grid: { drawTicks: false },
          ticks: { padding: 8, callback: (value, _, ticks) => tick(value, unitOf(ticks.at(-1).value)), autoSkip: false },
          afterFit: (scale) => { scale.width = LEFT; },
          afterBuildTicks: (scale) => { scale.ticks = logTicks(scale.min, scale.max, 7).map((value) => ({ value })); },
        },
      },
    };
  }

  #paint() {
    const colours = look(), { datasets } = this.chart.data, { x, y } = this.chart.options.scales;
    const hollow = { borderColor: colours.accent, backgroundColor: colours.page };
    [{ borderColor: colours.accent }, hollow, hollow, { ...hollow, backgroundColor: colours.accent }].forEach((of, i) => Object.assign(datasets[i], of));
    x.grid.color = y.grid.color = colours.grid;
    Object.assign(y.ticks, { color: colours.soft, font: { size: 12, family: colours.font } });
  }

  /** Ahead of now, between no gain and the expected one. */
  #ahead({ ctx, chartArea: area, scales }) {
    const { clock, latency: now, expected, state } = this.state.run;
    if (state !== "running" || !now || !expected?.seconds || this.state.tooEarly) return;
    const left = scales.x.getPixelForValue(clock), right = scales.x.getPixelForValue(clock + expected.seconds);
    const [above, below] = [now, now * (1 - expected.gain)].map((y) => scales.y.getPixelForValue(y));
    ctx.save();
    ctx.beginPath();
    ctx.rect(area.left, area.top, area.right - area.left, area.bottom - area.top);
    ctx.clip();
    ctx.fillStyle = look().band;
    ctx.beginPath();
    for (const [x, y] of [[left, above], [right, above], [right, below]]) ctx.lineTo(x, y);
    ctx.fill();
    ctx.restore();
  }

  #bands(chart) {
    this.#ahead(chart);
    const { operator } = this.timeline.highlight;
    if (operator === null) return;
    const { ctx, chartArea: area, scales } = chart;
    ctx.save();
    ctx.fillStyle = look().band;
    for (const [, index, began, ended] of this.state.slots) {
      if (index !== operator || ended < this.timeline.from || began > this.timeline.to) continue;
      const left = Math.max(area.left, scales.x.getPixelForValue(began)), right = Math.min(area.right, scales.x.getPixelForValue(ended));
      ctx.fillRect(left, area.top, Math.max(1, right - left), area.bottom - area.top);
    }
    ctx.restore();
  }

  #edge(chart) {
    const { ctx, chartArea: area, scales } = chart, colours = look();
    const lines = this.lines.map((line) => ({ ...line, at: line.far ? area.top : scales.y.getPixelForValue(this.narrow && line.under || line.y) }));
    ctx.save();
    ctx.font = `12px ${colours.font}`;
    for (const line of lines.filter((l) => l.dashed)) {
      ctx.strokeStyle = colours.soft;
      ctx.setLineDash([5, 4]);
      ctx.beginPath();
      ctx.moveTo(area.left, line.at);
      ctx.lineTo(area.right, line.at);
      ctx.stroke();
    }
    ctx.setLineDash([]);
    this.#labels(ctx, lines, area, colours);
    this.timeline.cursor(ctx, area);
    ctx.restore();
  }

  #labels(ctx, lines, area, colours) {
    this.#spread(lines, area);
    Object.assign(ctx, { textBaseline: "middle", textAlign: this.narrow ? "right" : "left", strokeStyle: colours.page, lineWidth: 4, lineJoin: "round" });
    for (const line of lines) {
      const sign = line.far ? SIGNS.far : line.again && this.narrow ? SIGNS.again : "", text = `${sign}${line.name} ${latency(line.y)}`;
      const x = this.narrow ? area.right - (line.mark ? INSIDE : 0) : area.right + 10;
      ctx.fillStyle = line.strong ? colours.accent : colours.soft;
      ctx.font = `${line.strong ? "600 " : ""}12px ${colours.font}`;
      // Within the field it is read over whatever is drawn there.
      if (this.narrow) ctx.strokeText(text, x, line.shown);
      ctx.fillText(text, x, line.shown);
    }
  }

  /**
   * Where words stand: beside their line, or where there is no room beside the field over it, and those of the best under all of
   * the curve; none over others.
   */
  #spread(lines, area) {
    const marked = lines.some(({ far, mark }) => far && mark);
    const aside = ({ far, under }) => (far ? (marked ? MARK + HALF : HALF) : under ? MARK : -HALF);
    for (const line of lines) line.shown = line.at + (this.narrow ? aside(line) : 0);
    lines.sort((a, b) => a.shown - b.shown || b.y - a.y);
    let floor = this.narrow ? area.top - HALF : -Infinity;
    for (const line of lines) { line.shown = Math.max(line.shown, floor + LINE); floor = line.shown; }
    let ceiling = area.bottom + LINE / 2;
    for (const line of [...lines].reverse()) { line.shown = Math.min(line.shown, ceiling - LINE / 2); ceiling = line.shown - LINE / 2; }
  }
}
