// What was opened stays open when htmx brings its part of the page up to date.

let opened = [];
document.addEventListener("htmx:beforeSwap", ({ target }) => {
  opened = [...target.querySelectorAll("details[open][id]")].map(({ id, lastElementChild: box }) => ({ id, top: box.scrollTop, left: box.scrollLeft }));
});
document.addEventListener("htmx:afterSwap", () => {
  for (const { id, top, left } of opened.splice(0)) {
    const details = document.getElementById(id);
    if (details) { details.open = true; details.lastElementChild.scrollTo(left, top); }
  }
});
