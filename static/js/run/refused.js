// A button that got no answer says so where its refusals are said, until the server is there again.

document.body.addEventListener("htmx:sendError", (event) => {
  say(event, "The server cannot be reached. Next step: try again when the connection is back.").dataset.unreached = "";
});
document.body.addEventListener("htmx:responseError", (event) => {
  const { xhr } = event.detail, plain = xhr.getResponseHeader("Content-Type")?.startsWith("text/plain") && xhr.responseText;
  say(event, plain || `The server answered ${xhr.status}. Next step: reload the page, then try again.`);
});

/** The line to the server is open. */
export function reached() {
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
