// Imports a file of traces and says what came of it: how many are new, and which lines were left out and why.

import { soon } from "./live.js";
import { send } from "./uploads.js";

const SHOWN_LINES = 100;
const number = (count) => count.toLocaleString("en");

function line(list, text) {
  const item = document.createElement("li");
  item.textContent = text;
  list.append(item);
}

function report(form, answer) {
  const place = form.querySelector("[data-report]");
  place.replaceChildren();
  const words = document.createElement("p");
  words.className = answer.left_out ? "banner" : "banner good";
  const some = (count, what) => `${number(count)} ${what}${count === 1 ? "" : "s"}`;
  const parts = answer.imported === undefined ? [] : [some(answer.imported, "new trace"), `${number(answer.unchanged)} unchanged`, `${some(answer.labelled, "label")} imported`];
  if (answer.left_out) parts.push(`${some(answer.left_out, "line")} skipped`);
  words.textContent = `${parts.join(", ")}.`;
  place.append(words);
  const lines = answer.left_out_lines ?? [];
  if (lines.length) {
    const list = document.createElement("ul");
    list.className = "left-out wide";
    for (const each of lines.slice(0, SHOWN_LINES)) line(list, `Line ${each.line}: ${each.reason}`);
    if (lines.length > SHOWN_LINES) line(list, `and ${number(answer.left_out - SHOWN_LINES)} more`);
    place.append(list);
  }
  place.hidden = false;
  place.focus();
}

function start(form) {
  form.querySelector("[data-report]").hidden = true;
  const query = new URLSearchParams({ eval_set_id: form.dataset.set, format: form.elements.format.value });
  const project = form.elements.project.value.trim();
  if (project) query.set("project", project);
  send(form, "POST", `${form.dataset.import}?${query}`, 201, (request) => {
    let answer = {};
    try { answer = JSON.parse(request.responseText); } catch { return; }
    if (request.status === 201 || answer.left_out) report(form, answer);
    if (request.status !== 201) return;
    form.elements.file.value = "";
    soon(0);
  });
}

export function readyImports() {
  for (const form of document.querySelectorAll("form[data-import]")) {
    form.hidden = false;
    form.addEventListener("submit", (event) => { event.preventDefault(); event.stopPropagation(); start(form); });
  }
}
