// Figures that the server drew: a box with the value under the pointer, and PNG and CSV to keep.

const SVG = "http://www.w3.org/2000/svg";
const box = Object.assign(document.createElement("div"), { className: "chart-tip figure-tip", hidden: true });

function save(blob, name) {
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function csvOf(figure) {
  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  // A spreadsheet would run a text that begins like a formula.
  const cell = (it) => quoted(it.textContent.trim().replace(/^(?=[=+@\t]|-(?![\d.]))/, "'"));
  return [...figure.querySelectorAll("table tr")].map((row) => [...row.cells].map(cell).join(",")).join("\r\n") + "\r\n";
}

// Draws what the page shows on a canvas, shape by shape: an image of the SVG itself would lack the page's styles.
function paint(ctx, element, home) {
  const style = getComputedStyle(element);
  if (style.display === "none" || style.visibility === "hidden") return;
  const matrix = element.getScreenCTM?.();
  const value = (name) => element[name].baseVal.value;
  const at = (x, y) => { const point = new DOMPoint(x, y).matrixTransform(matrix); return [point.x - home.left, point.y - home.top]; };
  const shown = (colour) => colour && colour !== "none" && colour !== "transparent";
  ctx.globalAlpha = Number(style.opacity);
  ctx.fillStyle = shown(style.fill) ? style.fill : "#0000";
  ctx.strokeStyle = shown(style.stroke) ? style.stroke : "#0000";
  ctx.lineWidth = parseFloat(style.strokeWidth) || 1;
  ctx.setLineDash(style.strokeDasharray === "none" ? [] : style.strokeDasharray.split(",").map(parseFloat));
  ctx.beginPath();
  if (element.tagName === "rect") {
    const [x, y] = at(value("x"), value("y"));
    ctx.fillRect(x, y, value("width"), value("height"));
  } else if (element.tagName === "line") {
    ctx.moveTo(...at(value("x1"), value("y1")));
    ctx.lineTo(...at(value("x2"), value("y2")));
    ctx.stroke();
  } else if (element.tagName === "circle") {
    ctx.arc(...at(value("cx"), value("cy")), value("r"), 0, 2 * Math.PI);
    ctx.fill();
    ctx.stroke();
  } else if (element.tagName === "text") {
    const room = element.getBBox();
    ctx.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
    ctx.textBaseline = "alphabetic";
    const [x, y] = at(room.x, element.getStartPositionOfChar(0).y);
    ctx.fillText(element.firstChild.textContent, x, y);
  }
  for (const child of element.children) paint(ctx, child, home);
}

function png(figure) {
  const svg = figure.querySelector("svg.canvas");
  const home = svg.getBoundingClientRect();  // its labels are in the margins around it
  const canvas = document.createElement("canvas");
  const [ratio, top, keys, inset] = [Math.max(2, devicePixelRatio), 34, [...figure.querySelectorAll(".legend li")], parseFloat(getComputedStyle(svg).marginLeft)];
  const below = top + (keys.length ? 22 : 0);
  const [width, height] = [home.width + inset + 16, home.height + below + 48];
  [canvas.width, canvas.height] = [width * ratio, height * ratio];
  const ctx = canvas.getContext("2d");
  const style = getComputedStyle(figure);
  const card = getComputedStyle(figure.closest(".card") ?? document.body);
  ctx.scale(ratio, ratio);
  ctx.fillStyle = card.backgroundColor;
  ctx.fillRect(0, 0, width, height);
  ctx.fillStyle = style.color;
  ctx.font = `600 14px ${style.fontFamily}`;
  ctx.fillText(figure.dataset.title, 10, 22);
  ctx.font = `12px ${style.fontFamily}`;
  let x = 10;
  for (const key of keys) {
    ctx.fillStyle = getComputedStyle(key.querySelector("rect")).fill;
    ctx.fillRect(x, top - 2, 10, 10);
    ctx.fillStyle = style.color;
    ctx.fillText(key.textContent, x + 15, top + 8);
    x += 30 + ctx.measureText(key.textContent).width;
  }
  ctx.translate(inset, below + 10);
  paint(ctx, svg, home);
  canvas.toBlob((blob) => save(blob, `${figure.dataset.figure}.png`));
}

function place(event) {
  const [x, y] = [event.clientX, event.clientY];
  box.style.left = x > innerWidth / 2 ? "" : `${x + 14}px`;
  box.style.right = x > innerWidth / 2 ? `${document.documentElement.clientWidth - x + 14}px` : "";
  box.style.top = `${Math.max(4, y - 34)}px`;
}

function ready(figure) {
  figure.querySelector(".figure-tools").hidden = false;
  for (const title of figure.querySelectorAll("svg.canvas title")) {
    title.parentElement.dataset.tip = title.textContent;
    title.remove();
  }
  if (figure.readyOnce) return;
  figure.readyOnce = true;
  figure.querySelector("[data-png]").addEventListener("click", () => png(figure));
  figure.querySelector("[data-csv]").addEventListener("click", () => save(new Blob([csvOf(figure)], { type: "text/csv" }), `${figure.dataset.figure}.csv`));
  const svg = figure.querySelector("svg.canvas");
  svg.addEventListener("pointermove", (event) => {
    const tip = event.target.namespaceURI === SVG ? event.target.dataset.tip : "";
    box.hidden = !tip;
    if (!tip) return;
    box.textContent = tip;
    place(event);
  });
  svg.addEventListener("pointerleave", () => { box.hidden = true; });
}

export function readyFigures() {
  document.body.append(box);
  const all = () => document.querySelectorAll("[data-figure]").forEach(ready);
  all();
  document.addEventListener("benchyard:fresh", all);
}
