"""One member of a group in a process of its own, to be killed: prints what it is given and what it reads, a JSON a
line.

`python -m tests.end_to_end.member BOOTSTRAP GROUP TOPIC`; SIGTERM makes it leave the group.
"""

import json
import signal
import sys
from typing import Any

from moldau.client.consuming.consumer import Consumer
from moldau.names import TopicPartition


def say(event: str, what: Any) -> None:
    print(json.dumps([event, what]), flush=True)


def main(bootstrap: str, group: str, topic: str) -> None:
    asked = []
    signal.signal(signal.SIGTERM, lambda *_: asked.append(True))

    def given(event: str, partitions: list[TopicPartition]) -> None:
        say(event, [tp.partition for tp in partitions])

    settings = {"session_timeout_ms": 6000, "heartbeat_interval_ms": 300, "auto_commit_interval_ms": 300}
    with Consumer(bootstrap, group_id=group, auto_offset_reset="earliest", **settings) as consumer:
        consumer.subscribe(
            [topic],
            on_assigned=lambda partitions: given("assigned", partitions),
            on_revoked=lambda partitions: given("revoked", partitions),
        )
        while not asked:
            for record in consumer.poll(200):
                say("read", [record.partition, record.offset])


if __name__ == "__main__":
    main(*sys.argv[1:])
