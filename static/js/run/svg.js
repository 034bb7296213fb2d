// SVG with its colours as attributes, so that a copy of it, saved as a picture, looks the same.

const SPACE = "http://www.w3.org/2000/svg";

export function svg(name, attributes = {}, children = []) {
  const element = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  for (const child of [children].flat()) element.append(child);
  return element;
}
