// A part of a page that asks for itself again and again says where it gets no answer. A run's page says it of its socket.

document.addEventListener("htmx:afterRequest", ({ detail: { requestConfig, xhr } }) => {
  if (!requestConfig.elt.matches("[hx-trigger^='every']")) return;
  const answer = xhr.status ? `The site answered ${xhr.status}` : "The connection is lost";
  const words = xhr.status && xhr.status < 400 ? "" : `${answer}; what is shown is from before.`;
  const line = document.querySelector("[data-connection]");
  if (line.textContent !== words) line.textContent = words; // it is read aloud whenever it is set
});
