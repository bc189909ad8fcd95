"""confluent-kafka reads a topic from its rack: prints the values, and which broker its statistics say they came from.

Arguments: the addresses, the topic, the rack, and how many records to read. Prints JSON.
"""

import json
import sys
import time

from confluent_kafka import Consumer, TopicPartition

SECONDS = 60


def main() -> None:
    servers, topic, rack, count = sys.argv[1:]
    brokers: list[int] = []

    def noted(text: str) -> None:
        brokers.append(json.loads(text)["topics"][topic]["partitions"]["0"]["broker"])

    settings = {"bootstrap.servers": servers, "client.rack": rack, "group.id": "near", "enable.auto.commit": False}
    consumer = Consumer({**settings, "stats_cb": noted, "statistics.interval.ms": 50})
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[str] = []
    end_s = time.monotonic() + SECONDS
    while len(values) < int(count) and time.monotonic() < end_s:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            values.append(message.value().decode())
    brokers.clear()
    while not brokers and time.monotonic() < end_s:
        consumer.poll(0.1)
    print(json.dumps({"values": values, "broker": brokers[-1] if brokers else None}))
    consumer.close()


main()
