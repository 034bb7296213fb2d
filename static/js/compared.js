// The chart of several runs as a picture. Its figures are tables that the server makes.

import { wire } from "./run/export.js";

const STYLE = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "opacity", "font-family", "font-size", "font-weight", "text-anchor"];

const section = document.querySelector("[data-compared]");
if (section) {
  wire(section, { name: `${section.dataset.compared}-runs`, drawing: () => drawn(section.querySelector("svg.wide")), table: document.createElement("details") });
  section.querySelector('[data-save="png"]').hidden = false;
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
