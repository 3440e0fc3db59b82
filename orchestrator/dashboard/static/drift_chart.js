// A schedule's chart: score of each run with its interval, the baseline's band, alarms, panel versions. Drag to zoom, double
// click to zoom out, click a run to open it. The server's drawing stays where charts are not installed.

import { charts } from "./packages.js";

const root = document.body.dataset.root;
const percent = (value) => `${(100 * value).toFixed(1)} %`;
const VERDICTS = { worse: "worse: alarm", better: "better: alarm", no_change: "no change", not_comparable: "not comparable" };
const whole = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

function colours(element) {
  const style = getComputedStyle(element);
  const probe = document.createElement("span");
  element.append(probe);
  const resolved = Object.fromEntries(["accent", "band", "line", "soft", "bad", "good", "raised", "ink"].map((name) => {
    probe.style.color = style.getPropertyValue(`--${name}`);
    return [name, getComputedStyle(probe).color];
  }));
  probe.remove();
  return resolved;
}

function columns(points) {
  const of = (name) => points.map((point) => point[name]);
  return [of("at"), of("score"), of("base_high"), of("base_low"), of("low"), of("high")];
}

function scaleOf(points) {
  const values = points.flatMap((point) => [point.low, point.high, point.base_low, point.base_high]).filter((value) => value !== null);
  return [Math.max(0, Math.min(...values) - 0.03), Math.min(1, Math.max(...values) + 0.03)];
}

// Everything that is drawn by hand: panel lines below, intervals and dots above the series.
function painter(points, paint) {
  return (plot) => {
    const { ctx } = plot;
    const ratio = devicePixelRatio;
    const [x, y] = [(value) => plot.valToPos(value, "x", true), (value) => plot.valToPos(value, "y", true)];
    ctx.save();
    ctx.beginPath();
    ctx.rect(plot.bbox.left, plot.bbox.top, plot.bbox.width, plot.bbox.height);
    ctx.clip();
    ctx.font = `${11 * ratio}px sans-serif`;
    points.forEach((point, n) => {
      if (!n || points[n - 1].panel === point.panel) return;
      ctx.strokeStyle = ctx.fillStyle = paint.soft;
      ctx.setLineDash([3 * ratio, 3 * ratio]);
      ctx.beginPath();
      ctx.moveTo(x(point.at), plot.bbox.top);
      ctx.lineTo(x(point.at), plot.bbox.top + plot.bbox.height);
      ctx.stroke();
      ctx.fillText(`panel ${point.panel}`, x(point.at) + 4 * ratio, plot.bbox.top + 12 * ratio);
    });
    ctx.setLineDash([]);
    for (const point of points) {
      const colour = { worse: paint.bad, better: paint.good, not_comparable: paint.soft }[point.verdict] ?? paint.accent;
      const alarm = point.verdict === "worse" || point.verdict === "better";
      ctx.strokeStyle = colour;
      ctx.globalAlpha = 0.5;
      ctx.lineWidth = 1.5 * ratio;
      ctx.beginPath();
      ctx.moveTo(x(point.at), y(point.low));
      ctx.lineTo(x(point.at), y(point.high));
      ctx.stroke();
      ctx.globalAlpha = 1;
      ctx.fillStyle = colour;
      ctx.beginPath();
      if (alarm) {  // a triangle, so that colour is not all that tells
        const [cx, cy, size, way] = [x(point.at), y(point.score), 6 * ratio, point.verdict === "worse" ? 1 : -1];
        ctx.moveTo(cx - size, cy - way * size * 0.8);
        ctx.lineTo(cx + size, cy - way * size * 0.8);
        ctx.lineTo(cx, cy + way * size);
      } else {
        ctx.arc(x(point.at), y(point.score), 3.5 * ratio, 0, 2 * Math.PI);
      }
      ctx.fill();
    }
    ctx.restore();
  };
}

function tip(figure, points) {
  const box = Object.assign(document.createElement("div"), { className: "chart-tip", hidden: true });
  figure.append(box);
  return (plot) => {
    const point = plot.cursor.left >= 0 ? points[plot.cursor.idx] : null;
    box.hidden = !point;
    if (!point) return;
    const lines = [`${percent(point.score)}  (${percent(point.low)} to ${percent(point.high)})`, `${point.n} items, panel ${point.panel}`];
    if (point.base !== null) lines.push(`baseline ${percent(point.base)}`);
    if (point.verdict) lines.push(VERDICTS[point.verdict] ?? point.verdict);
    lines.push(point.alert !== null ? "Click: what changed" : "Click: view run");
    box.replaceChildren(Object.assign(document.createElement("b"), { textContent: whole.format(point.at * 1000) }), ...lines.flatMap((line, n) => (n ? [document.createElement("br"), line] : [line])));
    const left = plot.over.offsetLeft + plot.cursor.left;
    const flip = left > figure.clientWidth / 2;
    box.style.left = flip ? "" : `${left + 14}px`;
    box.style.right = flip ? `${figure.clientWidth - left + 14}px` : "";
    box.style.top = `${Math.max(0, plot.over.offsetTop + plot.cursor.top - 30)}px`;
  };
}

