// Under each chart: its figures as a table, as CSV, as a picture.

import { whole } from "../format.js";
import { look } from "./look.js";

const MOST = 500; // rows of a table
const REFILL = 1000; // ms between two fillings of an open one

/**
 * `rows` are of any kind. A column is {key, heading, value, text}: CSV has its key, which names the unit, and its value; the
 * table its heading and its text, else its value. Without a key it is not in CSV, without a heading not in the table.
 * `all` says of how many rows a table that is cut shows some, and where they are. Returns what brings an open one up to date.
 */
export function wire(section, { name, columns, rows, canvases, drawing, table, all = (rows) => `of ${whole(rows)} drawn, which the CSV has; the tuning log, under Downloads, has all` }) {
  const details = table ?? section.querySelector("details.as-table");
  const of = section.querySelector("h2, :scope > summary")?.textContent.toLowerCase();
  for (const button of section.querySelectorAll("[data-save]")) if (of) button.setAttribute("aria-label", `${button.textContent} of ${of}`);
  section.querySelector('[data-save="csv"]')?.addEventListener("click", () => save(csv(columns(), rows()), `${name}.csv`));
  section.querySelector('[data-save="png"]')?.addEventListener("click", async () => {
    const canvas = canvases ? stacked(canvases()) : await pictured(drawing());
    canvas.toBlob((blob) => save(blob, `${name}.png`));
  });
  const refill = seldom(() => fill(details.querySelector("table"), columns(), rows(), all));
  const current = () => { if (details?.open) refill(); };
  details?.addEventListener("toggle", current);
  return current;
}

/** At once, then at most once in `REFILL`, the last time not left out. */
function seldom(act) {
  let last = -Infinity, later = null;
  const now = () => { later = null; last = performance.now(); act(); };
  return () => {
    const left = last + REFILL - performance.now();
    if (left <= 0 && later === null) now();
    else later ??= setTimeout(now, left);
  };
}

/** Rows that say what they said stay: somebody may be reading them. */
function fill(table, columns, rows, all) {
  const shown = columns.filter(({ heading }) => heading), body = table.tBodies[0];
  const cell = (tag, about) => Object.assign(document.createElement(tag), about);
  const line = (cells) => {
    const row = document.createElement("tr");
    row.append(...cells);
    return row;
  };
  if (!table.tHead.rows.length) table.tHead.append(line(shown.map(({ heading }) => cell("th", { scope: "col", textContent: heading }))));
  const wanted = rows.slice(-MOST).map((row) => shown.map(({ value, text = value }) => String(text(row) ?? "–")));
  const before = new Map(); // some say the same as others
  for (const row of body.rows) {
    const key = said([...row.cells].map((one) => one.textContent));
    before.set(key, [...(before.get(key) ?? []), row]);
  }
  const now = wanted.map((texts) => before.get(said(texts))?.shift() ?? line(texts.map((textContent) => cell("td", { textContent }))));
  const stays = new Set(now);
  for (const row of [...body.rows]) if (!stays.has(row)) row.remove();
  now.forEach((row, place) => { if (body.rows[place] !== row) body.insertBefore(row, body.rows[place] ?? null); });
  if (rows.length > MOST) table.createCaption().textContent = `The last ${MOST} ${all(rows.length)}.`;
  else table.deleteCaption();
}

const said = (texts) => texts.join("\u0000");

export function csv(columns, rows) {
  const cell = (value) => {
    // What a spreadsheet could take for a formula is quoted as text.
    const text = typeof value === "string" && /^\s*[=+\-@]/.test(value) ? `'${value}` : String(value ?? "");
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const kept = columns.filter(({ key }) => key);
  const lines = [kept.map(({ key }) => key), ...rows.map((row) => kept.map(({ value }) => value(row)))];
  return new Blob([lines.map((line) => line.map(cell).join(",")).join("\n") + "\n"], { type: "text/csv" });
}

export function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function stacked(canvases) {
  const sheet = document.createElement("canvas"), ctx = sheet.getContext("2d");
  sheet.width = Math.max(...canvases.map((c) => c.width));
  sheet.height = canvases.reduce((sum, c) => sum + c.height, 0);
  ctx.fillStyle = look().page;
  ctx.fillRect(0, 0, sheet.width, sheet.height);
  let y = 0;
  for (const canvas of canvases) { ctx.drawImage(canvas, 0, y); y += canvas.height; }
  return sheet;
}

export function pictured(drawing) {
  const text = new XMLSerializer().serializeToString(drawing);
  const image = new Image();
  return new Promise((resolve, reject) => {
    image.onload = () => {
      const sheet = document.createElement("canvas"), ctx = sheet.getContext("2d");
      sheet.width = 2 * image.width;
      sheet.height = 2 * image.height;
      ctx.fillStyle = look().page;
      ctx.fillRect(0, 0, sheet.width, sheet.height);
      ctx.drawImage(image, 0, 0, sheet.width, sheet.height);
      resolve(sheet);
    };
    image.onerror = reject;
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  });
}
