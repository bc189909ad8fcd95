"""What simulated clients do, and what must be true of it afterwards.

A producer numbers its records per partition and notes what was acknowledged; the members of a group note what they
were given. The checks are the invariants of a log: nothing acknowledged is lost or moved, nothing is there twice,
offsets have no gap, and a group that reads to the end has seen every record.
"""

from dataclasses import dataclass, field
from typing import Any

from moldau.client.consuming.consumer import AsyncConsumer
from moldau.client.producing.producer import AsyncProducer
from moldau.errors import KafkaError
from moldau.names import TopicPartition
from moldau.simulation.world import World


class Broken(AssertionError):
    """An invariant does not hold."""


@dataclass
class History:
    """Everything that clients were told. Values are unique in the whole history."""

    sent: dict[bytes, TopicPartition] = field(default_factory=dict)
    acknowledged: dict[bytes, tuple[TopicPartition, int]] = field(default_factory=dict)
    seen: dict[bytes, list[tuple[str, TopicPartition, int]]] = field(default_factory=dict)

    def check(self) -> None:
        """Raises `Broken`, naming the record."""
        taken: dict[tuple[TopicPartition, int], bytes] = {}
        for value, places in self.seen.items():
            where = {(tp, offset) for _, tp, offset in places}
            if len(where) > 1:
                raise Broken(f"{value!r} is in the log more than once: {sorted(where)}")
            if value not in self.sent:
                raise Broken(f"{value!r} was never sent")
            (place,) = where
            if taken.setdefault(place, value) != value:
                raise Broken(f"{place} holds both {value!r} and {taken[place]!r}")
        for value, place in self.acknowledged.items():
            if value not in self.seen:
                raise Broken(f"{value!r} was acknowledged at {place} and is lost")
            _, tp, offset = self.seen[value][0]
            if (tp, offset) != place:
                raise Broken(f"{value!r} was acknowledged at {place} and is at {(tp, offset)}")
        for tp in sorted({tp for tp, _ in taken}):
            offsets = sorted(offset for where, offset in taken if where == tp)
            if offsets != list(range(offsets[0], offsets[0] + len(offsets))):
                raise Broken(f"the offsets of {tp} have a gap")


async def produce(world: World, history: History, bootstrap: str, topic: str, name: str, count: int) -> None:
    """Send `count` records, a few at a time, and note what was acknowledged; goes on through a broker's absence."""
    async with AsyncProducer(
        bootstrap, runtime=world.runtime(world.host(name)), delivery_timeout_ms=600_000
    ) as producer:
        for first in range(0, count, 10):
            values = [f"{name}:{number}".encode() for number in range(first, min(first + 10, count))]
            sent = []
            for value in values:
                delivery = await producer.send(topic, value, key=value)
                history.sent[value] = TopicPartition(delivery.topic, delivery.partition)
                sent.append(delivery)
            for value, delivery in zip(values, sent, strict=True):
                at = await delivery
                history.acknowledged[value] = TopicPartition(at.topic, at.partition), at.offset


async def consume(world: World, history: History, bootstrap: str, topic: str, name: str, until: int) -> None:
    """Read as a member of a group until `until` different records were seen by all members together."""
    settings: dict[str, Any] = {"group_id": "readers", "auto_offset_reset": "earliest", "auto_commit_interval_ms": 500}
    runtime = world.runtime(world.host(name))
    async with AsyncConsumer(bootstrap, runtime=runtime, **settings) as consumer:
        consumer.subscribe([topic])
        while len(history.seen) < until:
            try:
                records = await consumer.poll(timeout_ms=500)
            except KafkaError as error:
                if not error.retriable:
                    raise
                continue
            for record in records:
                where = (name, TopicPartition(record.topic, record.partition), record.offset)
                history.seen.setdefault(bytes(record.value or b""), []).append(where)
