// Plots of what a page asks for again and again: rates from the differences of counts, or values as they are.
"use strict";
(() => {
  const COLOURS = ["--accent", "--warn", "--good", "--bad", "--muted", "#9a78d6", "#c9689a", "#7f9a3f"];
  const POINTS = 150, EACH_MS = 2000, HEIGHT = 150;
  const colour = (name) => (name.startsWith("#") ? name
    : getComputedStyle(document.documentElement).getPropertyValue(name).trim());

  function short(value) {
    const units = ["", "k", "M", "G", "T"];
    let at = 0;
    while (Math.abs(value) >= 1000 && at < units.length - 1) { value /= 1000; at += 1; }
    return (Math.abs(value) >= 100 || Number.isInteger(value) ? value.toFixed(0) : value.toFixed(1)) + units[at];
  }

  function clock(seconds) {
    const at = new Date(seconds * 1000), isLocal = document.documentElement.dataset.times === "local";
    const parts = isLocal ? [at.getHours(), at.getMinutes(), at.getSeconds()]
      : [at.getUTCHours(), at.getUTCMinutes(), at.getUTCSeconds()];
    return parts.map((part) => String(part).padStart(2, "0")).join(":");
  }

  function draw(box, names, data) {
    box.plot?.destroy();
    const axis = { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui" };
    box.plot = new uPlot({
      width: Math.max(box.clientWidth, 200), height: HEIGHT,
      legend: { show: names.length > 1, live: false },
      cursor: { y: false },
      axes: [{ ...axis, values: (_, ticks) => ticks.map(clock) }, { ...axis, size: 52, values: (_, ticks) => ticks.map(short) }],
      scales: { x: { range: (_, low, high) => [high - (POINTS * EACH_MS) / 1000, high] }, y: { range: (_, low, high) => [0, Math.max(high * 1.15, 1)] } },
      series: [{}, ...names.map((name, at) => ({
        label: name, stroke: colour(COLOURS[at % COLOURS.length]), width: 1.75, points: { show: false },
        fill: names.length === 1 ? colour("--accent-soft") : undefined,
      }))],
    }, data, box);
  }

  function watch(section) {
    const isRate = "rates" in section.dataset;
    const boxes = [...section.querySelectorAll("[data-of]")];
    const times = [];
    const values = new Map();
    let before = null;
    // `data-of` names one series, or with `*` at its end all that begin so.
    const prefix = (box) => (box.dataset.of.endsWith("*") ? box.dataset.of.slice(0, -1) : "");
    const namesFor = (box) => (box.dataset.of.endsWith("*")
      ? [...values.keys()].filter((name) => name.startsWith(prefix(box))) : [box.dataset.of]);
    function note(news, now) {
      if (isRate && before === null) { before = { news, now }; return; }
      times.push(now / 1000);
      for (const [name, value] of Object.entries(news)) {
        if (!values.has(name)) values.set(name, new Array(times.length - 1).fill(null));
        const isKnown = typeof value === "number" && (!isRate || typeof before.news[name] === "number");
        const rate = !isKnown ? null : isRate ? Math.max(value - before.news[name], 0) / ((now - before.now) / 1000) : value;
        values.get(name).push(Number.isFinite(rate) ? rate : null);
      }
      for (const series of values.values()) {
        if (series.length < times.length) series.push(null);
        if (series.length > POINTS) series.shift();
      }
      if (times.length > POINTS) times.shift();
      for (const [name, series] of values) if (series.every((one) => one === null)) values.delete(name);
      before = { news, now };
      paint();
    }
    function paint() {
      for (const box of boxes) {
        const names = namesFor(box);
        const data = [times, ...names.map((name) => values.get(name) ?? [])];
        if (box.plot && box.drawn === names.join()) box.plot.setData(data);
        else draw(box, names.map((name) => name.slice(prefix(box).length)), data);
        box.drawn = names.join();
      }
    }
    async function ask() {
      if (document.hidden) return;
      try {
        const answer = await fetch(section.dataset.pulse, { headers: { "HX-Request": "true" } });
        if (answer.ok) note(await answer.json(), Date.now());
      } catch { /* the console went away for a moment: the next turn asks again */ }
    }
    function redraw() {
      if (!times.length) return;
      for (const box of boxes) { box.plot?.destroy(); box.plot = null; }
      paint();
    }
    document.addEventListener("moldau:theme", redraw);
    document.addEventListener("moldau:zone", redraw);
    addEventListener("resize", redraw);
    ask();
    setInterval(ask, EACH_MS);
  }
  document.querySelectorAll("[data-pulse]").forEach(watch);
})();
