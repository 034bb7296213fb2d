// A file dropped or chosen is sent at once, with its progress; without this script the form sends it all the same.

const form = document.querySelector("[data-upload]");
if (form) {
  const input = form.querySelector('input[type="file"]');
  const zone = form.querySelector(".drop");
  const progress = form.querySelector("progress");
  const status = form.querySelector("[data-status]");
  form.querySelector("[data-submit]").hidden = true;
  input.addEventListener("change", () => { if (input.files.length) send(input.files[0]); });
  for (const name of ["dragenter", "dragover"]) zone.addEventListener(name, (event) => { event.preventDefault(); zone.classList.add("over"); });
  for (const name of ["dragleave", "drop"]) zone.addEventListener(name, (event) => { event.preventDefault(); zone.classList.remove("over"); });
  // A file dropped beside the zone would take the page's place.
  for (const name of ["dragover", "drop"]) window.addEventListener(name, (event) => event.preventDefault());
  zone.addEventListener("drop", (event) => { if (event.dataTransfer.files.length) send(event.dataTransfer.files[0]); });

  function send(file) {
    // Said before it is sent: the server would say the same when it has all of it.
    if (file.size > Number(form.dataset.room)) {
      fail(`${file.name} has ${(file.size / 1e6).toFixed(1)} MB. ${form.dataset.full}`);
      return;
    }
    const request = new XMLHttpRequest();
    const content = new FormData(form);
    content.set("file", file);
    request.open("POST", form.action);
    request.setRequestHeader("X-Requested-With", "XMLHttpRequest");
    request.setRequestHeader("Accept", "application/json");
    status.classList.remove("bad");
    request.upload.onprogress = (event) => {
      progress.hidden = false;
      progress.max = event.total;
      progress.value = event.loaded;
      status.textContent = `${file.name}: ${Math.round((100 * event.loaded) / event.total)} % of ${(event.total / 1e6).toFixed(1)} MB sent`;
    };
    request.onload = () => {
      let answer = null;
      try { answer = JSON.parse(request.responseText); } catch { /* refused before it was whole, or a proxy's page */ }
      const plain = request.getResponseHeader("Content-Type")?.startsWith("text/plain") && request.responseText;
      if (answer?.location) location.assign(answer.location);
      else if (new URL(request.responseURL || location).pathname.startsWith("/login/")) location.reload(); // signed out meanwhile
      else fail(answer?.error || plain || `The server answered ${request.status}.`);
    };
    request.onerror = () => fail("The connection broke. Try again.");
    request.send(content);
  }
  function fail(text) {
    progress.hidden = true;
    status.textContent = text;
    status.classList.add("bad");
    input.value = "";
  }
}
