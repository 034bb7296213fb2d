// A button that got no answer says so where its refusals are said, until the server is there again.

for (const name of ["htmx:sendError", "htmx:timeout"]) document.body.addEventListener(name, (event) => {
  unheard(event);
  say(event, "The server cannot be reached. Next step: try again when the connection is back.").dataset.unreached = "";
});
document.body.addEventListener("htmx:responseError", (event) => {
  const { xhr } = event.detail;
  if (xhr.status >= 500) unheard(event); // a proxy's word while the server starts again
  const plain = xhr.getResponseHeader("Content-Type")?.startsWith("text/plain") && xhr.responseText;
  say(event, plain || `The server answered ${xhr.status}. Next step: reload the page, then try again.`);
});

/** Parts of the page that were to be fetched anew when something happened, and got no answer: by what makes them ask. */
const ASKING = { downloads: "downloads", waiting: "standing" };
const unanswered = new Set();
const AGAIN = 15000; // ms

function unheard({ detail: { elt, requestConfig } }) {
  if (requestConfig.verb === "post" || !(elt.id in ASKING)) return;
  const asking = ASKING[elt.id];
  unanswered.add(asking);
  // The line may have stood all the while.
  setTimeout(() => again(asking), AGAIN);
}

/** Has the parts fetched that this makes ask, unless they were since. */
function again(asking) {
  if (unanswered.delete(asking)) document.body.dispatchEvent(new Event(asking));
}

/** Another line to the server is open. */
export function reached() {
  [...unanswered].forEach(again);
  for (const notice of document.querySelectorAll(".notice[data-unreached]")) notice.remove();
}

function say({ detail: { elt, target, requestConfig } }, sentence) {
  const notice = document.createElement("div");
  if (requestConfig.verb !== "post") return notice; // what the page asks for by itself it asks for again
  const place = elt.closest(".busy") ?? target;
  notice.className = "notice";
  notice.setAttribute("role", "alert");
  notice.textContent = sentence;
  place.querySelector(":scope > .notice")?.remove();
  place.prepend(notice);
  return notice;
}
