// The page of an item: copy buttons, and keys to the next and previous item and failure.

const KEYS = { j: "next", ArrowRight: "next", k: "prev", ArrowLeft: "prev", n: "failure", p: "failure-before" };

function readyCopies() {
  for (const button of document.querySelectorAll("button[data-copy]")) {
    button.hidden = !navigator.clipboard;
    button.addEventListener("click", async () => {
      const words = button.textContent;
      try {
        await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).innerText);
        button.textContent = "Copied";
      } catch {
        button.textContent = "Not copied";
      }
      setTimeout(() => { button.textContent = words; }, 1500);
    });
  }
}

export function readyItem() {
  readyCopies();
  for (const place of document.querySelectorAll("[data-end]")) place.scrollTop = place.scrollHeight;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const at = event.target;
    if (at.closest("input, select, textarea, dialog")) return;
    if (event.key.startsWith("Arrow") && at.closest("[tabindex]:not(main), table")) return;  // it scrolls there
    const link = KEYS[event.key] && document.querySelector(`a[data-go="${KEYS[event.key]}"]`);
    if (!link) return;
    event.preventDefault();
    link.click();
  });
}
