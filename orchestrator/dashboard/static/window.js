// A window of time: two sliders over months that fill in the two days of their form. Without script the days are enough.

const month = (first, offset) => {
  const [year, start] = first.split("-").map(Number);
  return new Date(Date.UTC(year, start - 1 + offset, 1));
};
const day = (moment) => moment.toISOString().slice(0, 10);

export function readyWindows() {
  for (const form of document.querySelectorAll("form[data-window]")) {
    form.querySelector("select")?.addEventListener("change", () => form.requestSubmit());
    const figure = form.querySelector(".window");
    if (!figure) continue;
    const [low, high] = figure.querySelectorAll("input[type=range]");
    const [after, before] = form.querySelectorAll("input[type=date]");
    const told = figure.querySelector("output");
    figure.querySelector(".slider").hidden = false;
    const show = (moved) => {
      if (Number(low.value) > Number(high.value)) (moved === low ? high : low).value = moved.value;
      const [from, to] = [Number(low.value), Number(high.value)];
      after.value = from === 0 ? "" : day(month(figure.dataset.first, from));
      before.value = to === Number(high.max) ? "" : day(new Date(month(figure.dataset.first, to + 1) - 1));
      told.textContent = `${day(month(figure.dataset.first, from)).slice(0, 7)} to ${day(month(figure.dataset.first, to)).slice(0, 7)}`;
      figure.querySelectorAll("rect").forEach((bar, index) => bar.setAttribute("class", from <= index && index <= to ? "in" : "out"));
    };
    for (const input of [low, high]) {
      input.addEventListener("input", () => show(input));
      input.addEventListener("change", () => form.requestSubmit());
    }
  }
}
