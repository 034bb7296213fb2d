// The figures of each part of the page: which columns its table and its CSV have.

import { duration, latency, percent, short, whole } from "../format.js";
import { wire } from "./export.js";
import { columns } from "./operators.js";
import { words } from "./words.js";

const time = (key, heading, value) => ({ key, heading, value, text: (row) => duration(value(row)) });
const took = (key, heading, value) => ({ key, heading, value, text: (row) => latency(value(row)) });
const chosen = (shown, all) => `of ${shown < all ? `${whole(shown)} chosen out of ` : ""}${whole(all)}`;
const share = (key, heading, value) => ({ key, heading, value, text: (row) => percent(value(row)) });

/** Returns what brings all open tables up to date; `$` finds a part of the page, `file` begins the names of its files. */
export function wired($, file, { state, shares, spent }) {
  const named = (index) => short(state.byIndex.get(index)?.name || "");
  const operator = (of) => [
    { key: "operator", heading: "Operator", value: of, text: (row) => `#${of(row)} ${named(of(row))}` },
    { key: "name", value: (row) => named(of(row)) },
  ];
  const tables = [
    wire($("#latency-section"), {
      name: `${file}-latency`, table: $("#latency-table"), canvases: () => [$("#curve"), $("#lanes")], rows: () => state.curveToNow,
      columns: () => [time("clock_s", "Tuning time", ([clock]) => clock), took("latency_s", "Latency", ([, seconds]) => seconds)],
    }),
    wire($("#slots-section"), {
      table: $("#slots-table"), rows: () => state.slots,
      columns: () => [
        { heading: "Slot", value: (slot) => slot[0] }, ...operator((slot) => slot[1]),
        time(null, "From", (slot) => slot[2]), time(null, "To", (slot) => slot[3]),
        took(null, "Before", (slot) => slot[4]), took(null, "After", (slot) => slot[5]),
        { heading: "Tried", value: (slot) => slot[6] },
        { heading: "Why chosen", value: (slot) => words.rules[slot[7]] ?? slot[7] },
      ],
      all: (shown) => `${chosen(shown, state.lastSlot)}; all in the CSV`,
    }),
    wire($("#shares-section"), {
      name: `${file}-shares`, drawing: () => $("#shares svg"), rows: () => shares.rows(),
      columns: () => [
        { key: "operator", heading: "Operator", value: (row) => row.name },
        share("time_paid", "Time paid", (row) => row.time), share("gain_won", "Gain won", (row) => row.gain),
      ],
    }),
    wire($("#spent-section"), {
      name: `${file}-clock`, drawing: () => $("#spent svg"), rows: () => spent.rows(),
      columns: () => [
        { key: "spent_on", heading: "Spent on", value: (row) => row.name },
        time("time_s", "Time", (row) => row.seconds), share("share", "Share", (row) => row.share),
        { heading: "Meaning", text: (row) => row.about },
      ],
    }),
    wire($("#operators-section"), {
      name: `${file}-operators`, rows: () => state.operators,
      columns: () => [...operator((row) => row.index), ...columns(state).filter(({ key }) => key !== "operator" && key !== "spark")],
    }),
    wire($("#tried"), {
      name: `${file}-configurations`, canvases: () => [$("#scatter")], rows: () => state.points,
      columns: () => [
        time("clock_s", "Tuning time", ([clock]) => clock), ...operator(([, index]) => index),
        took("latency_s", "Latency", ([, , seconds]) => seconds),
        { key: "failure", heading: "Failure", value: ([, , , cause]) => cause, text: ([, , , cause]) => words.causes[cause] ?? cause },
      ],
      all: (shown) => `${chosen(shown, state.run.trials)}; all in Measurements, under Downloads`,
    }),
  ];
  return () => tables.forEach((refill) => refill());
}
