"""`moldau pipeline demo`: the whole journey on real data, from a fresh broker to a report.

`run` goes through the steps: `flights` reads the source, `live` replays it and loads meanwhile (`timeline` has the
times), `streams` asks questions with Structured Streaming, `audit` counts the records in every place, `inventory` says
what is where, `report` (with `findings`, `queries`) writes the page. The demo uses the
pipeline and the client as any user could; nothing imports it except the command.
"""
