"""`python -m tests.clients.cluster_tools`: what Kafka's tools print of our three brokers beside what they printed of
Kafka's; `--write` records the latter, with mvn and java."""

import argparse
import datetime
import json
import tempfile
from pathlib import Path

from tests.clients.cluster_tools import kafkas, ours
from tests.clients.cluster_tools.recorded import RECORDING, differences, recorded
from tests.clients.cluster_tools.script import play
from tests.clients.kafka_tools import Tools

COMMAND = "python -m tests.clients.cluster_tools --write"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="ask Kafka, and record it")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, Tools(Path(name), kafkas.VERSION) as tools:
        if asked.write:
            with kafkas.running() as brokers:
                found = dict(play(brokers, tools, Path(name)))
            header = {"kafka": kafkas.VERSION, "date": f"{datetime.date.today()}", "command": COMMAND}
            lines = [json.dumps(header), *(json.dumps([step, lines]) for step, lines in found.items())]
            RECORDING.write_text("\n".join(lines) + "\n")
        with ours.running(Path(name)) as brokers:
            for difference in differences(recorded(), play(brokers, tools, Path(name))):
                print(difference)


if __name__ == "__main__":
    main()
