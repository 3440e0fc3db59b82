// Starts what the pages need in the browser. Every page works without it; with it they are live.

import { readyDecisions } from "./deciding.js";
import { readyForms } from "./forms.js";
import { followJobs } from "./jobs.js";
import { readyLabelling } from "./labelling.js";
import { goLive } from "./live.js";
import { keepTimes } from "./times.js";
import { readyWindows } from "./window.js";
import { readyImports } from "./imports.js";
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

keepTimes();
readyTheme();
readyForms();
readyWindows();
readyUploads();
readyImports();
readyLabelling();
readyDecisions();
followJobs();
goLive();
