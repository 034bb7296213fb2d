// A best that is measured again may come out slower: it was luck. The line of the best so far never rises all the same.

/**
 * Of points [x, y]: the `line` of the lowest so far; where it was corrected upwards, what it came to before it fell below the
 * line again (`again`); and whether it is above the line now (`over`). apps/dashboard/plot.py does the same.
 */
export function monotone(points) {
  const line = [], again = [];
  let lowest = Infinity, over = false;
  for (const [x, y] of points) {
    lowest = Math.min(lowest, y);
    line.push([x, lowest]);
    if (y === lowest) over = false;
    else if (!over) { again.push([x, y]); over = true; }
    else if (y !== again.at(-1)[1]) again[again.length - 1] = [x, y];
  }
  return { line, again, over };
}
