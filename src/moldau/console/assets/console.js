// The console's own script: keyboard, theme, filters of long tables. Pages work without it, except searches and plots.
"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const isField = (one) => one && (one.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(one.tagName));

  function isDark() {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }
  function switchTheme() {
    const theme = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    document.cookie = `moldau-theme=${theme}; path=/; max-age=31536000; samesite=lax`;
    document.dispatchEvent(new Event("moldau:theme"));
  }

  // The main link of each row of the page's tables, in order.
  const rowLinks = () => [...document.querySelectorAll("table[data-rows] tbody tr:not([hidden]) a:first-of-type")]
    .filter((link) => link.closest("tr").querySelector("a") === link);
  function step(by) {
    const links = rowLinks();
    if (!links.length) return;
    const row = document.activeElement?.closest?.("tr");
    const at = links.findIndex((link) => link.closest("tr") === row);
    const next = links[at < 0 ? (by > 0 ? 0 : links.length - 1) : Math.min(Math.max(at + by, 0), links.length - 1)];
    next.focus();
    next.scrollIntoView({ block: "nearest" });
  }

  let waitsForPage = 0;
  function follow(selector) {
    const link = document.querySelector(selector);
    if (link) link.click();
    return Boolean(link);
  }
  function keyPressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || byId("help")?.open) return;
    if (event.key === "Escape" && isField(event.target)) { event.target.blur(); return; }
    if (isField(event.target)) return;
    if (waitsForPage && performance.now() - waitsForPage < 1500) {
      waitsForPage = 0;
      if (follow(`nav [data-key="${CSS.escape(event.key)}"]`)) { event.preventDefault(); return; }
    }
    const does = {
      "/": () => { const field = document.querySelector("main input[type=search]"); field?.focus(); field?.select(); },
      "?": () => byId("help")?.showModal(),
      g: () => { waitsForPage = performance.now(); },
      j: () => step(1), k: () => step(-1),
      n: () => follow("a[rel=next]"), p: () => follow("a[rel=prev]"),
      d: switchTheme,
    }[event.key];
    if (does) { event.preventDefault(); does(); }
  }

  function filterRows(event) {
    const kind = event.target.dataset?.filters;
    if (!kind) return;
    const wanted = event.target.value.trim().toLowerCase();
    for (const row of document.querySelectorAll(`table.${CSS.escape(kind)} tbody tr`)) {
      row.hidden = !row.dataset.text.toLowerCase().includes(wanted);
    }
  }

  document.addEventListener("keydown", keyPressed);
  document.addEventListener("input", filterRows);
  byId("theme")?.addEventListener("click", switchTheme);
  byId("keys")?.addEventListener("click", () => byId("help").showModal());
})();
