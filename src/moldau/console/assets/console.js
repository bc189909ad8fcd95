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
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
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

  // A search: rows come from the server as HTML that is escaped there.
  const ROWS_KEPT = 1000;
  function search(results) {
    const body = results.querySelector("tbody"), line = byId("progress"), stop = byId("stop");
    const isTail = "tail" in results.dataset;
    const began = performance.now();
    let found = 0, shownAt = 0;
    const source = new EventSource(results.dataset.source);
    const number = (value) => value.toLocaleString("en-US");
    function say(news, ending, hasEnded = false) {
      const seconds = ((performance.now() - began) / 1000).toFixed(1);
      const seen = isTail ? `${number(news.scanned)} new records seen` : `scanned ${number(news.scanned)} of ${number(news.total)}`;
      line.replaceChildren();
      if (!hasEnded && !isTail && news.total) {
        const bar = document.createElement("progress");
        bar.max = news.total; bar.value = news.scanned;
        line.append(bar);
      }
      line.append(`${number(news.found)} found, ${seen}${isTail ? "" : ` in ${seconds} s`}${hasEnded ? `. ${ending}` : " …"}`);
    }
    let latest = { scanned: 0, total: 0, found: 0 };
    function end(ending) {
      source.close();
      stop.hidden = true;
      say(latest, ending, true);
      if (!found && !isTail) {
        byId("nothing").hidden = false;
        byId("nothing").querySelector(latest.total ? "[data-for-some]" : "[data-for-all]").hidden = false;
      }
      results.dataset.state = "ended";
    }
    source.addEventListener("rows", (event) => {
      const part = document.createElement("template");
      part.innerHTML = `<table><tbody>${event.data}</tbody></table>`;
      const rows = [...part.content.querySelectorAll("tr")];
      found += rows.length;
      byId("found").hidden = false;
      if (isTail) body.prepend(...rows); else body.append(...rows);
      while (body.rows.length > ROWS_KEPT) body.rows[isTail ? body.rows.length - 1 : 0].remove();
    });
    source.addEventListener("progress", (event) => {
      latest = JSON.parse(event.data);
      if (performance.now() - shownAt > 100 || !shownAt) { shownAt = performance.now(); say(latest, ""); }
    });
    source.addEventListener("done", (event) => {
      latest = JSON.parse(event.data);
      end({ end: "", limit: "That is as many as were asked for.", error: latest.sentence }[latest.why] || "");
    });
    source.addEventListener("error", () => {
      if (source.readyState === EventSource.CLOSED) end("The console refused or went away: load the page again.");
    });
    stop.hidden = false;
    stop.addEventListener("click", () => end("Stopped."));
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !stop.hidden && !byId("record").open && !isField(event.target)) end("Stopped.");
    });
    addEventListener("pagehide", () => source.close());
  }
  async function openRecord(event) {
    const link = event.target.closest?.("a.record"), dialog = byId("record");
    if (!link || !dialog || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    const answer = await fetch(link.href, { headers: { "HX-Request": "true" } });
    dialog.innerHTML = await answer.text();
    const close = document.createElement("button");
    close.textContent = "Close";
    close.addEventListener("click", () => dialog.close());
    dialog.append(close);
    dialog.addEventListener("close", () => link.focus(), { once: true });
    dialog.showModal();
  }
  document.addEventListener("click", openRecord);
  const results = byId("results");
  if (results) search(results);

  document.addEventListener("keydown", keyPressed);
  document.addEventListener("input", filterRows);
  byId("theme")?.addEventListener("click", switchTheme);
  byId("keys")?.addEventListener("click", () => byId("help").showModal());
})();
