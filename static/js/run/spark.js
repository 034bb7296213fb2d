// An operator's best so far against configurations tried, and ahead of it what the scheduler believes, as points of an SVG of 72 x 20.

import { monotone } from "./monotone.js";

const WIDTH = 72, TOP = 2, HEIGHT = 16;
const RADIUS = 1.8;

/**
 * A step line on a logarithmic scale, the band in which the best is expected, which begins where the last slot was given, and
 * circles where a best was measured again and came out slower: as a path.
 */
export function spark({ spark: points, trials, terms }) {
  if (!points.length) return { line: "", band: "", again: "" };
  const ahead = believed(points, terms?.belief), told = monotone(points);
  const first = points[0][0], last = Math.max(trials, points.at(-1)[0], first + 1, ...ahead.map(([x]) => x));
  // All of them: what was corrected has its place too.
  const values = [...points.map(([, seconds]) => seconds), ...ahead.flatMap(([, low, high]) => [low, high])];
  const high = Math.log(Math.max(...values)), low = Math.log(Math.min(...values));
  const at = (trial, seconds) => {
    const x = (WIDTH * (trial - first)) / (last - first);
    const y = high - low < 1e-9 ? TOP + HEIGHT / 2 : TOP + (HEIGHT * (high - Math.log(seconds))) / (high - low);
    return [x.toFixed(1), y.toFixed(1)];
  };
  const line = [];
  for (const [trial, seconds] of [...told.line, [Math.max(trials, points.at(-1)[0]), told.line.at(-1)[1]]]) {
    const [x, y] = at(trial, seconds);
    if (line.length) line.push(`${x},${line.at(-1).split(",")[1]}`);
    line.push(`${x},${y}`);
  }
  const band = [...ahead.map(([x, , top]) => at(x, top)), ...ahead.toReversed().map(([x, bottom]) => at(x, bottom))];
  const again = told.again.map((point) => circle(...at(...point))).join("");
  return { line: line.join(" "), band: band.map((pair) => pair.join(",")).join(" "), again };
}

function circle(x, y) {
  const half = (way) => `a${RADIUS} ${RADIUS} 0 0 1 ${way * 2 * RADIUS} 0`;
  return `M${x} ${y}m${-RADIUS} 0${half(1)}${half(-1)}z`;
}

/** [configuration, low, high] in seconds, the figure of then first; bounded, or a wide band would flatten the line. */
function believed(points, belief) {
  if (!belief?.low_ms || belief.x.length < 2) return [];
  const from = Math.max(points[0][0], 2 * belief.x[0] - belief.x[1]);
  const then = points.findLast(([trial]) => trial <= from) ?? points[0];
  const bands = belief.x.map((x, i) => [Math.max(x, from), Math.max(belief.low_ms[i] / 1e3, then[1] / 2), then[1]]);
  return [[from, then[1], then[1]], ...bands];
}
