// Follows a job's own stream: stages, counts and refused answers as they come. The browser reconnects by itself with the
// last number it saw; the page's parts are fetched again when something came that only the server can draw.

import { lost, PATIENCE_MS, soon } from "./live.js";

const root = document.body.dataset.root;
const number = (count) => count.toLocaleString("en");
const followed = new Set();

function show(card, event) {
  const set = (name, text) => {
    const place = card.querySelector(`[data-${name}]`);
    if (place) place.textContent = text;
  };
  if (event.percent !== undefined) card.querySelector("[data-bar]").value = event.percent;
  const repair = /repair (\d+) of (\d+)/.exec(event.detail ?? "");
  const mark = card.querySelector("[data-repair]");
  if (mark && event.stage) [mark.hidden, mark.textContent] = [!repair, repair ? `Repair ${repair[1]} of ${repair[2]}` : ""];
  const step = event.stage && card.querySelector(`li[data-stage="${CSS.escape(event.stage)}"] b`);
  if (event.stage) set("words", step ? step.textContent : event.stage.replaceAll("_", " "));
  else if (event.status && event.status !== "running") set("words", event.status);
  if (event.total) set("counts", `${number(event.done ?? 0)} of ${number(event.total)} traces`);
  else if (event.stage) set("counts", "");
  if (event.average_ms) set("average", `${event.average_ms.toFixed(1)} ms each`);
  const steps = [...card.querySelectorAll("li[data-stage]")];
  const now = steps.findIndex((step) => step.dataset.stage === event.stage);
  if (now < 0) return;
  steps.forEach((step, place) => {
    step.className = place < now ? "past" : place === now ? "now" : "next";
    if (place === now) step.setAttribute("aria-current", "step");
    else step.removeAttribute("aria-current");
  });
  const said = `${repair ? `Repair ${repair[1]}: ` : ""}${steps[now].querySelector("b").textContent}`;
  if (card.dataset.told !== said) set("say", card.dataset.told = said);
}

function follow(id, after) {
  if (followed.has(id)) return;
  followed.add(id);
  const source = new EventSource(`${root}/api/jobs/${encodeURIComponent(id)}/stream?after=${encodeURIComponent(after)}`);
  let grumble = null;
  source.onopen = () => {
    clearTimeout(grumble);
    grumble = null;
    if (!lost.hidden) { lost.hidden = true; soon(0); }
  };
  source.onerror = () => {
    grumble ??= setTimeout(() => { lost.hidden = false; }, PATIENCE_MS);
    if (source.readyState !== EventSource.CLOSED) return;  // it tries again by itself, with the last number
    followed.delete(id);
    setTimeout(() => soon(0), PATIENCE_MS);
  };
  source.addEventListener("progress", (message) => {
    const event = JSON.parse(message.data);
    const card = document.querySelector(`[data-job="${CSS.escape(id)}"]`);
    if (card) show(card, event);
    if (event.round || event.status !== "running") soon(100);
  });
  const end = () => {
    source.close();
    clearTimeout(grumble);
    soon(0);
    setTimeout(() => soon(0), 1500);
  };
  for (const type of ["completed", "failed", "end"]) source.addEventListener(type, end);
  addEventListener("pagehide", () => source.close());
}

export function followJobs() {
  const look = () => {
    for (const card of document.querySelectorAll("[data-job]")) follow(card.dataset.job, card.dataset.after);
  };
  look();
  document.addEventListener("benchyard:fresh", look);
}
