// Starts what the pages need in the browser. Every page works without it; with it they are live.

import { readyForms } from "./forms.js";
import { readyPalette } from "./palette.js";
import { goLive } from "./live.js";
import { keepTimes } from "./times.js";
import { readyWindows } from "./window.js";
import { readyUploads } from "./uploads.js";

function readyTheme() {
  const button = document.getElementById("theme");
  if (!button) return;
  button.hidden = false;
  button.addEventListener("click", () => {
    const html = document.documentElement;
    const dark = html.dataset.theme ? html.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    html.dataset.theme = dark ? "light" : "dark";
    try { localStorage.setItem("benchyard-theme", html.dataset.theme); } catch { /* then it lasts for this page */ }
  });
}

function readyMenus() {
  const open = () => document.querySelectorAll("details.menu[open]");
  document.addEventListener("click", (event) => { for (const menu of open()) if (!menu.contains(event.target)) menu.open = false; });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const menu of open()) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
  });
}

keepTimes();
readyTheme();
readyMenus();
readyPalette();
readyForms();
readyWindows();
readyUploads();
goLive();

// What only some pages need is fetched there only.
const needed = (place, file, start) => { if (document.querySelector(place)) import(file).then((module) => module[start]()); };
needed("form[data-import]", "./imports.js", "readyImports");
needed("#labelling", "./labelling.js", "readyLabelling");
needed("#deciding", "./deciding.js", "readyDecisions");
needed("[data-job], [data-part]", "./jobs.js", "followJobs");
needed("#run-filters", "./run_table.js", "readyRunTable");
needed("#state[data-status]", "./cockpit.js", "readyCockpit");
needed("[data-item]", "./item.js", "readyItem");
needed("[data-math]", "./math.js", "readyMathematics");
needed('[data-chart="schedule"]', "./drift_chart.js", "readyDriftChart");
needed("[data-figure]", "./figures.js", "readyFigures");
