// Contradictions: who is wrong, the eval or the label. Decided in place, by button or key, and taken back with undo.

import { change, readyKeys } from "./keys.js";

const root = document.body.dataset.root;
const WORDS = {
  eval: "Label kept. The next version learns from this trace.",
  label: "Label changed.",
  nobody: "Not decided.",
};
let here = null;

const cards = () => [...here.querySelectorAll("article[data-trace]")];
const current = () => document.activeElement?.closest?.("article[data-trace]") ?? cards().find((each) => !each.dataset.decided) ?? cards()[0];
const part = (name) => here.querySelector(`[data-${name}]`);

function counts(answer) {
  if (answer.contradiction_count === undefined) return;
  part("all").textContent = answer.contradiction_count.toLocaleString("en");
  part("held").textContent = answer.disputed_count.toLocaleString("en");
  part("open-count").textContent = (answer.contradiction_count - answer.disputed_count).toLocaleString("en");
}

function draw(card, decided, rating) {
  if (decided === "nobody") delete card.dataset.decided;
  else card.dataset.decided = decided;
  for (const button of card.querySelectorAll("button[name=wrong]")) {
    button.hidden = button.value === "nobody" ? decided === "nobody" : decided !== "nobody";
  }
  const tag = card.querySelector("[data-said] .tag");
  tag.textContent = rating;
  tag.className = `tag ${rating === "positive" ? "passed" : "failed"}`;
  card.querySelector("[data-outcome]").textContent = WORDS[decided];
}

async function decide(card, wrong) {
  if (!card || card.dataset.busy) return;
  const was = card.dataset.decided ?? "nobody";
  if ((wrong === "nobody") === (was === "nobody")) return;
  const given = card.dataset.rating;
  const other = given === "positive" ? "negative" : "positive";
  part("trouble").hidden = true;
  card.dataset.busy = "1";
  draw(card, wrong, wrong === "label" ? other : given);
  try {
    // A label that was turned round is turned back first; then nothing is decided.
    if (was === "label") await change(`${root}/api/eval-sets/${here.dataset.set}/feedback`, "POST", { trace_id: card.dataset.trace, rating: given });
    counts(await change(`${root}/api/evals/${here.dataset.eval}/contradictions`, "POST", { trace_id: card.dataset.trace, wrong }));
  } catch (error) {
    draw(card, was, was === "label" ? other : given);
    part("trouble").hidden = false;
    part("trouble").textContent = `${card.dataset.trace} was not decided: ${error.message}. Try again.`;
  } finally {
    delete card.dataset.busy;
  }
}

function move(by) {
  const all = cards();
  const place = all.indexOf(document.activeElement?.closest?.("article[data-trace]"));
  const next = all[Math.min(all.length - 1, Math.max(0, place + by))];
  next?.focus();
  next?.scrollIntoView({ block: "start" });
}

function decideAndMove(wrong) {
  const card = current();
  if (!card?.querySelector("form.decision")) return;
  decide(card, wrong);
  card.focus();
  move(1);
}

export function readyDecisions() {
  here = document.getElementById("deciding");
  if (!here) return;
  here.addEventListener("submit", (event) => {
    const card = event.target.closest("article[data-trace]");
    if (!card || event.submitter?.name !== "wrong") return;
    event.preventDefault();
    event.stopPropagation();
    decide(card, event.submitter.value);
    card.focus();
  });
  readyKeys([
    { on: ["e", "E"], shown: "e", words: "the eval is wrong", act: () => decideAndMove("eval") },
    { on: ["l", "L"], shown: "l", words: "my label was wrong", act: () => decideAndMove("label") },
    { on: ["u", "U"], shown: "u", words: "undo", act: () => decide(current(), "nobody") },
    { on: ["ArrowDown", "ArrowRight", "j"], shown: "↓ or j", words: "next contradiction", act: () => move(1) },
    { on: ["ArrowUp", "ArrowLeft", "k"], shown: "↑ or k", words: "previous contradiction", act: () => move(-1) },
  ], part("help"));
}
