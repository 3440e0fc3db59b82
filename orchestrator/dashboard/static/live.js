// Live pages: one stream of events says that something changed, the page is asked for again, and only its parts marked
// data-live are brought up to date. Counters of running work move at once, straight from the event. A hidden page lets
// go of its stream (browsers allow only a few per site) and catches up when it is seen again.

import { morph } from "./morph.js";
import { writeTimes } from "./times.js";

const root = document.body.dataset.root;
export const lost = document.getElementById("lost");
const announcer = document.getElementById("announce");
const TYPES = ["created", "transition", "stage", "progress", "log", "heartbeat", "complete", "failed", "launched", "alert", "schedule", "fire", "job_progress", "judgements"];
const OFTEN = ["progress", "log", "heartbeat", "job_progress", "judgements"];
const ENDS = ["completed", "failed", "cancelled"];
const SOON_MS = 120;
const CALM_MS = 1500;
const SHARE = 10;  // a page spends at most this part of the time on fetching itself, so that many pages cannot choke the service
export const PATIENCE_MS = 2500;

let last = document.body.dataset.number;
let source = null;
let due = null;
let busy = false;
let lastRefresh = 0;
let calm = CALM_MS;
let grumble = null;
let wait = 1000;

const regions = () => document.querySelectorAll("[data-live]");
const ends = (event) => event.type === "transition" && ENDS.includes(event.status);
const concerns = (event) =>
  [...regions()].some(({ dataset: { live } }) => live === "all" || live === event.run_id || (live === "ended" && ends(event)));

async function refresh() {
  due = null;
  if (busy) return soon(SOON_MS);
  busy = true;
  lastRefresh = performance.now();
  try {
    const answer = await fetch(location.href, { headers: { accept: "text/html" }, cache: "no-store" });
    if (answer.redirected && new URL(answer.url).pathname.endsWith("/login")) return location.reload();
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const region of document.querySelectorAll("[data-live], [data-part]")) {
      const wanted = fresh.getElementById(region.id);
      if (wanted) morph(region, document.importNode(wanted, true));
    }
    document.title = fresh.title;
    if (!fresh.body.dataset.pulse) delete document.body.dataset.pulse;
    writeTimes(document);
    document.dispatchEvent(new Event("benchyard:fresh"));
    calm = Math.max(CALM_MS, SHARE * (performance.now() - lastRefresh));
  } catch {
    // The stream's own banner tells; the next event or reconnection tries again.
  } finally {
    busy = false;
  }
}

// Brings the page's parts up to date, soon: also for those who follow a stream of their own.
export function soon(delay) {
  const at = performance.now() + delay;
  if (due && due.at <= at) return;
  if (due) clearTimeout(due.timer);
  due = { at, timer: setTimeout(refresh, delay) };
}

function count(event) {
  for (const bar of document.querySelectorAll(`progress[data-run="${CSS.escape(event.run_id)}"]`)) {
    if (event.done >= bar.value) [bar.max, bar.value] = [event.total, event.done];
  }
  for (const text of document.querySelectorAll(`[data-count="${CSS.escape(event.run_id)}"]`)) {
    text.textContent = `${event.done} of ${event.total}`;
  }
}

function say(event) {
  if (announcer && ends(event)) announcer.textContent = `A run has ended: ${event.status}.`;
}

function take(message) {
  last = message.lastEventId || last;
  let event;
  try { event = JSON.parse(message.data); } catch { return; }
  if (event.type === "progress" && event.run_id) count(event);
  document.dispatchEvent(new CustomEvent("benchyard:event", { detail: event }));
  if (!concerns(event)) return;
  say(event);
  soon(OFTEN.includes(event.type) ? Math.max(SOON_MS, calm - (performance.now() - lastRefresh)) : SOON_MS);
  // What the engine reports of an ended container comes a moment after the last event.
  if (event.type === "transition") setTimeout(() => soon(SOON_MS), 3000);
}

function connect() {
  if (source) source.close();
  source = new EventSource(`${root}/api/events?after=${encodeURIComponent(last)}`);
  source.onopen = () => {
    wait = 1000;
    clearTimeout(grumble);
    grumble = null;
    if (!lost.hidden) {
      lost.hidden = true;
      soon(0);
    }
  };
  source.onerror = () => {
    grumble ??= setTimeout(() => { lost.hidden = false; }, PATIENCE_MS);
    if (source.readyState === EventSource.CLOSED) {  // refused, not cut off: the browser does not try again by itself
      setTimeout(() => { if (!document.hidden) connect(); }, wait);
      wait = Math.min(wait * 2, 15000);
    }
  };
  for (const type of TYPES) source.addEventListener(type, take);
}

export function goLive() {
  if (!regions().length || !last) return;
  connect();
  let leave = null;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(leave);
    if (document.hidden) {
      leave = setTimeout(() => { source?.close(); source = null; }, 20000);
    } else if (!source) {
      connect();
      soon(0);
    }
  });
  const pulse = Number(document.body.dataset.pulse);
  if (pulse) setInterval(() => { if (document.body.dataset.pulse && !document.hidden && lost.hidden) soon(0); }, pulse * 1000);
  addEventListener("pagehide", () => source?.close());
  addEventListener("pageshow", (event) => { if (event.persisted) { connect(); soon(0); } });
}
