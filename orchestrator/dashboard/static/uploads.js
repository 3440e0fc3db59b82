// Sends files to the API with a bar that moves: a dataset's, whose progress then shows on the page itself; for traces see
// imports.js.

const size = (bytes) => bytes < 1e6 ? `${Math.round(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;

function why(request) {
  if (request.status === 401) return "You are signed out. Reload the page and sign in.";
  try { return JSON.parse(request.responseText).detail; } catch { /* not one of our answers */ }
  return request.status ? `Upload failed: HTTP ${request.status}` : "Upload failed: connection lost. Send the file again.";
}

// Sends the form's file; `done` gets what the service answered. Stopped or refused, the form says why.
export function send(form, method, address, expected, done) {
  const [alert, bar, words, stop, button] = ["[role=alert]", "progress", "[role=status]", "[data-stop]", "button:not([data-stop])"].map((each) => form.querySelector(each));
  const request = new XMLHttpRequest();
  const show = (busy, error = "") => {
    bar.hidden = stop.hidden = !busy;
    button.disabled = busy;
    alert.hidden = !error;
    alert.textContent = error;
    if (!busy) words.textContent = "";
  };
  request.upload.onprogress = ({ loaded, total }) => {
    [bar.max, bar.value] = [total, loaded];
    words.textContent = loaded < total ? `${size(loaded)} of ${size(total)} sent` : "Sent. Processing …";
  };
  request.onload = () => {
    removeEventListener("beforeunload", warn);
    show(false, request.status === expected ? "" : why(request));
    done(request);
  };
  request.onerror = () => show(false, why(request));
  request.onabort = () => show(false, "Upload stopped.");
  request.onloadend = () => removeEventListener("beforeunload", warn);
  stop.onclick = () => request.abort();
  addEventListener("beforeunload", warn);
  show(true);
  request.open(method, address);
  request.setRequestHeader("content-type", "application/octet-stream");
  request.send(form.elements.file.files[0]);
}

function sendDataset(form) {
  // The service takes plain names only; what was in between does not matter to it.
  const plain = form.elements.file.files[0].name.replace(/[^\p{L}\p{N}_ .()+-]/gu, "_").replace(/^[^\p{L}\p{N}_]/u, "_").slice(-150);
  const query = new URLSearchParams({ filename: plain });
  for (const name of ["format", "sha256"]) if (form.elements[name].value) query.set(name, form.elements[name].value.trim());
  const address = `${form.dataset.upload}${encodeURIComponent(form.elements.name.value.trim())}?${query}`;
  send(form, "PUT", address, 202, (request) => { if (request.status === 202) location.assign(location.pathname); });
}

const warn = (event) => event.preventDefault();

export function readyUploads() {
  for (const form of document.querySelectorAll("form[data-upload]")) {
    form.hidden = false;
    form.addEventListener("submit", (event) => { event.preventDefault(); event.stopPropagation(); sendDataset(form); });
  }
}
