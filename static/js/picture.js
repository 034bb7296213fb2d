// Charts that the server draws as SVG: each as a picture, and the figures of its table as CSV.

import { csv, pictured, save } from "./run/export.js";

const STYLE = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "opacity", "font-family", "font-size", "font-weight", "text-anchor"];

// At the document: htmx brings parts of the page up to date.
document.addEventListener("click", async ({ target }) => {
  const button = target.closest("[data-picture] [data-save]"), section = button?.closest("[data-picture]");
  if (!section) return;
  const name = section.dataset.picture;
  if (button.dataset.save === "csv") save(csv(...figures(section.querySelector("table"))), `${name}.csv`);
  else (await pictured(drawn(section.querySelector("svg.wide")))).toBlob((blob) => save(blob, `${name}.png`));
});

function offer() {
  for (const button of document.querySelectorAll("[data-picture] [data-save]")) button.hidden = false;
}
offer();
document.addEventListener("htmx:afterSwap", offer);

/** Columns and rows of a table: a heading's key names the unit of the values that its cells keep beside what they show. */
function figures(table) {
  const keys = [...table.tHead.rows[0].cells].map(({ dataset }) => dataset.key);
  const said = ({ dataset, textContent }) => dataset.value ?? textContent;
  const columns = keys.map((key, place) => ({ key, value: ({ cells }) => said(cells[place]) }));
  return [columns, [...table.tBodies[0].rows]];
}

/** A copy that needs no style sheet, as large as it was laid out for. */
function drawn(chart) {
  const copy = chart.cloneNode(true), { width, height } = chart.viewBox.baseVal;
  Object.entries({ xmlns: "http://www.w3.org/2000/svg", width, height }).forEach(([name, value]) => copy.setAttribute(name, value));
  const styled = copy.querySelectorAll("*");
  chart.querySelectorAll("*").forEach((element, i) => {
    const computed = getComputedStyle(element);
    for (const name of STYLE) styled[i].style.setProperty(name, computed.getPropertyValue(name));
  });
  return copy;
}
