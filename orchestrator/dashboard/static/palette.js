// Ctrl-K: pages, actions, models, datasets and recent runs by their names. Keys: g and a letter goes to a page.

import { readyKeys, showKeys } from "./keys.js";

const root = document.body.dataset.root;
const JUMPS = { o: "/", r: "/runs", b: "/batches", l: "/leaderboard", s: "/schedules", a: "/alerts", m: "/models", d: "/datasets", f: "/fleet" };
const MOST = 12;
let remembered = null;

async function listed(path, entry) {
  try {
    const answer = await fetch(`${root}${path}`, { headers: { accept: "application/json" } });
    return answer.ok ? (await answer.json()).items.map(entry) : [];
  } catch {
    return [];
  }
}

function fromPage() {
  const links = [...document.querySelectorAll("#side li a")].map((link) => ({ text: link.textContent.trim(), kind: "Page", go: () => location.assign(link.href) }));
  const actions = [...document.querySelectorAll(".top a.button, main .heading a.button")].map((link) => ({ text: link.textContent.trim(), kind: "Action", go: () => link.click() }));
  links.push({ text: "Jobs", kind: "Page", go: () => location.assign(`${root}/jobs`) });
  const theme = document.getElementById("theme");
  return [...actions, ...links, { text: "Switch between light and dark", kind: "Action", go: () => theme?.click() }, { text: "Keyboard shortcuts", kind: "Help", go: showKeys }];
}

function fromServer() {
  const to = (path) => () => location.assign(root + path);
  remembered ??= Promise.all([
    listed("/api/models?limit=200", (it) => ({ text: it.slug, kind: "Model", go: to(`/models/${it.id}`) })),
    listed("/api/datasets", (it) => ({ text: it.name, kind: "Dataset", go: to(`/datasets/${encodeURIComponent(it.name)}`) })),
    listed("/api/schedules?limit=100", (it) => ({ text: it.model, kind: "Schedule", go: to(`/schedules/${it.model_id}`) })),
    listed("/api/container-runs?limit=50", (it) => ({ text: `${it.name || it.model || it.kind || "Run"} ${it.id.slice(-6)}`, also: it.id, kind: `Run, ${it.status}`, go: to(`/runs/${it.id}`) })),
  ]).then((lists) => lists.flat());
  return remembered;
}

function fits(entry, words) {
  const text = `${entry.text} ${entry.kind} ${entry.also ?? ""}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

function open() {
  if (document.querySelector("dialog[open]")) return;
  const dialog = Object.assign(document.createElement("dialog"), { className: "palette" });
  dialog.setAttribute("aria-label", "Search and commands");
  const field = Object.assign(document.createElement("input"), { type: "text", placeholder: "Search pages, models, runs, actions", autocomplete: "off", spellcheck: false });
  const list = Object.assign(document.createElement("ul"), { id: "palette-list" });
  const empty = Object.assign(document.createElement("p"), { className: "soft", hidden: true, textContent: "Nothing found." });
  for (const [name, value] of Object.entries({ role: "combobox", "aria-label": "Search and commands", "aria-expanded": "true", "aria-controls": list.id, "aria-autocomplete": "list" })) field.setAttribute(name, value);
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Results");
  dialog.append(field, list, empty);
  document.body.append(dialog);
  let [entries, shown, chosen] = [fromPage(), [], 0];

  const mark = () => {
    [...list.children].forEach((row, n) => row.setAttribute("aria-selected", String(n === chosen)));
    const row = list.children[chosen];
    field.setAttribute("aria-activedescendant", row?.id ?? "");
    row?.scrollIntoView({ block: "nearest" });
  };
  const draw = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    shown = entries.filter((entry) => fits(entry, words)).slice(0, MOST);
    chosen = 0;
    list.replaceChildren(...shown.map((entry, n) => {
      const row = Object.assign(document.createElement("li"), { id: `palette-${n}` });
      row.setAttribute("role", "option");
      const kind = Object.assign(document.createElement("small"), { textContent: entry.kind });
      row.append(Object.assign(document.createElement("span"), { textContent: entry.text }), kind);
      row.addEventListener("click", () => take(n));
      return row;
    }));
    empty.hidden = shown.length > 0;
    mark();
  };
  const take = (n) => { const entry = shown[n]; dialog.close(); entry?.go(); };
  field.addEventListener("input", draw);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") { event.preventDefault(); take(chosen); }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || !shown.length) return;
    event.preventDefault();
    chosen = (chosen + step + shown.length) % shown.length;
    mark();
  });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("close", () => dialog.remove());
  draw();
  dialog.showModal();
  fromServer().then((more) => { entries = [...fromPage(), ...more]; if (dialog.open && field.value) draw(); });
}

export function readyPalette() {
  const button = document.getElementById("palette-open");
  if (!button) return;
  button.hidden = false;
  button.addEventListener("click", open);
  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey) return;
    event.preventDefault();
    open();
  });
  let jumping = 0;
  const jump = (letter) => { if (Date.now() - jumping < 1500 && JUMPS[letter]) location.assign(root + JUMPS[letter]); };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog")) return;
    if (jumping && JUMPS[event.key] && Date.now() - jumping < 1500) { event.preventDefault(); event.stopPropagation(); jump(event.key); }
    jumping = 0;
  }, true);
  readyKeys([
    { on: [], shown: "Ctrl K", words: "Search and commands" },
    { on: ["g"], shown: "g then o r b l s a m d f", words: "Overview, Runs, Batches, Leaderboard, Schedules, Alerts, Models, Datasets, Fleet", act: () => { jumping = Date.now(); } },
    { on: ["/"], shown: "/", words: "Search and commands", act: open },
  ]);
}
