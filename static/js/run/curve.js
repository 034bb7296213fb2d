// Latency against time: a step line on a logarithmic scale, baselines and end-to-end points labelled at the right edge.

import { latency, significant } from "../format.js";
import { logTicks, look, timeTicks } from "./look.js";

const LEFT = 64;
const LINE = 15; // px between two labels
const FAR = 3; // a baseline so many times over all else would press the curve flat: it is named at the upper edge

export class Curve {
  constructor(canvas, state, timeline) {
    Object.assign(this, { canvas, state, timeline, lines: [] });
    this.chart = new window.Chart(canvas, {
      type: "line",
      data: { datasets: [this.#line(), this.#points()] },
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
    const points = state.curve.map(([x, y]) => ({ x, y }));
    const last = points.at(-1);
    if (last && state.run.clock > last.x) points.push({ x: state.run.clock, y: last.y });
    chart.data.datasets[0].data = points;
    chart.data.datasets[1].data = this.state.wholes.map((p) => ({ x: p.clock, y: p.seconds }));
    const narrow = box.clientWidth < 700;
    this.narrow = narrow;
    chart.options.layout.padding.right = narrow ? 44 : 176;
    Object.assign(chart.options.scales.x, { min: this.timeline.from, max: this.timeline.to });
    this.lines = this.#lines(points);
    this.#range(points);
    chart.update("none");
  }

  /** Only what is drawn over the line changed: the pointer, the operator pointed at. */
  redraw() { this.chart.draw(); }

  /** What has words at the right edge: said once a change of the state, and drawn with every move of the pointer. */
  #lines(points) {
    const lines = [], target = this.state.run.budget.latency;
    if (target) lines.push({ y: target, name: "Your target", dashed: true });
    const whole = this.state.wholes.at(-1);
    if (whole) lines.push({ y: whole.seconds, name: "End to end" });
    if (this.state.run.latency) lines.push({ y: this.state.run.latency, name: "Best so far", strong: true });
    const highest = Math.max(...lines.map((line) => line.y), ...points.map((p) => p.y));
    const far = (y) => highest > 0 && y > FAR * highest;
    return [...this.state.baselines.map(({ seconds: y, name }) => ({ y, name, far: far(y), dashed: !far(y) })), ...lines];
  }

  #range(points) {
    const values = [...points.map((p) => p.y), ...this.lines.filter((line) => !line.far).map((line) => line.y)];
    this.chart.options.scales.y.ticks.display = values.length > 0;
    if (!values.length) return;
    const low = Math.min(...values), high = Math.max(...values);
    const slack = Math.max(1.02, (high / low) ** 0.06);
    Object.assign(this.chart.options.scales.y, { min: low / slack, max: high * slack });
  }

  #line() {
    return { stepped: "before", borderWidth: 2, pointRadius: 0, data: [], normalized: true, parsing: false };
  }

  #points() {
    return { type: "scatter", clip: false, pointStyle: "rectRot", radius: 6, borderWidth: 2, data: [], parsing: false };
  }

  #options() {
    return {
      animation: false, responsive: true, maintainAspectRatio: false, normalized: true, events: [], devicePixelRatio: window.devicePixelRatio || 1,
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
          ticks: { padding: 8, callback: (value) => `${Number(significant(value * 1e3, 4))} ms`, autoSkip: false },
          afterFit: (scale) => { scale.width = LEFT; },
          afterBuildTicks: (scale) => { scale.ticks = logTicks(scale.min, scale.max, 7).map((value) => ({ value })); },
        },
      },
    };
  }

  #paint() {
    const colours = look(), { datasets } = this.chart.data, { x, y } = this.chart.options.scales;
    datasets[0].borderColor = colours.accent;
    Object.assign(datasets[1], { borderColor: colours.accent, backgroundColor: colours.page });
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
    const lines = this.lines.map((line) => ({ ...line, at: line.far ? area.top : scales.y.getPixelForValue(line.y) })).sort((a, b) => a.at - b.at);
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
    let floor = -Infinity;
    for (const line of lines) { line.shown = Math.max(line.at, floor + LINE); floor = line.shown; }
    let ceiling = area.bottom + LINE / 2;
    for (const line of [...lines].reverse()) { line.shown = Math.min(line.shown, ceiling - LINE / 2); ceiling = line.shown - LINE / 2; }
    ctx.textBaseline = "middle";
    for (const line of lines) {
      const text = `${line.far ? "\u2191 " : ""}${line.name} ${latency(line.y)}`;
      ctx.fillStyle = line.strong ? colours.accent : colours.soft;
      if (this.narrow) {
        if (!line.dashed && !line.far) continue;
        ctx.textAlign = "right";
        ctx.fillText(text, area.right, line.at + (line.far ? 8 : -8));
        continue;
      }
      ctx.textAlign = "left";
      ctx.font = `${line.strong ? "600 " : ""}12px ${colours.font}`;
      ctx.fillText(text, area.right + 10, line.shown);
    }
  }
}
