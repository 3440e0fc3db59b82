// The list of runs: filters apply at once, keys move through the rows, a view can be kept under a name in this browser.
// The address always says what is shown, so that the live updates ask for the same.

import { readyKeys } from "./keys.js";
import { soon } from "./live.js";

const root = document.body.dataset.root;
const KEPT = "benchyard-run-views";
const form = document.getElementById("run-filters");
const list = document.getElementById("runs");
const rows = () => [...list.querySelectorAll("tbody tr")];
const boxes = () => [...list.querySelectorAll("tbody input[type=checkbox]")];
let at = "";

function address() {
  const fields = [...new FormData(form)].filter(([, value]) => value);
  const columns = [...form.querySelectorAll("input[name=col]")];
  const usual = columns.every((box) => box.checked === box.defaultChecked) && !location.search.includes("col=");
  const query = new URLSearchParams(fields.filter(([name]) => !(usual && name === "col")));
  return `${form.action}${query.size ? `?${query}` : ""}`;
}

function apply() {
  history.replaceState(null, "", address());
  for (const menu of form.querySelectorAll("details.menu")) {
    const chosen = menu.querySelectorAll("input:checked:not([name=col], [name=density])").length;
    menu.querySelector(".count")?.remove();
    if (!chosen) continue;
    const mark = document.createElement("span");
    mark.className = "count";
    mark.textContent = chosen;
    menu.querySelector("summary").append(" ", mark);
  }
  const back = document.querySelector("#bulk [name=back]");
  if (back) back.value = location.search.slice(1);
  document.querySelectorAll("#views > a").forEach((link) => {
    if (link.href === location.href) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  });
  soon(0);
}

function count() {
  const chosen = boxes().filter((box) => box.checked).length;
  document.getElementById("picked").textContent = chosen ? `${chosen} selected` : "Selected runs:";
  const all = document.getElementById("pick-all");
  if (all) [all.checked, all.indeterminate] = [chosen > 0 && chosen === boxes().length, chosen > 0 && chosen < boxes().length];
}

function pickAll() {
  const head = list.querySelector("thead th");
  if (!head || head.querySelector("input")) return;
  const box = document.createElement("input");
  [box.type, box.id] = ["checkbox", "pick-all"];
  box.setAttribute("aria-label", "Select all on this page");
  box.addEventListener("change", () => { for (const each of boxes()) each.checked = box.checked; count(); });
  head.replaceChildren(box);
  head.dataset.keep = "";
}

function move(step) {
  const all = rows();
  const now = all.findIndex((row) => row.dataset.key === at);
  const next = all[Math.min(all.length - 1, Math.max(0, now < 0 ? 0 : now + step))];
  if (!next) return;
  at = next.dataset.key;
  mark();
  next.querySelector("th a").focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

function mark() {
  for (const row of rows()) row.classList.toggle("at", row.dataset.key === at);
}

function select() {
  const box = rows().find((row) => row.dataset.key === at)?.querySelector("input[type=checkbox]");
  if (box) { box.checked = !box.checked; count(); }
}

const kept = () => { try { return JSON.parse(localStorage.getItem(KEPT)) ?? []; } catch { return []; } };

function keep(views) {
  try { localStorage.setItem(KEPT, JSON.stringify(views)); } catch { /* then it is not kept */ }
  showKept();
}

function showKept() {
  const place = document.getElementById("own-views");
  place.replaceChildren(...kept().filter(({ name, query }) => typeof name === "string" && typeof query === "string").map(({ name, query }) => {
    const [part, link, gone] = ["span", "a", "button"].map((tag) => document.createElement(tag));
    part.className = "own-view";
    [link.href, link.textContent] = [`${root}/runs${query}`, name];
    if (query === location.search) link.setAttribute("aria-current", "page");
    [gone.type, gone.textContent] = ["button", "×"];
    gone.setAttribute("aria-label", `Forget the view ${name}`);
    gone.addEventListener("click", () => keep(kept().filter((view) => view.name !== name)));
    part.append(link, gone);
    return part;
  }));
}

function readyViews() {
  const save = document.getElementById("save-view");
  save.hidden = false;
  save.addEventListener("click", () => {
    const name = prompt("Name of this view, kept in this browser. To share it, copy the address.")?.trim().slice(0, 60);
    if (name) keep([...kept().filter((view) => view.name !== name), { name, query: location.search }]);
  });
  showKept();
}

export function readyRunTable() {
  document.documentElement.classList.add("scripted");
  let timer = null;
  form.addEventListener("submit", (event) => { event.preventDefault(); apply(); });
  form.addEventListener("change", apply);
  form.elements.q.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(apply, 250); });
  list.addEventListener("change", count);
  document.addEventListener("benchyard:fresh", () => { pickAll(); mark(); count(); });
  readyKeys([
    { on: ["j"], shown: "j", words: "Next run", act: () => move(1) },
    { on: ["k"], shown: "k", words: "Previous run", act: () => move(-1) },
    { on: ["x"], shown: "x", words: "Select the run", act: select },
    { on: ["/"], shown: "/", words: "Search runs", act: () => form.elements.q.focus() },
  ]);
  pickAll();
  readyViews();
  count();
}
