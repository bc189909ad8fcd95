"""One of our consumers as a process, `python -m tests.zookeeper.groups.consuming CONNECT GROUP TOPIC SESSION_MS FILE`,
that writes down what it is handed."""

import signal
import sys
from pathlib import Path
from typing import Any

from moldau.client.consuming.consumer import Consumer
from moldau.errors import KafkaError
from tests.zookeeper.groups.written import BACKOFF_MS, COMMIT_MS, Notes, now_s


def main() -> None:
    connect, group, topic, session_ms, file = sys.argv[1:]
    notes, spell = Notes(Path(file)), 0

    def assigned(_: Any) -> None:
        nonlocal spell
        spell += 1

    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    with Consumer(
        zookeeper_connect=connect,
        zookeeper_session_timeout_ms=int(session_ms),
        zookeeper_connection_timeout_ms=60_000,
        group_id=group,
        auto_offset_reset="earliest",
        auto_commit_interval_ms=COMMIT_MS,
        rebalance_backoff_ms=BACKOFF_MS,
        rebalance_retries_max=1_000,
    ) as consumer:
        consumer.subscribe(topic, on_assigned=assigned)
        while True:
            asked_s = now_s()
            try:
                for record in consumer:
                    notes.note(spell, record.partition, record.offset, asked_s, now_s())
                    asked_s = now_s()
            except KafkaError as failure:
                print(failure, file=sys.stderr)


if __name__ == "__main__":
    main()
