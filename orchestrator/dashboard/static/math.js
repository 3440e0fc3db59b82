// Mathematics: an element with data-math ("inline" or "block") holds TeX as text; here it is drawn. Nodes are made one by
// one and styles are set as properties, so no inline style is needed; commands that could load or link anything are off.

import { mathematics } from "./packages.js";

// What KaTeX cannot read stays text: its own mark of errors would be an inline style.
const LIMITS = { throwOnError: true, trust: false, strict: "ignore", maxSize: 20, maxExpand: 300, output: "html" };
const MOST_CHARS = 5000;

export async function drawMathematics(within = document) {
  const places = [...within.querySelectorAll("[data-math]:not([data-drawn])")];
  if (!places.length) return;
  let katex;
  try { katex = await mathematics(); } catch { return; }  // the TeX stays readable as text
  for (const place of places) {
    const source = place.textContent;
    place.dataset.drawn = "";
    if (source.length > MOST_CHARS) continue;
    const drawn = document.createElement("span");
    try { katex.render(source, drawn, { ...LIMITS, displayMode: place.dataset.math === "block" }); } catch { continue; }
    drawn.setAttribute("aria-hidden", "true");
    const spoken = Object.assign(document.createElement("span"), { className: "unseen", textContent: source });
    place.replaceChildren(spoken, drawn);
  }
}

export function readyMathematics() {
  drawMathematics();
  document.addEventListener("benchyard:fresh", () => drawMathematics());
}