function savePicture(plot, figure, paint) {
  const canvas = document.createElement("canvas");
  const source = plot.ctx.canvas;
  const margin = 34 * devicePixelRatio;
  [canvas.width, canvas.height] = [source.width, source.height + margin];
  const ctx = canvas.getContext("2d");
  ctx.fillStyle = paint.raised;
  ctx.fillRect(0, 0, canvas.width, canvas.height);
  ctx.fillStyle = paint.ink;
  ctx.font = `600 ${14 * devicePixelRatio}px sans-serif`;
  ctx.fillText(`${figure.dataset.title}: score over time`, 12 * devicePixelRatio, 22 * devicePixelRatio);
  ctx.drawImage(source, 0, margin);
  canvas.toBlob((blob) => {
    const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: `${figure.dataset.title}-drift.png` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  });
}

export async function readyDriftChart() {
  let library;
  try { library = await charts(); } catch { return; }
  const figure = document.querySelector('[data-chart="schedule"]');
  const drawn = figure.querySelector(".drawn");
  const tools = document.getElementById("chart-tools");
  const [reset, png] = ["reset", "png"].map((name) => tools.querySelector(`[data-chart-${name}]`));
  const place = Object.assign(document.createElement("div"), { className: "plotted" });
  place.setAttribute("role", "img");
  let [plot, shown] = [null, null];

  const draw = () => {
    const points = JSON.parse(drawn.dataset.points);
    if (points.length < 2) return;
    shown = drawn.dataset.points;
    plot?.destroy();
    figure.querySelector(".chart-tip")?.remove();
    tools.hidden = false;
    figure.classList.add("interactive");
    drawn.after(place);
    place.setAttribute("aria-label", drawn.querySelector("svg")?.getAttribute("aria-label") ?? "Score over time");
    const paint = colours(figure);
    const axis = { stroke: paint.soft, grid: { stroke: paint.line, width: 1 }, ticks: { stroke: paint.line }, font: "11px sans-serif" };
    const bands = { stroke: "transparent", points: { show: false } };
    const clear = paint.band.replace("rgb(", "rgba(").replace(")", ", .45)");
    plot = new library({
      width: place.clientWidth, height: place.clientHeight,
      legend: { show: false },
      cursor: { drag: { x: true, y: false, dist: 6 }, points: { show: false } },
      scales: { x: { range: (_, low, high) => [low - 0.02 * (high - low || 1), high + 0.02 * (high - low || 1)] }, y: { range: () => scaleOf(points) } },
      axes: [axis, { ...axis, size: 52, values: (_, marks) => marks.map((mark) => `${Math.round(100 * mark)} %`) }],
      series: [{}, { stroke: paint.accent, width: 1, alpha: 0.6, points: { show: false } }, bands, bands, { show: false }, { show: false }],
      bands: [{ series: [2, 3], fill: clear }],
      hooks: {
        draw: [painter(points, paint)],
        setCursor: [tip(figure, points)],
        setScale: [(it, key) => { if (key === "x" && it.scales.x.min !== undefined) reset.hidden = it.scales.x.min <= points[0].at && it.scales.x.max >= points.at(-1).at; }],
      },
    }, columns(points), place);
    let pressed = null;
    plot.over.addEventListener("mousedown", (event) => { pressed = event.clientX; });
    plot.over.addEventListener("click", (event) => {
      const point = points[plot.cursor.idx];
      if (!point || Math.abs(event.clientX - pressed) > 4) return;
      location.assign(root + (point.alert !== null ? `/alerts/${point.alert}` : `/runs/${point.run}`));
    });
    place.style.cursor = "pointer";
    png.onclick = () => savePicture(plot, figure, paint);
    reset.onclick = () => plot.setData(columns(points));
    png.hidden = false;
  };
  draw();
  document.addEventListener("benchyard:fresh", () => { if (drawn.dataset.points !== shown) draw(); });
  new ResizeObserver(() => { if (plot && place.clientWidth) plot.setSize({ width: place.clientWidth, height: place.clientHeight }); }).observe(place);
  new MutationObserver(draw).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}
