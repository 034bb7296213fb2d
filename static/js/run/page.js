// A run's page: a snapshot, the line to the server, and what is drawn of them, at most once a frame.

import { percent, short } from "../format.js";
import { Curve } from "./curve.js";
import { wire } from "./export.js";
import { Headline } from "./headline.js";
import { Highlight } from "./highlight.js";
import { Lanes } from "./lanes.js";
import { Log } from "./log.js";
import { columns, Operators } from "./operators.js";
import "./refused.js";
import { Scatter } from "./scatter.js";
import { Shares } from "./shares.js";
import { Line } from "./socket.js";
import { Spent } from "./spent.js";
import { RunState } from "./state.js";
import { Timeline, Tip } from "./timeline.js";

const root = document.querySelector("[data-run]");
const state = new RunState(JSON.parse(document.getElementById("snapshot").textContent));
const $ = (selector) => root.querySelector(selector);

const highlight = new Highlight();
const timeline = new Timeline(state, highlight, new Tip(document.querySelector(".tip")));
const headline = new Headline(root, state);
const curve = new Curve($("#curve"), state, timeline);
timeline.curve = curve;
const lanes = new Lanes($("#lanes"), state, timeline);
const scatter = new Scatter($("#scatter"), state, timeline, $("#show-failures"));
const shares = new Shares($("#shares"), state);
const spent = new Spent($("#spent"), state);
const operators = new Operators($("#operators"), state, highlight);
const log = new Log($("#log"), state);

timeline.attach($("#curve"));
timeline.attach($("#lanes"), (time, y) => {
  const lane = lanes.laneAt(y);
  if (lane === undefined) return null;
  return lane ? lane.index : slotOfOthers(time);
});
timeline.attach($("#scatter"));

function slotOfOthers(time) {
  const slot = timeline.slotAt(time);
  return slot && state.colour(slot[1]) === 8 ? slot[1] : null;
}

// Drawing is spread over frames, one part each, so that no task becomes long.
const wanted = new Set();
let scheduled = false;
const parts = [
  ["curve", () => { curve.draw(); lanes.draw(); $("#no-curve").hidden = state.curve.length > 0; }],
  ["head", () => headline.draw()],
  ["operators", () => operators.draw()],
  ["shares", () => { shares.draw(); shares.light(highlight.operator); }],
  ["spent", () => spent.draw()],
  ["scatter", () => scatter.draw()],
  ["log", () => log.draw()],
];

function want(...names) {
  for (const name of names) wanted.add(name);
  if (scheduled || !wanted.size) return;
  scheduled = true;
  requestAnimationFrame(step);
}

function step() {
  scheduled = false;
  const next = parts.find(([name]) => wanted.has(name));
  if (!next) return;
  wanted.delete(next[0]);
  next[1]();
  if (wanted.size) want();
  else drawn.splice(0).forEach((acknowledge) => acknowledge());
}

const drawn = [];
const TOPICS = {
  batch: ["curve", "head", "operators", "scatter"], slot: ["curve", "operators", "shares", "spent"], operators: ["operators", "curve", "head"],
  points: ["curve", "head"], log: ["log"], state: ["head", "curve"], phase: ["head"], run: ["head"], artifact: [],
};

function events(list, acknowledge) {
  const incomplete = !state.run.latency;
  const changed = state.fold(list);
  drawn.push(acknowledge);
  const names = [...changed].flatMap((topic) => TOPICS[topic] || []);
  // With the first latency there is something to compile.
  if (changed.has("state") || changed.has("artifact") || (incomplete && state.run.latency)) document.body.dispatchEvent(new Event("downloads"));
  if (!names.length || document.hidden) drawn.splice(0).forEach((done) => done());
  want(...names);
}

const words = {
  live: "",
  lost: "The connection is lost; trying again. What is shown is from before.",
  crowded: "Your account has as many pages open on runs as it may; this one stands still. Close some, and it goes on.",
  gone: "This run is not there any more, or not yours. Sign in again, or go back to the list.",
};
const status = $('[data-part="connection"]');
new Line(root.dataset.socket, () => state.seq, {
  onEvents: events,
  onStatus: (word) => { if (status.textContent !== words[word]) status.textContent = words[word]; },
});

const everything = () => want(...parts.map(([name]) => name));
timeline.onWindow = (why) => {
  if (why === "drag") { curve.redraw(); lanes.draw(); } else want("curve", "scatter");
};
let overlay = false;
highlight.listen((what) => {
  if (what === "operator") {
    operators.light(highlight.operator);
    shares.light(highlight.operator);
  }
  if (overlay) return;
  overlay = true;
  requestAnimationFrame(() => { overlay = false; curve.redraw(); lanes.draw(); scatter.draw(); });
});
new ResizeObserver(() => want("curve", "scatter")).observe($("#curve").parentElement);
document.addEventListener("visibilitychange", () => { if (!document.hidden) everything(); });
$("#tried").addEventListener("toggle", () => want("scatter"));
everything();

const label = (index) => `#${index} ${short(state.byIndex.get(index)?.name || "")}`;
const file = root.dataset.file;
wire($("#latency-section"), {
  name: `${file}-latency`, table: $("#latency-table"), canvases: () => [$("#curve"), $("#lanes")],
  rows: () => [["clock_s", "latency_ms"], ...state.curve.map(([clock, seconds]) => [clock.toFixed(2), (seconds * 1e3).toFixed(5)])],
});
wire($("#slots-section"), {
  name: `${file}-slots`, table: $("#slots-table"), canvases: () => [$("#curve"), $("#lanes")],
  rows: () => [["slot", "operator", "began_s", "ended_s", "before_ms", "after_ms", "trials", "rule"],
    ...state.slots.map(([n, o, a, b, x, y, t, rule]) => [n, label(o), a.toFixed(2), b.toFixed(2), x === null ? "" : (x * 1e3).toFixed(5), y === null ? "" : (y * 1e3).toFixed(5), t, rule])],
});
wire($("#shares-section"), {
  name: `${file}-shares`, drawing: () => $("#shares svg"),
  rows: () => [["operator", "time", "gain"], ...shares.rows().map((row) => [row.name, percent(row.time), percent(row.gain)])],
});
wire($("#spent-section"), {
  name: `${file}-clock`, drawing: () => $("#spent svg"),
  rows: () => [["category", "seconds", "share"], ...spent.rows().map((row) => [row.name, row.seconds.toFixed(2), percent(row.share)])],
});
wire($("#operators-section"), {
  name: `${file}-operators`,
  rows: () => {
    const shown = columns(state).filter(([, , , text]) => text);
    return [shown.map(([, heading]) => heading), ...state.operators.map((o) => shown.map(([, , , text]) => text(o)))];
  },
});
wire($("#tried"), {
  name: `${file}-configurations`, canvases: () => [$("#scatter")],
  rows: () => [["clock_s", "operator", "ms", "cause"], ...state.points.map(([c, o, s, cause]) => [c.toFixed(2), label(o), s === null ? "" : (s * 1e3).toFixed(5), cause])],
});

// For tests and for the curious: what the page believes.
window.run = { state };
