// Sends a dataset's file to the API with a bar that moves; what the service then does with it shows on the page itself.

const size = (bytes) => bytes < 1e6 ? `${Math.round(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;

function why(request) {
  if (request.status === 401) return "You are signed out. Open this page again and sign in.";
  try { return JSON.parse(request.responseText).detail; } catch { /* not one of our answers */ }
  return request.status ? `The service answered ${request.status}.` : "The connection broke. Check it and send the file again.";
}

function send(form) {
  const [alert, bar, words, stop, button] = ["[role=alert]", "progress", "[role=status]", "[data-stop]", "button:not([data-stop])"].map((each) => form.querySelector(each));
  const file = form.elements.file.files[0];
  // The service takes plain names only; what was in between does not matter to it.
  const plain = file.name.replace(/[^\p{L}\p{N}_ .()+-]/gu, "_").replace(/^[^\p{L}\p{N}_]/u, "_").slice(-150);
  const query = new URLSearchParams({ filename: plain });
  for (const name of ["format", "sha256"]) if (form.elements[name].value) query.set(name, form.elements[name].value.trim());
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
    words.textContent = loaded < total ? `${size(loaded)} of ${size(total)} sent` : "Sent. Waiting for the service …";
  };
  request.onload = () => {
    if (request.status !== 202) return show(false, why(request));
    removeEventListener("beforeunload", warn);
    location.assign(location.pathname);
  };
  request.onerror = () => show(false, why(request));
  request.onabort = () => show(false, "Stopped. Nothing was added.");
  request.onloadend = () => removeEventListener("beforeunload", warn);
  stop.onclick = () => request.abort();
  addEventListener("beforeunload", warn);
  show(true);
  request.open("PUT", `${form.dataset.upload}${encodeURIComponent(form.elements.name.value.trim())}?${query}`);
  request.setRequestHeader("content-type", "application/octet-stream");
  request.send(file);
}

const warn = (event) => event.preventDefault();

export function readyUploads() {
  for (const form of document.querySelectorAll("form[data-upload]")) {
    form.hidden = false;
    form.addEventListener("submit", (event) => { event.preventDefault(); event.stopPropagation(); send(form); });
  }
}
