// Numbers as people read them; the same rules as apps/dashboard/humans.py.

const NONE = "–";
const MOST_PLACES = 9;

/** Three significant digits, trailing zeros kept: 2.78, 0.0340, 123. */
export function significant(value, digits = 3) {
  if (value === 0 || !Number.isFinite(value)) return value === 0 ? "0" : NONE;
  const rounded = Number(value.toPrecision(digits));
  return rounded.toFixed(Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(rounded)))));
}

/** As it was entered, without what binary fractions add: 0.25, 15. */
export const given = (value) => `${Number(value.toPrecision(9))}`;

const UNITS = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];

/** [seconds of it, its name]: what a latency is told in. */
export function unitOf(seconds) {
  // From a whole second on, latencies are seconds; kernels go down to nanoseconds.
  return UNITS.find(([size]) => Math.abs(seconds) >= size * 0.9995) || UNITS[3];
}

/** The spread to the place of the latency's last digit, or of its own first one. */
export function latency(seconds, spread = 0) {
  if (!Number.isFinite(seconds)) return NONE;
  const [size, name] = unitOf(seconds);
  const shown = significant(seconds / size);
  if (!spread) return `${shown} ${name}`;
  const apart = spread / size;
  const places = Math.max((shown.split(".")[1] || "").length, Math.min(MOST_PLACES, Math.ceil(-Math.log10(apart))));
  return `${shown} ${name} ± ${apart.toFixed(places)}`;
}

export function duration(seconds) {
  if (!Number.isFinite(seconds)) return NONE;
  const whole = Math.round(seconds);
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor((whole % 3600) / 60);
  const rest = whole % 60;
  if (hours) return minutes ? `${hours} h ${minutes} min` : `${hours} h`;
  if (minutes) return rest ? `${minutes} min ${rest} s` : `${minutes} min`;
  return whole || seconds === 0 ? `${whole} s` : `${significant(seconds, 2)} s`;
}

export function ratio(value) {
  return value && Number.isFinite(value) ? `${significant(value)} x` : NONE;
}

/** Whether what is so many times as fast takes longer, by more than rounding hides. */
export const slower = (times) => times < 0.995;

/** 1.15 x faster; of what takes longer the inverse, 1.05 x slower. */
export function faster(times) {
  if (!times || !Number.isFinite(times)) return NONE;
  return slower(times) ? `${significant(1 / times)} x slower` : `${significant(Math.max(1, times))} x faster`;
}

/** 12 345, with narrow spaces. */
export function whole(value) {
  if (!Number.isFinite(value)) return NONE;
  return Math.round(value).toLocaleString("en").replaceAll(",", "\u202f");
}

/** Of bytes, by thousands, 4.96 MB: as apps/core/amounts.py. */
export function size(bytes) {
  if (!Number.isFinite(bytes)) return NONE;
  let unit = "B";
  for (const larger of ["kB", "MB", "GB", "TB"]) {
    if (Math.abs(bytes) < 999.5) break;
    bytes /= 1000;
    unit = larger;
  }
  return `${unit === "B" ? Math.round(bytes) : significant(bytes)} ${unit}`;
}

export function percent(share) {
  if (!Number.isFinite(share)) return NONE;
  if (share > 0 && share < 0.001) return "< 0.1 %";
  return `${(100 * share).toFixed(1)} %`;
}

// The compiler's names say "fused_" of nearly all and repeat what the graph said.
export function short(name) {
  return name.replace(/^fused_/, "");
}
