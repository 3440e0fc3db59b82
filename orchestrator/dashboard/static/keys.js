// Keys of a page, with a window that lists them. A key does nothing while somebody types, or holds another key with it.

const typing = (target) => target.closest("input, textarea, select, dialog, [contenteditable]");

function helpWindow(keys) {
  const dialog = document.createElement("dialog");
  dialog.className = "keys";
  dialog.setAttribute("aria-labelledby", "keys-title");
  const title = document.createElement("h2");
  title.id = "keys-title";
  title.textContent = "Keys";
  const list = document.createElement("dl");
  list.className = "facts";
  for (const { shown, words } of keys) {
    const [term, text, mark] = ["dt", "dd", "kbd"].map((name) => document.createElement(name));
    mark.textContent = shown;
    term.append(mark);
    text.textContent = words;
    list.append(term, text);
  }
  const close = document.createElement("button");
  close.textContent = "Close";
  close.className = "second";
  close.addEventListener("click", () => dialog.close());
  dialog.append(title, list, close);
  document.body.append(dialog);
  return dialog;
}

const known = [];
let dialog = null;

export function showKeys() {
  dialog?.remove();
  dialog = helpWindow([...known, { shown: "?", words: "This list" }]);
  dialog.showModal();
}

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing || typing(event.target)) return;
  const key = event.key === "?" ? { act: showKeys } : known.find((each) => each.on.includes(event.key));
  if (!key) return;
  event.preventDefault();
  key.act(event);
});

// `keys` are { on: ["p"], shown: "p", words: "positive", act }; those of a page come before the general ones. The window that
// `?` opens lists all of them.
export function readyKeys(keys, button) {
  known.unshift(...keys);
  if (button) { button.hidden = false; button.addEventListener("click", showKeys); }
}

// Asks the API to change something; an error says what is wrong in the service's own words.
export async function change(address, method, body) {
  let answer;
  try {
    answer = await fetch(address, { method, headers: body ? { "content-type": "application/json" } : {}, body: body && JSON.stringify(body), keepalive: true });
  } catch {
    throw new Error("connection lost");
  }
  if (answer.ok) return answer.status === 204 ? {} : answer.json();
  if (answer.status === 401) throw new Error("you are signed out; reload the page and sign in");
  let detail = `HTTP ${answer.status}`;
  try { detail = (await answer.json()).detail ?? detail; } catch { /* not one of our answers */ }
  throw new Error(detail);
}
