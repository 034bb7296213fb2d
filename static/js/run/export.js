// Under each chart: its figures as a table, as CSV, as a picture.

import { look } from "./look.js";

export function wire(section, { name, rows, canvases, drawing, table }) {
  const details = table ?? section.querySelector("details.as-table");
  const of = section.querySelector("h2, :scope > summary")?.textContent.toLowerCase();
  for (const button of section.querySelectorAll("[data-save]")) if (of) button.setAttribute("aria-label", `${button.textContent} of ${of}`);
  details?.addEventListener("toggle", () => { if (details.open) fill(details.querySelector("table"), rows()); });
  section.querySelector('[data-save="csv"]')?.addEventListener("click", () => save(csv(rows()), `${name}.csv`));
  section.querySelector('[data-save="png"]')?.addEventListener("click", async () => {
    const canvas = canvases ? stacked(canvases()) : await pictured(drawing());
    canvas.toBlob((blob) => save(blob, `${name}.png`));
  });
}

function fill(table, [heads, ...rows]) {
  const line = (cells, tag) => {
    const row = document.createElement("tr");
    for (const cell of cells) {
      const element = document.createElement(tag);
      element.textContent = cell ?? "–";
      row.append(element);
    }
    return row;
  };
  table.tHead.replaceChildren(line(heads, "th"));
  table.tBodies[0].replaceChildren(...rows.slice(-500).map((cells) => line(cells, "td")));
}

function csv(rows) {
  const cell = (value) => (/[",\n]/.test(String(value ?? "")) ? `"${String(value).replaceAll('"', '""')}"` : String(value ?? ""));
  return new Blob([rows.map((row) => row.map(cell).join(",")).join("\n") + "\n"], { type: "text/csv" });
}

function save(blob, name) {
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

function pictured(drawing) {
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
