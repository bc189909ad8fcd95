"""The reports' style sheet: light and dark by the reader's setting, one column on a phone, light on paper.

A table that is wider than the page has a shadow at each edge behind which it goes on: the shadow stays at the edge of
the region that scrolls, and a piece of the card's colour, which moves with the table, covers it at the table's ends.
"""

LIGHT = """
  --paper: #f6f7f9; --card: #ffffff; --ink: #17202b; --soft: #5a6675; --rule: #dfe3e8; --code: #f0f2f5;
  --c1: #1f6fb5; --c2: #c75f17; --c3: #1d8a6b; --c4: #8a4fb0; --good: #14734f; --bad: #b3261e; --wash: #e5f3ec;
  --alarm: #fbe9e7; --edge: #868f9a;
"""
DARK = """
  --paper: #10151b; --card: #19212a; --ink: #e8edf2; --soft: #9fabb8; --rule: #2c3742; --code: #121920;
  --c1: #5aa9e6; --c2: #f0985a; --c3: #4fc3a1; --c4: #c08ae0; --good: #6fd3a8; --bad: #ff9c92; --wash: #17322a;
  --alarm: #3d1f1d; --edge: #7d8998;
"""
_RULES = """
:root { color-scheme: light dark; LIGHT }
@media (prefers-color-scheme: dark) { :root { DARK } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
  -webkit-text-size-adjust: 100%; }
main, header, footer { max-width: 1080px; margin: 0 auto; padding: 0 24px; }
header { padding-top: 48px; } footer { padding-bottom: 48px; color: var(--soft); font-size: 14px; }
h1 { font-size: clamp(26px, 4.4vw, 40px); line-height: 1.15; letter-spacing: -0.015em; margin: 0 0 10px; text-wrap:
  balance; }
h2 { font-size: 20px; line-height: 1.3; margin: 0 0 4px; letter-spacing: -0.005em; } h3 { font-size: 15px; margin:
  22px 0 8px; }
p { margin: 0 0 14px; max-width: 70ch; } .lead { color: var(--soft); font-size: 17px; }
.kicker { color: var(--c1); font-size: 13px; font-weight: 600; letter-spacing: .06em; text-transform: uppercase;
  margin: 0 0 8px; }
section { background: var(--card); border: 1px solid var(--rule); border-radius: 12px; padding: 24px; margin: 20px
  0; }
section > p { color: var(--soft); }
.verdict { border-radius: 12px; padding: 14px 18px; margin: 22px 0; font-weight: 600; }
.verdict.good { background: var(--wash); color: var(--good); } .verdict.bad { background: var(--alarm); color:
  var(--bad); }
.verdict ul { margin: 8px 0 0; padding-left: 20px; font-weight: 400; }
.figures { display: grid; grid-template-columns: repeat(4, 1fr); gap: 12px; margin: 20px 0; padding: 0; }
.figures div { background: var(--card); border: 1px solid var(--rule); border-radius: 12px; padding: 16px 18px; }
.figures dt { color: var(--soft); font-size: 13px; } .figures dd { margin: 2px 0 0; font-size: 26px; font-weight: 650;
  letter-spacing: -0.02em; font-variant-numeric: tabular-nums; }
.figures small { display: block; color: var(--soft); font-size: 13px; font-weight: 400; letter-spacing: 0; }
svg { display: block; width: 100%; height: auto; margin-top: 8px; } svg.narrow { display: none; }
svg text { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; fill: var(--soft); }
svg text.name { fill: var(--ink); } svg text.note { fill: var(--ink); font-variant-numeric: tabular-nums; }
svg text.tick { text-anchor: middle; } svg text.right { text-anchor: end; } svg .grid { stroke: var(--rule);
  stroke-width: 1; }
svg .line { fill: none; stroke: var(--c1); stroke-width: 2.5; stroke-linejoin: round; stroke-linecap: round; }
svg .thin { stroke-width: 1.2; } svg .area { fill: var(--c1); opacity: .14; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 8px 0 0; padding: 0; font-size:
  14px; }
.key { display: inline-block; width: 12px; height: 12px; border-radius: 3px; margin-right: 7px; vertical-align:
  -1px; }
details { margin-top: 14px; border-top: 1px solid var(--rule); padding-top: 10px; }
summary { cursor: pointer; color: var(--c1); font-size: 14px; font-weight: 600; padding: 4px 0; }
a:focus-visible, summary:focus-visible, .scroll:focus-visible { outline: 2px solid var(--c1);
  outline-offset: 3px; border-radius: 4px; }
.scroll { overflow-x: auto; margin-top: 8px; background:
  linear-gradient(90deg, var(--card) 40%, transparent) 0 0 / 40px 100% no-repeat local,
  linear-gradient(270deg, var(--card) 40%, transparent) 100% 0 / 40px 100% no-repeat local,
  linear-gradient(90deg, var(--edge), transparent) 0 0 / 14px 100% no-repeat scroll,
  linear-gradient(270deg, var(--edge), transparent) 100% 0 / 14px 100% no-repeat scroll; }
table { border-collapse: collapse; width: 100%; font-size: 14px; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); font-size: 13px; padding-bottom: 6px; }
th, td { text-align: right; padding: 6px 10px; border-bottom: 1px solid var(--rule); white-space: nowrap; }
th { font-weight: 600; } thead th { color: var(--soft); font-size: 13px; } th:first-child, td:first-child {
  text-align: left; padding-left: 0; }
tbody th { font-weight: 500; } table.text th, table.text td { text-align: left; }
td.off { color: var(--bad); font-weight: 650; }
code { font: 13px/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; overflow-wrap: anywhere; }
pre { background: var(--code); border-radius: 8px; padding: 12px 14px; margin: 8px 0 14px; }
pre code { display: block; white-space: pre-wrap; user-select: all; }
.scroll + p { margin-top: 14px; }
a { color: var(--c1); text-underline-offset: 3px; }
nav ul { list-style: none; display: flex; flex-wrap: wrap; gap: 4px 20px; margin: 0; padding: 0; font-size: 14px; }
@media (max-width: 700px) {
  main, header, footer { padding-left: 16px; padding-right: 16px; } header { padding-top: 28px; }
  section { padding: 18px 16px; } .figures { grid-template-columns: repeat(2, 1fr); } .figures dd { font-size: 22px; }
  th { white-space: normal; min-width: 9ch; } thead th { min-width: 0; }
  svg.wide { display: none; } svg.narrow { display: block; } th, td { padding: 6px 4px; } table { font-size: 13px; }
}
@media print {
  :root { color-scheme: light; LIGHT }
  body { background: none; font-size: 12px; -webkit-print-color-adjust: exact; print-color-adjust: exact; }
  main, header, footer { max-width: none; padding: 0; } nav { display: none; }
  section { border: 0; padding: 0; margin: 22px 0; } svg, tr, .figures { break-inside: avoid; }
  h2, h3, caption { break-after: avoid; } thead { display: table-header-group; }
  details::details-content { content-visibility: visible; display: block; height: auto; }
  details > * { display: block; }
  .scroll { overflow: visible; background: none; }
  table { font-size: 10px; } th, td { padding: 3px 5px; white-space: normal; overflow-wrap: anywhere; }
}
"""
STYLE = _RULES.replace("LIGHT", LIGHT.strip()).replace("DARK", DARK.strip())
