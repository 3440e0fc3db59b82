// Runs before the page is drawn: the reader's choice of light or dark, if there is one.
try {
  const chosen = localStorage.getItem("benchyard-theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
} catch {
  // Storage may be forbidden; the system's setting is used.
}
