// Which operator is pointed at, anywhere on the page, and at what time; everything that draws listens.

export class Highlight {
  constructor() {
    this.operator = null;
    this.time = null;
    this.listeners = [];
    document.addEventListener("pointerover", (event) => this.#from(event.target));
    document.addEventListener("focusin", (event) => this.#from(event.target));
    document.addEventListener("focusout", ({ target }) => { if (target.closest?.("[data-op]")) this.set(null); });
  }

  #from(target) {
    if (target.closest?.("[data-plot]")) return; // plots work it out themselves
    const marked = target.closest?.("[data-op]");
    this.set(marked ? Number(marked.dataset.op) : null);
  }

  listen(callback) { this.listeners.push(callback); }

  set(operator) {
    if (operator === this.operator) return;
    this.operator = operator;
    for (const callback of this.listeners) callback("operator");
  }

  at(time) {
    if (time === this.time) return;
    this.time = time;
    for (const callback of this.listeners) callback("time");
  }
}
