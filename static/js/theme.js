// Runs before the page is painted: the theme chosen here, else the system's. What is printed is light.
(() => {
  const root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
  const show = (theme) => {
    root.dataset.theme = theme;
    document.dispatchEvent(new Event("themechange"));
  };
  const apply = () => show(chosen() || (system.matches ? "dark" : "light"));
  apply();
  system.addEventListener("change", apply);
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-theme-switch]");
    if (!button) return;
    const next = root.dataset.theme === "dark" ? "light" : "dark";
    try { localStorage.setItem("theme", next); } catch { /* private mode: lasts until the next page */ }
    show(next);
  });
  let before;
  window.addEventListener("beforeprint", () => { before = root.dataset.theme; show("light"); });
  window.addEventListener("afterprint", () => show(before));
})();
