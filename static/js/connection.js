// A part of a page that asks for itself again and again says where it gets no answer. A run's page says it of its socket.

document.addEventListener("htmx:afterRequest", ({ detail: { requestConfig, xhr } }) => {
  if (!requestConfig.elt.matches("[hx-trigger*='every']") || document.querySelector("[data-part=connection]")) return;
  const answer = xhr.status ? `The site answered ${xhr.status}` : "The connection is lost";
  const next = xhr.status === 403 ? " Reload the page: it was opened before you last signed in." : "";
  const held = requestConfig.held ? "Words are marked; what is shown is from before." : "";
  const words = xhr.status && xhr.status < 400 ? held : `${answer}; what is shown is from before.${next}`;
  const line = document.querySelector("[data-connection]");
  if (line.textContent !== words) line.textContent = words; // it is read aloud whenever it is set
});

// So is what is put into a status, every second, and an alert: it stays where the new one says the same.

document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  if (!detail.target.closest("[role=status]") && !detail.target.querySelector("[role=alert], [role=status]")) return;
  const page = new DOMParser().parseFromString(detail.serverResponse, "text/html");
  if (page.getElementById(detail.target.id)?.textContent === detail.target.textContent) detail.shouldSwap = false;
});

document.addEventListener("htmx:oobBeforeSwap", ({ detail }) => {
  const alike = detail.target.matches("[role=status]") && detail.fragment.textContent === detail.target.textContent;
  if (alike || marked(detail.target)) detail.shouldSwap = false;
});

// Who marks words, to copy them, keeps them: what is asked for again and again is left as it is until then.

function marked(part) {
  const { anchorNode, focusNode, isCollapsed } = getSelection();
  return !isCollapsed && (part.contains(anchorNode) || part.contains(focusNode));
}

document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  const { elt, triggeringEvent, verb } = detail.requestConfig;
  if (verb !== "get" || triggeringEvent || !elt.matches("[hx-trigger*='every']") || !marked(detail.target)) return;
  detail.shouldSwap = false;
  detail.requestConfig.held = true;
});

// In a page that nobody sees nothing is read anew: it is as soon as the page is seen again.

document.addEventListener("htmx:beforeRequest", (event) => {
  const { elt, verb } = event.detail.requestConfig;
  if (document.hidden && verb === "get" && elt.matches("[hx-trigger*='every']")) event.preventDefault();
});

// A form that was pressed shows it until it is answered. Its button stays enabled: one that is not loses the keyboard.

for (const [name, busy] of [["htmx:beforeSend", true], ["htmx:afterRequest", false]]) document.addEventListener(name, ({ target }) => {
  if (target.matches?.("form")) target.setAttribute("aria-busy", busy);
});

// A log that could not be fetched says so in its place.

for (const name of ["htmx:sendError", "htmx:timeout", "htmx:responseError"]) document.addEventListener(name, ({ detail: { elt, target, xhr } }) => {
  if (!elt.matches("details[id^=log-]")) return;
  const why = xhr.status ? `the site answered ${xhr.status}` : "the site cannot be reached";
  target.textContent = `The log could not be fetched: ${why}. Next step: close it and open it again.`;
});
