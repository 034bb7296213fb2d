// A file dropped or chosen is sent at once, with its progress; without this script the form sends it all the same.

import { size as amount } from "./format.js";

const form = document.querySelector("[data-upload]");
if (form) {
  const input = form.querySelector('input[type="file"]');
  const zone = form.querySelector(".drop");
  const progress = form.querySelector("progress");
  const status = form.querySelector("[data-status]");
  const sent = form.querySelector("[data-sent]");
  const cancel = form.querySelector("[data-cancel]");
  let sending = null;
  form.querySelector("[data-submit]").hidden = true;
  input.addEventListener("change", () => {
    const [file] = input.files;
    input.value = ""; // or the same file could not be chosen again
    if (file) take(file);
  });
  for (const name of ["dragenter", "dragover"]) zone.addEventListener(name, (event) => { event.preventDefault(); zone.classList.toggle("over", !sending); });
  for (const name of ["dragleave", "drop"]) zone.addEventListener(name, (event) => { event.preventDefault(); zone.classList.remove("over"); });
  // A file dropped beside the zone would take the page's place.
  for (const name of ["dragover", "drop"]) window.addEventListener(name, (event) => event.preventDefault());
  zone.addEventListener("drop", ({ dataTransfer: { files } }) => {
    if (files.length > 1 && !sending) end(`${files.length} files were dropped. Next step: drop one at a time.`, true);
    else if (files.length) take(files[0]);
  });
  cancel.addEventListener("click", () => sending.abort());
  const stay = (event) => { event.preventDefault(); event.returnValue = true; }; // older browsers look at the second alone

  function take(file) {
    if (sending) return;
    const refusal = refused(file);
    if (refusal) end(`${file.name}${refusal}`, true);
    else send(file);
  }

  // Said before it is sent: the server would say the same when it has all of it.
  function refused({ name, size }) {
    const { limit, large, room, full } = form.dataset, endings = input.accept.split(",");
    if (!endings.some((ending) => name.toLowerCase().endsWith(ending))) return ` does not end with ${endings.join(" or ")}. Next step: export the network as .onnx and upload that.`;
    const why = size > Number(limit) ? large : size > Number(room) ? full : "";
    return why && ` has ${amount(size)}. ${why}`;
  }

  function send(file) {
    const request = sending = new XMLHttpRequest();
    const content = new FormData(form);
    content.set("file", file);
    request.open("POST", form.action);
    request.setRequestHeader("X-Requested-With", "XMLHttpRequest");
    request.setRequestHeader("Accept", "application/json");
    status.classList.remove("bad");
    status.textContent = `${file.name} is being sent.`;
    cancel.hidden = false;
    // Beside the status, which is read aloud whenever it changes.
    request.upload.onprogress = ({ loaded, total }) => {
      progress.hidden = false;
      progress.max = total;
      progress.value = loaded;
      sent.textContent = `${Math.round((100 * loaded) / total)} % of ${amount(total)}`;
    };
    request.upload.onload = retire; // the server has it
    request.onload = () => {
      let answer = null;
      end(`${file.name} was sent.`, false); // Back may show this page as it was
      try { answer = JSON.parse(request.responseText); } catch { /* refused before it was whole, or a proxy's page */ }
      const plain = request.getResponseHeader("Content-Type")?.startsWith("text/plain") && request.responseText;
      if (answer?.location) location.assign(answer.location);
      else if (new URL(request.responseURL || location).pathname.startsWith("/login/")) location.reload(); // signed out meanwhile
      else end(answer?.error || plain || `The server answered ${request.status}.`, true);
    };
    request.onerror = () => end("The connection broke. Try again.", true);
    request.onabort = () => end(`${file.name} was not sent.`, false);
    window.addEventListener("beforeunload", stay);
    request.send(content);
  }

  function end(text, bad) {
    sending = null;
    window.removeEventListener("beforeunload", stay); // one that stays on keeps a page out of what Back shows at once
    retire();
    progress.hidden = true;
    sent.textContent = "";
    status.textContent = text;
    status.classList.toggle("bad", bad);
  }

  /** Who works without a mouse stays where the button was. */
  function retire() {
    if (document.activeElement === cancel) input.focus();
    cancel.hidden = true;
  }
}
