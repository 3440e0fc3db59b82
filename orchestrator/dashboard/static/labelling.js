// Labelling by keyboard: a label is sent at once and the next trace shown without waiting for the answer; the one after it
// is fetched meanwhile. What could not be saved is said, and can be sent again.

import { change, readyKeys } from "./keys.js";

const root = document.body.dataset.root;
const undone = [];
const ahead = new Map();
const given = new Set();
let here = null;
let sending = Promise.resolve();

const card = () => document.getElementById("trace");
const part = (name) => here.querySelector(`[data-${name}]`);

// A page of the server, without anything of it being run; the same address is asked for once.
function fetched(address) {
  if (!ahead.has(address)) {
    ahead.set(address, fetch(address, { headers: { accept: "text/html" }, cache: "no-store" }).then(async (answer) => {
      if (!answer.ok || answer.redirected) throw new Error(`HTTP ${answer.status}`);
      return new DOMParser().parseFromString(await answer.text(), "text/html");
    }));
    ahead.get(address).catch(() => ahead.delete(address));
  }
  return ahead.get(address);
}

function ready() {
  const undo = card().querySelector("[data-undo]");
  if (undo) [undo.hidden, undo.disabled] = [false, !undone.length];
  if (card().dataset.next) fetched(card().dataset.next).catch(() => {});
}

async function go(address) {
  if (!address) return;
  let page;
  try {
    page = await fetched(address);
    if (given.has(page.getElementById("trace")?.dataset.trace) && address.includes("after=")) {
      await sending;  // it was fetched before the label had arrived
      ahead.delete(address);
      page = await fetched(address);
    }
  } catch {
    return location.assign(address);
  }
  ahead.clear();  // what was fetched before may have been labelled since
  const wanted = page.getElementById("trace");
  if (!wanted) return location.assign(address);
  card().replaceWith(document.importNode(wanted, true));
  history.replaceState(null, "", card().dataset.here ?? address);
  card().focus?.({ preventScroll: true });
  scrollTo({ top: 0 });
  say(card().dataset.trace ? `Trace ${card().dataset.trace}` : card().querySelector("h2").textContent);
  ready();
}

const say = (text) => { part("say").textContent = text; };

function counts(answer) {
  if (answer?.positive === undefined) return;
  part("positive").textContent = answer.positive.toLocaleString("en");
  part("negative").textContent = answer.negative.toLocaleString("en");
  part("labelled").textContent = (answer.positive + answer.negative).toLocaleString("en");
  here.querySelector(".label-progress progress").value = answer.positive + answer.negative;
}

function trouble(trace, error, again) {
  const box = part("trouble");
  box.hidden = false;
  box.replaceChildren(`Label of ${trace} not saved: ${error.message}. `);
  const button = document.createElement("button");
  button.className = "second";
  button.textContent = "Retry";
  button.addEventListener("click", () => { box.hidden = true; again(); });
  box.append(button);
}

// One after the other, in the order in which they were given.
function send(trace, rating, note) {
  const set = `${root}/api/eval-sets/${here.dataset.set}`;
  const work = () => (rating
    ? change(`${set}/feedback`, "POST", { trace_id: trace, rating, note })
    : change(`${set}/feedback/${encodeURIComponent(trace)}`, "DELETE").then(() => change(set, "GET")));
  sending = sending.then(work).then(counts, (error) => trouble(trace, error, () => send(trace, rating, note)));
  return sending;
}

function before() {
  const { trace, rating, here: address } = card().dataset;
  const note = card().querySelector("#l-note");
  return { trace, rating, address, note: note?.defaultValue ?? "" };
}

function label(rating) {
  if (!card().dataset.trace || !here.dataset.may) return;
  const was = before();
  undone.push(was);
  given.add(was.trace);
  const next = card().dataset.next;
  send(was.trace, rating, card().querySelector("#l-note").value);
  say(`${was.trace}: ${rating}`);
  go(next);
}

function skip() {
  if (card().dataset.trace) go(card().dataset.next);
}

async function undo() {
  const was = undone.pop();
  if (!was) return;
  given.delete(was.trace);
  await send(was.trace, was.rating, was.note);
  ahead.clear();
  await go(was.address);
  say(`Undone: ${was.trace}`);
}

function press(event) {
  const button = event.target.closest("button[name=rating]");
  if (button && button.value !== "forget") { event.preventDefault(); label(button.value); }
  if (event.target.closest("[data-undo]")) undo();
  const link = event.target.closest("a[data-skip], a[rel=prev], a[rel=next]");
  if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.button) { event.preventDefault(); go(link.getAttribute("href")); }
}

export function readyLabelling() {
  here = document.getElementById("labelling");
  if (!here) return;
  here.addEventListener("click", press);
  here.addEventListener("keydown", (event) => {  // out of the note with Escape, done with Ctrl and Enter
    if (event.target.id === "l-note" && (event.key === "Escape" || (event.key === "Enter" && event.ctrlKey))) { event.preventDefault(); card().focus(); }
  });
  const follow = (rel) => go(card().querySelector(`a[rel=${rel}]`)?.getAttribute("href"));
  const rating = here.dataset.may ? [
    { on: ["p", "P"], shown: "p", words: "positive", act: () => label("positive") },
    { on: ["n", "N"], shown: "n", words: "negative", act: () => label("negative") },
    { on: ["u", "U"], shown: "u", words: "undo the last label", act: undo },
    { on: ["m", "M"], shown: "m", words: "write a note (Escape leaves it)", act: () => card().querySelector("#l-note")?.focus() },
  ] : [];
  readyKeys([
    ...rating,
    { on: ["s", "S"], shown: "s", words: "skip", act: skip },
    { on: ["ArrowRight", "j"], shown: "→ or j", words: "next trace", act: () => follow("next") },
    { on: ["ArrowLeft", "k"], shown: "← or k", words: "previous trace", act: () => follow("prev") },
  ], part("help"));
  ready();
}
