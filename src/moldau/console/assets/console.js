// The console's own script: keyboard, theme, time zone, filters of long tables, searches. Pages work without it, except
// searches and plots.
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

  // What this browser keeps; without storage it lasts as long as the page.
  function stored(name) { try { return localStorage.getItem(name); } catch { return null; } }
  function keep(name, value) { try { localStorage.setItem(name, value); } catch { /* storage is off, or full */ } }

  // Times are in UTC in the HTML, and those of the browser's zone if the user wants that.
  let isLocal = stored("moldau-zone") === "local";
  const LAST_MS = Date.UTC(9999, 11, 30);
  const digits = (number, count) => String(number).padStart(count, "0");
  function timeText(ms) {
    const at = new Date(ms);
    if (!isLocal) return at.toISOString().replace("T", " ").slice(0, -1);
    const day = `${digits(at.getFullYear(), 4)}-${digits(at.getMonth() + 1, 2)}-${digits(at.getDate(), 2)}`;
    const time = [at.getHours(), at.getMinutes(), at.getSeconds()].map((part) => digits(part, 2)).join(":");
    return `${day} ${time}.${digits(at.getMilliseconds(), 3)}`;
  }
  const clock = (ms) => timeText(ms).slice(11, 19);
  function showTimes(root) {
    const show = (one, text) => { if (one.textContent !== text) one.textContent = text; };
    for (const one of root.querySelectorAll("time[data-ms]")) {
      const ms = Number(one.dataset.ms); // no calendar has those that are later: they stay numbers
      if (ms <= LAST_MS) show(one, timeText(ms));
    }
    document.documentElement.dataset.times = isLocal ? "local" : "utc";
    const zone = isLocal ? Intl.DateTimeFormat().resolvedOptions().timeZone || "local" : "UTC";
    for (const one of root.querySelectorAll("[data-zone]")) show(one, zone);
  }
  // Parts that are loaded again have UTC from the server.
  const loaded = new MutationObserver(() => { if (isLocal) showTimes(document); });
  for (const part of document.querySelectorAll("[hx-get]")) {
    loaded.observe(part, { childList: true, characterData: true, subtree: true });
  }
  function switchZone() {
    isLocal = !isLocal;
    keep("moldau-zone", isLocal ? "local" : "utc");
    showTimes(document);
    document.dispatchEvent(new Event("moldau:zone"));
  }
  // The server takes a time without a zone for UTC: one that was typed in the user's zone is sent with its zone.
  const WITHOUT_ZONE = /^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?$/;
  function addZones(form) {
    if (!isLocal) return;
    for (const field of form.querySelectorAll("input[data-time]")) {
      const text = field.value.trim();
      if (!WITHOUT_ZONE.test(text)) continue;
      const at = new Date(text.length === 10 ? `${text}T00:00` : text.replace(" ", "T"));
      if (!Number.isNaN(at.getTime())) field.value = at.toISOString();
    }
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
    if (waitsForPage && event.timeStamp - waitsForPage < 1500) {
      waitsForPage = 0;
      if (follow(`nav [data-key="${CSS.escape(event.key)}"]`)) { event.preventDefault(); return; }
    }
    const does = {
      "/": () => { const field = document.querySelector("main input[type=search]"); field?.focus(); field?.select(); },
      "?": () => byId("help")?.showModal(),
      g: () => { waitsForPage = event.timeStamp; },
      j: () => step(1), k: () => step(-1),
      n: () => follow("a[rel=next]"), p: () => follow("a[rel=prev]"),
      d: switchTheme, z: switchZone,
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
  const ROWS_KEPT = 1000, DAMAGED_SHOWN = 20;
  function search(results) {
    const body = results.querySelector("tbody"), line = byId("progress"), stop = byId("stop");
    const isTail = "tail" in results.dataset;
    const began = performance.now();
    let found = 0, shownAt = 0, source = null, pausedAt = 0, brokeAt = 0, seenBefore = 0, gaps = "";
    let latest = { scanned: 0, total: 0, found: 0 };
    const damaged = new Map(); // a stream that broke may tell some of it again
    const number = (value) => value.toLocaleString("en-US");
    function say(ending, hasEnded = false) {
      const seconds = ((performance.now() - began) / 1000).toFixed(1);
      const seen = isTail ? `${number(seenBefore + latest.scanned)} new records seen`
        : `scanned ${number(latest.scanned)} of ${number(latest.total)}`;
      line.replaceChildren();
      if (!hasEnded && !isTail && latest.total) {
        const bar = document.createElement("progress");
        bar.max = latest.total; bar.value = latest.scanned;
        line.append(bar);
      }
      const count = number(isTail ? found : latest.found);
      const lost = [...damaged.values()].reduce((sum, offsets) => sum + offsets, 0);
      const unread = lost ? `, ${number(lost)} of them damaged` : "";
      line.append(`${count} found, ${seen}${unread}${isTail ? "" : ` in ${seconds} s`}${hasEnded ? `. ${ending}` : " …"}${gaps}`);
    }
    function end(ending, isComplete = false) {
      source?.close();
      stop.hidden = true;
      results.dataset.state = "ended";
      say(ending, true);
      if (!found && isComplete && !isTail) {
        const isEmpty = !latest.total && !damaged.size; // partitions that cannot be read do not count
        byId("nothing").hidden = false;
        byId("nothing").querySelector(isEmpty ? "[data-for-all]" : "[data-for-some]").hidden = false;
      }
    }
    function addRows(event) {
      const part = document.createElement("template");
      part.innerHTML = `<table><tbody>${event.data}</tbody></table>`;
      showTimes(part.content);
      const rows = [...part.content.querySelectorAll("tr")];
      found += rows.length;
      byId("found").hidden = false;
      if (isTail) body.prepend(...rows); else body.append(...rows);
      while (body.rows.length > ROWS_KEPT) body.rows[isTail ? body.rows.length - 1 : 0].remove();
    }
    function addDamaged(event) {
      const { sentence, offsets } = JSON.parse(event.data);
      if (!damaged.has(sentence) && damaged.size <= DAMAGED_SHOWN) {
        const item = document.createElement("li");
        item.textContent = damaged.size < DAMAGED_SHOWN ? sentence : "… and more";
        byId("damaged").querySelector("ul").append(item);
        byId("damaged").hidden = false;
      }
      damaged.set(sentence, offsets);
    }
    function connect() {
      source = new EventSource(results.dataset.source);
      source.addEventListener("rows", addRows);
      source.addEventListener("damaged", addDamaged);
      source.addEventListener("progress", (event) => {
        const news = JSON.parse(event.data);
        if (isTail && news.scanned < latest.scanned) seenBefore += latest.scanned; // a new stream counts from 0
        latest = news;
        if (performance.now() - shownAt > 100 || !shownAt) { shownAt = performance.now(); say(""); }
      });
      source.addEventListener("done", (event) => {
        latest = JSON.parse(event.data);
        const ending = { end: "", limit: "That is as many as were asked for.", error: latest.sentence }[latest.why];
        end(ending || "", latest.why === "end");
      });
      source.addEventListener("error", () => {
        if (source.readyState === EventSource.CLOSED) end("The console refused or went away: load the page again.");
        else brokeAt ||= Date.now();
      });
      source.addEventListener("open", () => {
        if (brokeAt && isTail) miss(brokeAt, "the connection broke");
        brokeAt = 0;
      });
    }
    function miss(since, why) {
      gaps = `; records from ${clock(since)} to ${clock(Date.now())} are not shown: ${why}`;
      say("");
    }
    // A browser opens six connections to one address, and each stream holds one: a hidden tab gives its own back.
    function pause() {
      if (results.dataset.state === "ended") return;
      if (document.hidden) { source.close(); pausedAt = Date.now(); return; }
      if (!pausedAt) return;
      miss(pausedAt, "this tab was hidden");
      pausedAt = brokeAt = 0;
      connect();
    }
    if (isTail) document.addEventListener("visibilitychange", pause);
    if (isTail && document.hidden) pausedAt = Date.now(); else connect();
    stop.hidden = false;
    stop.addEventListener("click", () => end("Stopped."));
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !stop.hidden && !byId("record").open && !isField(event.target)) end("Stopped.");
    });
    addEventListener("pagehide", () => source?.close());
  }
  async function openRecord(event) {
    const link = event.target.closest?.("a.record"), dialog = byId("record");
    if (!link || !dialog || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    try {
      const answer = await fetch(link.href, { headers: { "HX-Request": "true", "X-By-Hand": "true" } });
      const elsewhere = answer.headers.get("hx-redirect");
      if (elsewhere) { location.href = elsewhere; return; }
      dialog.innerHTML = await answer.text();
    } catch { dialog.textContent = "The console does not answer."; }
    showTimes(dialog);
    const close = document.createElement("button");
    close.textContent = "Close";
    close.addEventListener("click", () => dialog.close());
    dialog.append(close);
    dialog.addEventListener("close", () => link.focus(), { once: true });
    dialog.showModal();
  }
  // Searches that the user has named, by topic: in this browser only.
  const SAVED = "moldau-searches", SAVED_MAX = 200;
  function savedSearches() {
    let all = [];
    try { all = JSON.parse(stored(SAVED) ?? "[]"); } catch { /* not ours */ }
    const isSearch = (one) => Array.isArray(one) && one.length === 3 && one.every((part) => typeof part === "string");
    return Array.isArray(all) ? all.filter(isSearch) : [];
  }
  function saved(box) {
    const form = byId("search-form"), list = box.querySelector("select"), forget = box.querySelector("[data-forget]");
    const topic = box.dataset.topic;
    const isOther = (name) => ([itsTopic, itsName]) => itsTopic !== topic || itsName !== name;
    function show() {
      const searches = savedSearches().filter(([itsTopic]) => itsTopic === topic);
      const option = (text, query) => new Option(text, query, false, query !== "" && query === location.search.slice(1));
      list.replaceChildren(option(searches.length ? "Saved searches" : "No saved searches", ""),
        ...searches.map(([, name, query]) => option(name, query)));
      forget.hidden = !list.value;
    }
    function query() {
      addZones(form);
      return new URLSearchParams([...new FormData(form)].filter(([, value]) => value)).toString();
    }
    list.addEventListener("change", () => { if (list.value) location.search = list.value; });
    box.querySelector("[data-save]").addEventListener("click", () => {
      const name = prompt("Name of this search:")?.trim().slice(0, 80);
      if (!name) return;
      keep(SAVED, JSON.stringify([...savedSearches().filter(isOther(name)), [topic, name, query()]].slice(-SAVED_MAX)));
      location.search = query();
    });
    forget.addEventListener("click", () => {
      keep(SAVED, JSON.stringify(savedSearches().filter(isOther(list.selectedOptions[0].text))));
      show();
    });
    box.hidden = false;
    show();
  }
  if (byId("saved")) saved(byId("saved"));

  // On a narrow screen the page that is open may be outside of what is seen of the side bar and the tabs.
  for (const here of document.querySelectorAll("nav [aria-current]")) {
    here.parentElement.scrollLeft = here.offsetLeft - here.parentElement.offsetLeft - 20;
  }

  // Parts that cannot be loaded again leave old numbers on the page: it says so until they can.
  document.addEventListener("htmx:error", () => {
    if (byId("stale")) return;
    const note = document.createElement("p");
    note.id = "stale";
    note.className = "note warn";
    note.setAttribute("role", "alert");
    note.textContent = `The console does not answer: this page is as it was at ${clock(Date.now())}.`;
    byId("content").prepend(note);
  });
  document.addEventListener("htmx:after:request", () => byId("stale")?.remove());

  document.addEventListener("click", openRecord);
  document.addEventListener("submit", (event) => addZones(event.target));
  showTimes(document);
  const results = byId("results");
  if (results) search(results);

  document.addEventListener("keydown", keyPressed);
  document.addEventListener("input", filterRows);
  byId("theme")?.addEventListener("click", switchTheme);
  byId("zone")?.addEventListener("click", switchZone);
  byId("keys")?.addEventListener("click", () => byId("help").showModal());
})();
