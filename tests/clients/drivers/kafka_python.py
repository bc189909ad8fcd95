"""kafka-python does what it is told; 2.3 and 3 differ in some names of the admin client."""

import sys
import time
from typing import Any

from jsonlines import serve
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewTopic
from kafka.structs import OffsetAndMetadata
from lost_joins import rejoin_if_lost

SECONDS = 30


class Driver:
    def __init__(self, bootstrap: str):
        self.bootstrap = bootstrap
        self.producers: dict[str | None, KafkaProducer] = {}
        self.transactional: dict[str, KafkaProducer] = {}
        self.consumer: KafkaConsumer | None = None
        self.lazy_admin: KafkaAdminClient | None = None

    @property
    def admin(self) -> KafkaAdminClient:
        if self.lazy_admin is None:
            self.lazy_admin = KafkaAdminClient(bootstrap_servers=self.bootstrap)
        return self.lazy_admin

    def produce(self, topic: str, messages: list[dict[str, Any]], compression: str | None) -> int:
        if compression not in self.producers:
            self.producers[compression] = KafkaProducer(
                bootstrap_servers=self.bootstrap, acks="all", compression_type=compression, linger_ms=5
            )
        return self._send(self.producers[compression], topic, messages)

    def _send(self, producer: KafkaProducer, topic: str, messages: list[dict[str, Any]]) -> int:
        sent = [
            producer.send(
                topic,
                message["value"].encode(),
                message["key"].encode(),
                [(name, value.encode()) for name, value in message["headers"].items()],
            )
            for message in messages
        ]
        producer.flush(SECONDS)
        for future in sent:
            future.get(SECONDS)
        return len(sent)

    def begin(self, producer: str, transactional_id: str) -> None:
        if producer not in self.transactional:
            made = KafkaProducer(bootstrap_servers=self.bootstrap, acks="all", transactional_id=transactional_id)
            self.transactional[producer] = made
            made.init_transactions()
        self.transactional[producer].begin_transaction()

    def write(self, producer: str, topic: str, messages: list[dict[str, Any]]) -> int:
        return self._send(self.transactional[producer], topic, messages)

    def send_offsets(self, producer: str, group: str) -> None:
        places = {
            partition: OffsetAndMetadata(self.consumer.position(partition), "", -1)
            for partition in self.consumer.assignment()
        }
        member = self.consumer.group_metadata() if hasattr(self.consumer, "group_metadata") else group
        self.transactional[producer].send_offsets_to_transaction(places, member)

    def end(self, producer: str, commits: bool) -> None:
        end = self.transactional[producer]
        end.commit_transaction() if commits else end.abort_transaction()

    def subscribe(self, topic: str, group: str, isolation: str) -> None:
        self.consumer = KafkaConsumer(
            topic,
            bootstrap_servers=self.bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level=isolation,
        )

    def take(self, count: int, seconds: float) -> list[dict[str, Any]]:
        taken: list[dict[str, Any]] = []
        until = time.monotonic() + seconds
        while len(taken) < count and time.monotonic() < until:
            for records in self.consumer.poll(200, max_records=count - len(taken)).values():
                taken += [
                    {
                        "key": record.key.decode(),
                        "value": record.value.decode(),
                        "headers": {name: value.decode() for name, value in record.headers},
                        "partition": record.partition,
                        "offset": record.offset,
                    }
                    for record in records
                ]
            rejoin_if_lost(self.consumer)
        return taken

    def commit(self) -> None:
        self.consumer.commit()

    def unsubscribe(self) -> None:
        self.consumer.close()

    def create_topic(self, topic: str, partitions: int) -> None:
        self.admin.create_topics([NewTopic(topic, partitions, 1)])

    def delete_topic(self, topic: str) -> None:
        self.admin.delete_topics([topic])

    def configure(self, topic: str, settings: dict[str, str]) -> None:
        self.admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, settings)])

    def topics(self) -> list[str]:
        return self.admin.list_topics()

    def partitions(self, topic: str) -> int:
        return len(self.admin.describe_topics([topic])[0]["partitions"])

    def groups(self) -> list[str]:
        if hasattr(self.admin, "list_groups"):
            return [group["group_id"] for group in self.admin.list_groups()]
        return [name for name, _ in self.admin.list_consumer_groups()]

    def members(self, group: str) -> int:
        if hasattr(self.admin, "describe_groups"):
            return len(self.admin.describe_groups([group])[group]["members"])
        return len(self.admin.describe_consumer_groups([group])[0].members)

    def committed(self, group: str, topic: str) -> int:
        if hasattr(self.admin, "list_group_offsets"):
            found = self.admin.list_group_offsets(group)[group]
        else:
            found = self.admin.list_consumer_group_offsets(group)
        return sum(position.offset for partition, position in found.items() if partition.topic == topic)

    def end_offsets(self, topic: str) -> int:
        partitions = [TopicPartition(topic, number) for number in range(self.partitions(topic))]
        return sum(self.consumer.end_offsets(partitions).values())

    def close(self) -> None:
        for producer in (*self.producers.values(), *self.transactional.values()):
            producer.close(5)


serve(Driver(sys.argv[1]))
