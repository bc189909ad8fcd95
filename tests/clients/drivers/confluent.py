"""confluent-kafka does what it is told."""

import sys
import time
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec
from jsonlines import serve

SECONDS = 30


class Driver:
    def __init__(self, bootstrap: str):
        self.servers = {"bootstrap.servers": bootstrap}
        self.admin = AdminClient(self.servers)
        self.producers: dict[str | None, Producer] = {}
        self.consumer: Consumer | None = None

    def produce(self, topic: str, messages: list[dict[str, Any]], compression: str | None) -> int:
        if compression not in self.producers:
            settings = {"enable.idempotence": True, "compression.type": compression or "none", "linger.ms": 5}
            self.producers[compression] = Producer({**self.servers, **settings})
        producer, failures = self.producers[compression], []
        for message in messages:
            producer.produce(
                topic,
                message["value"],
                message["key"],
                headers=message["headers"],
                on_delivery=lambda error, _: failures.append(str(error)) if error else None,
            )
        left = producer.flush(SECONDS)
        if left or failures:
            raise RuntimeError(f"{left} not delivered, {failures[:3]}")
        return len(messages)

    def subscribe(self, topic: str, group: str) -> None:
        settings = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        self.consumer = Consumer({**self.servers, **settings})
        self.consumer.subscribe([topic])

    def take(self, count: int, seconds: float) -> list[dict[str, Any]]:
        taken: list[dict[str, Any]] = []
        until = time.monotonic() + seconds
        while len(taken) < count and time.monotonic() < until:
            for message in self.consumer.consume(count - len(taken), 0.2):
                if message.error():
                    print(message.error(), file=sys.stderr)
                    continue
                taken.append(
                    {
                        "key": message.key().decode(),
                        "value": message.value().decode(),
                        "headers": {name: value.decode() for name, value in message.headers() or []},
                        "partition": message.partition(),
                        "offset": message.offset(),
                    }
                )
        return taken

    def commit(self) -> None:
        self.consumer.commit(asynchronous=False)

    def unsubscribe(self) -> None:
        self.consumer.close()

    def create_topic(self, topic: str, partitions: int) -> None:
        self.admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(SECONDS)

    def delete_topic(self, topic: str) -> None:
        self.admin.delete_topics([topic])[topic].result(SECONDS)

    def topics(self) -> list[str]:
        return sorted(self.admin.list_topics(timeout=SECONDS).topics)

    def partitions(self, topic: str) -> int:
        return len(self.admin.list_topics(topic, SECONDS).topics[topic].partitions)

    def groups(self) -> list[str]:
        return [group.group_id for group in self.admin.list_consumer_groups().result(SECONDS).valid]

    def members(self, group: str) -> int:
        return len(self.admin.describe_consumer_groups([group])[group].result(SECONDS).members)

    def committed(self, group: str, topic: str) -> int:
        asked = self.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
        found = asked[group].result(SECONDS).topic_partitions
        return sum(position.offset for position in found if position.topic == topic)

    def end_offsets(self, topic: str) -> int:
        asked = {TopicPartition(topic, number): OffsetSpec.latest() for number in range(self.partitions(topic))}
        return sum(found.result(SECONDS).offset for found in self.admin.list_offsets(asked).values())

    def close(self) -> None:
        pass


serve(Driver(sys.argv[1]))
