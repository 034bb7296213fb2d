// What happened, newest first.

import { duration } from "../format.js";

export class Log {
  constructor(list, state) {
    Object.assign(this, { list, state });
    this.drawn = -1;
    this.draw();
  }

  draw() {
    const fresh = this.state.log.filter((line) => line.seq > this.drawn);
    if (!fresh.length) return;
    this.drawn = fresh.at(-1).seq;
    this.list.prepend(...fresh.map(entry).reverse());
    while (this.list.children.length > 200) this.list.lastElementChild.remove();
    this.list.parentElement.hidden = false;
  }
}

function entry(line) {
  const item = document.createElement("li"), time = document.createElement("time"), text = document.createElement("span");
  item.dataset.level = line.level;
  time.textContent = duration(line.clock);
  text.textContent = (line.level === "info" ? "" : `${line.level}: `) + line.text;
  item.append(time, text);
  return item;
}
