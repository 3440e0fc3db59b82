// Makes one element like another without replacing what is already there: focus, scroll position, open details and
// half-typed fields stay. Elements are matched by id or data-key, otherwise by order and name.

const KEPT = new Set(["open", "data-theme"]);

const keyOf = (node) => (node.nodeType === Node.ELEMENT_NODE ? node.id || node.dataset.key || "" : "");

const alike = (one, other) =>
  one.nodeType === other.nodeType && one.nodeName === other.nodeName && keyOf(one) === keyOf(other);

function attributes(from, to) {
  for (const { name, value } of to.attributes) if (from.getAttribute(name) !== value && !KEPT.has(name)) from.setAttribute(name, value);
  for (const { name } of [...from.attributes]) if (!to.hasAttribute(name) && !KEPT.has(name)) from.removeAttribute(name);
}

function element(from, to) {
  if (from.dataset.keep !== undefined || from.isEqualNode(to)) return;
  if (from.tagName === "INPUT" || from.tagName === "SELECT" || from.tagName === "TEXTAREA") return;
  attributes(from, to);
  if (from.tagName === "PROGRESS") from.value = to.value;
  children(from, to);
}

function children(from, to) {
  const keyed = new Map();
  for (const child of from.children) if (keyOf(child)) keyed.set(keyOf(child), child);
  let next = from.firstChild;
  for (const wanted of [...to.childNodes]) {
    const known = keyOf(wanted) && keyed.get(keyOf(wanted));
    if (known && known.nodeName === wanted.nodeName) {
      if (known === next) next = next.nextSibling;
      else from.insertBefore(known, next);
      element(known, wanted);
    } else if (next && alike(next, wanted)) {
      if (next.nodeType === Node.ELEMENT_NODE) element(next, wanted);
      else if (next.nodeValue !== wanted.nodeValue) next.nodeValue = wanted.nodeValue;
      next = next.nextSibling;
    } else {
      from.insertBefore(document.importNode(wanted, true), next);
    }
  }
  while (next) {
    const gone = next;
    next = next.nextSibling;
    gone.remove();
  }
}

export { element as morph };
