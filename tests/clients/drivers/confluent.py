"""confluent-kafka does what it is told."""

import sys
import threading
import time
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, OffsetSpec
from jsonlines import serve

SECONDS = 30


class Driver:
    def __init__(self, bootstrap: str, group_protocol: str = "classic"):
        self.group_protocol = group_protocol
        self.servers = {"bootstrap.servers": bootstrap}
        self.admin = AdminClient(self.servers)
        self.producers: dict[str | None, Producer] = {}
        self.transactional: dict[str, Producer] = {}
        self.consumer: Consumer | None = None
        self.member: Member | None = None

    def produce(self, topic: str, messages: list[dict[str, Any]], compression: str | None) -> int:
        if compression not in self.producers:
            settings = {"enable.idempotence": True, "compression.type": compression or "none", "linger.ms": 5}
            self.producers[compression] = Producer({**self.servers, **settings})
        return self._send(self.producers[compression], topic, messages)

    def _send(self, producer: Producer, topic: str, messages: list[dict[str, Any]]) -> int:
        failures: list[str] = []
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

    def begin(self, producer: str, transactional_id: str) -> None:
        if producer not in self.transactional:
            self.transactional[producer] = Producer({**self.servers, "transactional.id": transactional_id})
            self.transactional[producer].init_transactions(SECONDS)
        self.transactional[producer].begin_transaction()

    def write(self, producer: str, topic: str, messages: list[dict[str, Any]]) -> int:
        return self._send(self.transactional[producer], topic, messages)

    def send_offsets(self, producer: str, group: str) -> None:
        positions = [place for place in self.consumer.position(self.consumer.assignment()) if place.offset >= 0]
        metadata = self.consumer.consumer_group_metadata()
        self.transactional[producer].send_offsets_to_transaction(positions, metadata, SECONDS)

    def end(self, producer: str, commits: bool) -> None:
        end = self.transactional[producer]
        end.commit_transaction(SECONDS) if commits else end.abort_transaction(SECONDS)

    def subscribe(self, topic: str, group: str, isolation: str) -> None:
        self.consumer = Consumer({**self._of(group), "enable.auto.commit": False, "isolation.level": isolation})
        self.consumer.subscribe([topic])

    def _of(self, group: str) -> dict[str, Any]:
        settings = {"group.id": group, "auto.offset.reset": "earliest", "group.protocol": self.group_protocol}
        return {**self.servers, **settings}

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

    def join(self, group: str, topics: str) -> None:
        fast: dict[str, Any] = {}
        if self.group_protocol == "classic":
            fast = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500}
            fast["partition.assignment.strategy"] = "range"
        metadata = {"topic.metadata.refresh.interval.ms": 1000}
        self.member = Member(Consumer({**self._of(group), **fast, **metadata}), topics)

    def events(self) -> list[tuple[int, str, list[str]]]:
        return self.member.take()

    def leave(self) -> None:
        self.member.leave()

    def create_topic(self, topic: str, partitions: int) -> None:
        self.admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(SECONDS)

    def delete_topic(self, topic: str) -> None:
        self.admin.delete_topics([topic])[topic].result(SECONDS)

    def configure(self, topic: str, settings: dict[str, str]) -> None:
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, set_config=settings)
        self.admin.alter_configs([resource])[resource].result(SECONDS)

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


class Member:
    """A consumer that polls in a thread of its own and notes what it goes through."""

    def __init__(self, consumer: Consumer, topics: str):
        self.consumer, self.events, self.leaves = consumer, [], False
        notes = {f"on_{verb}": self.noting(what) for verb, what in NOTED.items()}
        consumer.subscribe([topics], **notes)
        self.thread = threading.Thread(target=self.poll, daemon=True)
        self.thread.start()

    def noting(self, what: str) -> Any:
        return lambda _, partitions: self.note(what, [f"{p.topic}-{p.partition}" for p in partitions])

    def note(self, what: str, names: list[str]) -> None:
        self.events.append((time.time_ns() // 1_000_000, what, names))

    def poll(self) -> None:
        while not self.leaves:
            message = self.consumer.poll(0.05)
            if message is not None and message.error() is None:
                self.note("took", [message.value().decode()])
            elif message is not None:
                print(message.error(), file=sys.stderr, flush=True)
        self.consumer.close()

    def take(self) -> list[tuple[int, str, list[str]]]:
        taken = list(self.events)
        del self.events[: len(taken)]
        return taken

    def leave(self) -> None:
        self.leaves = True
        self.thread.join(SECONDS)


NOTED = {"assign": "assigned", "revoke": "revoked", "lost": "lost"}

serve(Driver(*sys.argv[1:]))
