// Loads the browser code of others, once and only on a page that uses it. The server puts it beside this file
// (scripts/browser-packages); where it is missing, the promise is refused and the page keeps what the server drew.

const loaded = new Map();

function element(name, values) {
  return new Promise((resolve, reject) => {
    const it = Object.assign(document.createElement(name), values);
    it.onload = () => resolve();
    it.onerror = () => reject(new Error(`not installed: ${values.src ?? values.href}`));
    document.head.append(it);
  });
}

function once(name, script, style) {
  if (!loaded.has(name)) {
    const here = (file) => new URL(`./vendor/${file}`, import.meta.url).href;
    loaded.set(name, Promise.all([element("script", { src: here(script) }), element("link", { rel: "stylesheet", href: here(style) })]));
  }
  return loaded.get(name);
}

export const charts = async () => { await once("uplot", "uplot/uPlot.iife.min.js", "uplot/uPlot.min.css"); return window.uPlot; };
export const mathematics = async () => { await once("katex", "katex/katex.min.js", "katex/katex.min.css"); return window.katex; };
