// A run's page: a snapshot, the line to the server, and what is drawn of them, at most once a frame.

import { Curve } from "./curve.js";
import { breakable, empty } from "./empty.js";
import { Headline } from "./headline.js";
import { Highlight } from "./highlight.js";
import { Lanes } from "./lanes.js";
import { Log } from "./log.js";
import { Operators } from "./operators.js";
import "./popover.js";
import { reached } from "./refused.js";
import { Scatter } from "./scatter.js";
import { Shares } from "./shares.js";
import { Line } from "./socket.js";
import { Spent } from "./spent.js";
import { OTHERS, RunState } from "./state.js";
import { wired } from "./tables.js";
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
const tables = wired($, root.dataset.file, { state, shares, spent });

timeline.attach($("#curve"));
timeline.attach($("#lanes"), (time, y) => {
  if (y === null) return null;
  const lane = lanes.laneAt(y);
  return { operator: lane === undefined ? null : lane ? lane.index : slotOfOthers(time) };
});
timeline.attach($("#scatter"), (time, y) => scatter.at(time, y));

function slotOfOthers(time) {
  const slot = timeline.slotAt(time);
  return slot && state.colour(slot[1]) === OTHERS ? slot[1] : null;
}

// Drawing is spread over frames, one part each, so that no task becomes long.
const wanted = new Set();
let scheduled = false;
const parts = [
  ["curve", () => { curve.draw(); lanes.draw(); uncurved(); timeline.offer(); }],
  ["head", () => headline.draw()],
  ["operators", () => operators.draw()],
  ["shares", () => { shares.draw(); shares.light(highlight.operator); }],
  ["spent", () => spent.draw()],
  ["scatter", () => scatter.draw()],
  ["log", () => log.draw()],
];

/** Says why there is no curve. */
function uncurved() {
  const box = $("#no-curve"), said = box.firstElementChild, words = state.curve.length ? "" : empty(state), { area } = curve;
  if (said.textContent !== words) said.replaceChildren(...breakable(words));
  box.hidden = !words;
  // Within the field, whatever stands beside it.
  if (words && area) Object.assign(box.style, { left: `${area.left}px`, right: `${curve.chart.width - area.right}px`, top: `${area.top}px`, bottom: `${curve.chart.height - area.bottom}px` });
}

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
  else acknowledged();
}

const drawn = [];
const TOPICS = {
  batch: ["curve", "head", "operators", "scatter", "spent"], slot: ["curve", "operators", "shares"],
  operators: ["operators", "curve", "head"], points: ["curve", "head"], log: ["log"], state: ["head", "curve", "scatter", "log"],
  phase: ["head", "log"], run: ["head"], uncompared: ["log"],
};

function events(list, acknowledge) {
  const incomplete = !state.run.latency, { uncompiled } = state;
  const changed = state.fold(list);
  drawn.push(acknowledge);
  const names = [...changed].flatMap((topic) => TOPICS[topic] || []);
  const complete = incomplete && state.run.latency;
  if (complete) names.push("log");
  // What can be compiled is offered there.
  if (changed.has("state") || changed.has("artifact") || state.uncompiled !== uncompiled) document.body.dispatchEvent(new Event("downloads"));
  const standing = ["state", "started", "uncompared", ...(document.getElementById("take-baselines") ? ["points"] : [])];
  if (standing.some((topic) => changed.has(topic))) document.body.dispatchEvent(new Event("standing"));
  want(...names);
  if (!names.length) acknowledged();
  if (document.hidden) unseen();
  else tables();
}

function acknowledged() {
  drawn.splice(0).forEach((acknowledge) => acknowledge());
}

/** In a tab in the background no frame comes: only its title is seen, and the server must not wait for the rest. */
function unseen() {
  headline.draw();
  acknowledged();
}

const connection = {
  live: "",
  lost: "The connection is lost; trying again. What is shown is from before.",
  crowded: "Your account has as many pages open on runs as it may, or they were opened too often; this one stands still, and goes on by itself when there are fewer.",
  foreign: "The site takes no line from this address. Have who runs it start it with ORIGINS=" + location.origin + (location.protocol === "https:" ? " and TLS=1" : "") + ", then reload this page.",
  gone: "This run is not there any more, or not yours. Sign in again, or go back to the list.",
};
const status = $('[data-part="connection"]');
new Line(root.dataset.socket, () => state.seq, {
  onEvents: events,
  onStatus: (word, fresh) => {
    headline.live = word === "live";
    if (fresh) reached();
    if (status.textContent !== connection[word]) status.textContent = connection[word];
  },
});

const everything = () => { want(...parts.map(([name]) => name)); tables(); };
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
document.addEventListener("visibilitychange", () => { if (document.hidden) unseen(); else everything(); });
$("#tried").addEventListener("toggle", () => want("scatter"));
everything();

// For tests and for the curious: what the page believes.
window.run = { state };
