"""Draws the figures that `python -m benchmarks.clients --json FILE` wrote, as docs/performance-clients.md shows them:
a bar for each way, and a line where the way of ours should be at most.

usage: python -m benchmarks.clients.plot OUT.svg FILE...
"""

import json
import sys
from pathlib import Path

from benchmarks.drawing import Bars, page

SENT = {
    "moldau send_table": "table", "confluent produce": "confluent", "moldau send, on_delivery": "callback",
    "confluent produce, on_delivery": "c. callback",
}  # fmt: skip
READ = {
    "moldau tables": "tables", "moldau read_table": "read_table", "moldau poll(5000)": "poll",
    "confluent consume(5000), tuned": "confluent",
}  # fmt: skip
TIMES_LESS = {"none": 4, "lz4": 3, "zstd": 2}
"""As many times less processor time than confluent's best way columns should take; records no more than its like."""


def drawings(found: list[dict[str, object]]) -> list[Bars]:
    """A drawing for each codec, of records without keys."""
    cost = {(str(one["codec"]), str(one["way"])): float(str(one["cpu_us"])) for one in found if one["keyed"] == "plain"}
    made = []
    for what, ways in (("sent", SENT), ("read", READ)):
        for codec, times in TIMES_LESS.items():
            bars = {name: cost[codec, way] for way, name in ways.items() if (codec, way) in cost}
            targets = {"callback": bars.get("c. callback"), "poll": bars.get("confluent")}
            targets |= dict.fromkeys(("table", "tables"), bars["confluent"] / times if "confluent" in bars else None)
            lines = {name: line for name, line in targets.items() if line is not None and name in bars}
            if bars:
                made.append(Bars(f"us per record {what}, {codec}, without keys", bars, lines))
    return made


def main() -> int:
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    found = [one for file in sys.argv[2:] for one in json.loads(Path(file).read_text())]
    Path(sys.argv[1]).write_text(page(drawings(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
