// What was opened stays open, what was scrolled stays there, and the keyboard where it was, when htmx brings its part of the page
// up to date.

let opened = [], scrolled = [], focused = "";
document.addEventListener("htmx:beforeSwap", ({ target }) => {
  opened = [...target.querySelectorAll("details[open][id]")].map(({ id, lastElementChild: box }) => ({ id, top: box.scrollTop, left: box.scrollLeft }));
  scrolled = [...target.querySelectorAll(".scroll[id]")].map(({ id, scrollLeft }) => ({ id, left: scrollLeft }));
  focused = target.contains(document.activeElement) ? document.activeElement.id : "";
});
document.addEventListener("htmx:afterSwap", () => {
  for (const { id, top, left } of opened.splice(0)) {
    const details = document.getElementById(id);
    if (details) { details.open = true; details.lastElementChild.scrollTo(left, top); }
  }
  for (const { id, left } of scrolled.splice(0)) document.getElementById(id)?.scrollTo({ left, behavior: "instant" });
});
// htmx gives the focus back by an id, but not to what is in sight only now: what was opened, buttons that a script offers.
document.addEventListener("htmx:afterSettle", () => {
  if (focused && document.activeElement === document.body) document.getElementById(focused)?.focus({ preventScroll: true });
  focused = "";
});
