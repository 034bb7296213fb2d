// Numbers as people read them; the same rules as apps/dashboard/humans.py.

export function significant(value, digits = 3) {
  if (value === 0) return "0";
  const places = Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(value))));
  const text = value.toFixed(Math.min(places, 12));
  // 9.996 rounds up to 10.00: one digit too many.
  return places > 0 && text.replace(/^-?0\.0*|[-.]/g, "").length > digits ? value.toFixed(places - 1) : text;
}

const UNITS = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];

function unitOf(seconds) {
  // From a whole second on, latencies are seconds; kernels go down to nanoseconds.
  return UNITS.find(([size]) => Math.abs(seconds) >= size * 0.9995) || UNITS[3];
}

export function latency(seconds, spread = 0) {
  if (seconds === null || seconds === undefined) return "–";
  const [size, name] = unitOf(seconds);
  const shown = significant(seconds / size);
  if (!spread) return `${shown} ${name}`;
  const places = (shown.split(".")[1] || "").length;
  return `${shown} ${name} ± ${(spread / size).toFixed(Math.max(places, 2))}`;
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  const whole = Math.round(seconds);
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor((whole % 3600) / 60);
  const rest = whole % 60;
  if (hours) return minutes ? `${hours} h ${minutes} min` : `${hours} h`;
  if (minutes) return rest ? `${minutes} min ${rest} s` : `${minutes} min`;
  return whole || seconds === 0 ? `${whole} s` : `${significant(seconds, 2)} s`;
}

export function ratio(value) {
  return `${value >= 100 ? Math.round(value) : significant(value)} x`;
}

export function count(value) {
  return value >= 1e7 ? value.toExponential(1).replace("e+", "e") : Math.round(value).toLocaleString("en").replaceAll(",", " ");
}

export function percent(share) {
  if (share > 0 && share < 0.001) return "< 0.1 %";
  return `${(100 * share).toFixed(1)} %`;
}

// The compiler's names say "fused_" of nearly all and repeat what the graph said.
export function short(name) {
  return name.replace(/^fused_/, "");
}
