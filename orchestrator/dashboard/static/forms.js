// Forms: the ones that open as a dialog, the ones that say what they will do while they are filled in, questions before
// something is stopped. Everything here works without script too, as a page of its own.

import { morph } from "./morph.js";
import { writeTimes } from "./times.js";

const page = async (address) => new DOMParser().parseFromString(await (await fetch(address)).text(), "text/html");

async function openDialog(link) {
  const form = (await page(link.href)).querySelector("form[data-dialog]");
  if (!form) return location.assign(link.href);
  const dialog = document.createElement("dialog");
  dialog.setAttribute("aria-labelledby", "dialog-title");
  const title = document.createElement("h2");
  title.id = "dialog-title";
  title.textContent = form.dataset.dialog;
  dialog.append(title, document.importNode(form, true));
  document.body.append(dialog);
  dialog.addEventListener("close", () => { dialog.remove(); link.focus(); });
  dialog.addEventListener("click", (event) => {
    if (event.target.closest("[data-close]")) { event.preventDefault(); dialog.close(); }
  });
  watch(dialog.querySelector("form"));
  builder(dialog.querySelector("form"));
  writeTimes(dialog);
  dialog.showModal();
}

// Asks the server what the form, as it is now, would do, and shows the answer.
function watch(form) {
  const target = form.querySelector("[data-preview]");
  if (!target) return;
  let timer = null;
  let asked = 0;
  const ask = async () => {
    const mine = ++asked;
    const values = new FormData(form);
    values.delete("key");
    try {
      const answer = await page(`${form.dataset.previewFrom}?${new URLSearchParams(values)}`);
      const fresh = answer.getElementById(target.id);
      if (mine !== asked || !fresh) return;
      morph(target, document.importNode(fresh, true));
      writeTimes(target);
    } catch {
      // The numbers that are shown stay; sending the form checks everything again.
    }
  };
  form.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(ask, 250); });
}

// Shows only the fields that the chosen rhythm of a schedule needs.
function builder(form) {
  const preset = form.querySelector("#s-preset");
  if (!preset) return;
  const show = () => {
    for (const part of form.querySelectorAll("[data-for]")) part.hidden = !part.dataset.for.split(" ").includes(preset.value);
  };
  preset.addEventListener("change", show);
  preset.addEventListener("change", () => {  // the expression goes on from what was built
    const built = form.querySelector("[data-preview] code")?.textContent.trim().split(" ") ?? [];
    if (built.length !== 5) return;
    if (preset.value === "free") form.elements.cron.value ||= built.join(" ");
    if (preset.value === "fields") ["minute", "hour", "monthday", "month", "weekdays"].forEach((name, n) => { form.elements[name].value = built[n]; });
  });
  show();
  const mine = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const button = form.querySelector("[data-zone]");
  if (!button || !mine || mine === form.elements.timezone.value) return;
  button.hidden = false;
  button.textContent = `Use mine: ${mine}`;
  button.addEventListener("click", () => {
    form.elements.timezone.value = mine;
    button.hidden = true;
    form.elements.timezone.focus();
    form.elements.timezone.dispatchEvent(new Event("input", { bubbles: true }));
  });
}

// Shows a field only while another one has the value that it is for; a hidden one is not sent.
function dependents() {
  for (const part of document.querySelectorAll("[data-needs]")) {
    const [id, ...wanted] = part.dataset.needs.split(" ");
    const chooser = document.getElementById(id);
    const show = () => {
      part.hidden = !wanted.includes(chooser.value);
      for (const field of part.querySelectorAll("input, select")) field.disabled = part.hidden;
    };
    chooser.addEventListener("change", show);
    show();
  }
}

// A secret is shown once: one press takes it along.
function copying() {
  for (const button of document.querySelectorAll("button[data-copy]")) {
    button.hidden = !navigator.clipboard;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
      button.textContent = "Copied";
    });
  }
}

export function readyForms() {
  copying();
  dependents();
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-open]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    openDialog(link).catch(() => location.assign(link.href));
  });
  document.addEventListener("submit", (event) => {
    const question = event.submitter?.dataset.confirm;
    if (question && !confirm(question)) return event.preventDefault();
    // Twice pressed is once meant; after a moment the button works again, for who comes back.
    const button = event.submitter;
    if (button) setTimeout(() => { button.disabled = true; setTimeout(() => { button.disabled = false; }, 4000); }, 0);
  });
  document.addEventListener("change", (event) => {
    if (event.target.form?.dataset.auto !== undefined) event.target.form.requestSubmit();
  });
  for (const form of document.querySelectorAll("form")) {
    watch(form);
    builder(form);
  }
}
