// What was opened stays open, and what was scrolled stays there, when htmx brings its part of the page up to date.

let opened = [], scrolled = [];
document.addEventListener("htmx:beforeSwap", ({ target }) => {
  opened = [...target.querySelectorAll("details[open][id]")].map(({ id, lastElementChild: box }) => ({ id, top: box.scrollTop, left: box.scrollLeft }));
  scrolled = [...target.querySelectorAll(".scroll[id]")].map(({ id, scrollLeft }) => ({ id, left: scrollLeft }));
});
document.addEventListener("htmx:afterSwap", () => {
  for (const { id, top, left } of opened.splice(0)) {
    const details = document.getElementById(id);
    if (details) { details.open = true; details.lastElementChild.scrollTo(left, top); }
  }
  for (const { id, left } of scrolled.splice(0)) document.getElementById(id)?.scrollTo({ left, behavior: "instant" });
});
