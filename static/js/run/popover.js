// A panel that lies over the page goes away when something else is wanted.

for (const panel of document.querySelectorAll("details.popover")) {
  const elsewhere = ({ target }) => { if (!panel.contains(target)) panel.open = false; };
  document.addEventListener("pointerdown", elsewhere);
  document.addEventListener("focusin", elsewhere);
  panel.addEventListener("keydown", ({ key }) => {
    if (key !== "Escape" || !panel.open) return;
    panel.open = false;
    panel.querySelector("summary").focus();
  });
}
