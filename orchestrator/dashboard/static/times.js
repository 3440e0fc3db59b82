// Times are sent in UTC; here they become the reader's own, short where they are recent.

const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "short" });
const whole = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const brief = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const thisYear = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "numeric", minute: "2-digit" });
const STEPS = [[86400, "day"], [3600, "hour"], [60, "minute"], [1, "second"]];

function words(moment) {
  const seconds = (moment - Date.now()) / 1000;
  if (Math.abs(seconds) > 6 * 86400) return (moment.getFullYear() === new Date().getFullYear() ? thisYear : brief).format(moment);
  if (Math.abs(seconds) < 5) return "just now";
  const [step, unit] = STEPS.find(([size]) => Math.abs(seconds) >= size);
  return relative.format(Math.trunc(seconds / step), unit);
}

export function writeTimes(within) {
  for (const element of within.querySelectorAll("time[datetime]")) {
    const moment = new Date(element.getAttribute("datetime"));
    if (Number.isNaN(moment.getTime())) continue;
    const text = element.dataset.whole === undefined ? words(moment) : whole.format(moment);
    if (element.textContent !== text) element.textContent = text;
    const title = `${whole.format(moment)} (${moment.toISOString().slice(0, 19).replace("T", " ")} UTC)`;
    if (element.title !== title) element.title = title;
  }
}

export function keepTimes() {
  writeTimes(document);
  setInterval(() => { if (!document.hidden) writeTimes(document); }, 10000);
}
