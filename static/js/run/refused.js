// A button that got no answer says so where its refusals are said.

document.body.addEventListener("htmx:sendError", (event) => say(event, "The server cannot be reached. Next step: try again when the connection is back."));
document.body.addEventListener("htmx:responseError", (event) => {
  say(event, `The server answered ${event.detail.xhr.status}. Next step: reload the page, then try again.`);
});

function say({ detail: { target, requestConfig } }, sentence) {
  if (requestConfig.verb !== "post") return; // what the page asks for by itself it asks for again
  const notice = document.createElement("div");
  notice.className = "notice";
  notice.setAttribute("role", "alert");
  notice.textContent = sentence;
  target.querySelector(":scope > .notice")?.remove();
  target.prepend(notice);
}
