"""Writes docs/settings.md, the reference of every setting, from the table in `moldau.config`.

usage: settings_page.py            writes the page (`make docs`)
       settings_page.py --check    fails if the page is not what would be written
"""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from moldau.config import CLIENT_METRICS_SETTINGS, GROUP_SETTINGS, RATES, SETTINGS, TOPIC_SETTINGS, Setting

PAGE = Path(__file__).resolve().parents[1] / "docs" / "settings.md"
HEAD = """# Settings

Names, types, defaults and bounds are Kafka's, except that `group.initial.rebalance.delay.ms` is 0 here
([run-a-broker.md](run-a-broker.md#start-and-stop)). `make docs` makes this page from `src/moldau/config`.

- **A broker's settings** are in the properties file of `moldau server start FILE.properties`, or in `--set NAME=VALUE`.
  Those that are not "read at start only" can be changed while the broker runs (`moldau configs alter broker`).
- **A topic's settings** are set when it is created, or changed with `moldau configs alter topic`.
- **Settings of groups, of client metrics, and those that a broker has only while it runs** are set with `moldau configs
  alter` and `moldau client-metrics` only.
- **For one listener** `listener.name.LISTENER.NAME` sets a setting of TLS or SASL, and
  `listener.name.LISTENER.MECHANISM.NAME` one of a SASL mechanism, with the listener and the mechanism in lower case.
- **Kafka's other settings** are ignored with a warning. A broker does not start with a name that neither Kafka nor
  Moldau knows, or with an `authorizer.class.name` that is not Kafka's.
"""


def table(settings: Iterable[Setting]) -> str:
    rows = ["| name | default | meaning | type | allowed |", "|---|---|---|---|---|"]
    for setting in settings:
        sentence = setting.sentence + (" Read at start only." if setting.read_only else "")
        cells = (
            f"`{setting.name}`",
            f"`{default}`" if (default := setting.text(setting.default)) else "",
            sentence,
            setting.kind.name.lower(),
            setting.bounds,
        )
        rows.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return "\n".join(rows) + "\n"


def page(broker: Mapping[str, Setting], topic: Mapping[str, Setting], group: Mapping[str, Setting]) -> str:
    tables = {
        "Brokers": broker,
        "Brokers, only while they run": RATES,
        "Topics": topic,
        "Consumer groups": group,
        "Subscriptions to client metrics": CLIENT_METRICS_SETTINGS,
    }
    parts = [HEAD, *(f"## {title}\n\n{table(settings.values())}" for title, settings in tables.items())]
    return "\n".join(parts)


def main() -> int:
    written = page(SETTINGS, TOPIC_SETTINGS, GROUP_SETTINGS)
    if "--check" not in sys.argv[1:]:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(written)
    elif not PAGE.exists() or PAGE.read_text() != written:
        print("docs/settings.md is not what the settings say: run `make docs`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
