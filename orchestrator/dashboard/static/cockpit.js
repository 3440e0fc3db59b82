// A running run in the corner of the eye: its state in the tab's icon, progress in the title (from the server), a word when
// it ends, and log lines as they come.

import { soon } from "./live.js";

const ENDED = { completed: "icon-completed.svg", failed: "icon-failed.svg", cancelled: "icon-failed.svg" };
const HIDDEN_MS = 20000;
const MOST_LINES = 400;
const state = document.getElementById("state");
const icon = document.querySelector("link[rel=icon]");
const base = icon.href.slice(0, icon.href.lastIndexOf("/") + 1);
let before = state.dataset.status;

function paint() {
  icon.href = base + (ENDED[state.dataset.status] ?? (state.dataset.over ? "icon-completed.svg" : "icon-running.svg"));
}

function toast(words, bad) {
  const note = document.createElement("p");
  note.className = `toast${bad ? " bad" : ""}`;
  note.setAttribute("role", "status");
  const close = document.createElement("button");
  [close.type, close.className, close.textContent] = ["button", "link", "Close"];
  close.addEventListener("click", () => note.remove());
  document.body.append(note);
  note.append(words, " ", close);
}

function atEnd(log) { return log.scrollHeight - log.scrollTop - log.clientHeight < 40; }

function logLine(event) {
  const log = document.querySelector("#log pre.log[data-follow]");
  if (!log || event.run_id !== state.dataset.live || typeof event.message !== "string") return;
  const follow = atEnd(log);
  log.append(`${event.at.slice(11, 19)} ${event.level ?? "info"} ${event.message.slice(0, 1000)}\n`);
  while (log.childNodes.length > MOST_LINES) log.firstChild.remove();
  if (follow) log.scrollTop = log.scrollHeight;
}

export function readyCockpit() {
  const log = () => document.querySelector("#log pre.log[data-follow]");
  if (log()) log().scrollTop = log().scrollHeight;
  paint();
  let follow = true;
  document.addEventListener("benchyard:event", ({ detail }) => {
    if (log()) follow = atEnd(log());
    if (detail.type === "log") logLine(detail);
  });
  document.addEventListener("benchyard:fresh", () => {
    if (follow && log()) log().scrollTop = log().scrollHeight;
    if (state.dataset.status === before) return;
    before = state.dataset.status;
    paint();
    if (state.dataset.over) toast(state.dataset.over, before === "failed");
  });
  // A hidden page has let go of its stream; the title and the icon are what is seen of it.
  setInterval(() => { if (document.hidden && !state.dataset.over) soon(0); }, HIDDEN_MS);
}
