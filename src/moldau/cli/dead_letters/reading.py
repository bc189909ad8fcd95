"""Dead letters as they come out of a topic, up to its present end."""

from collections.abc import Iterator
from typing import Any, Final

from moldau.cli.consuming.beginning import EARLIEST_NOW, Beginning
from moldau.cli.consuming.ending import ending_of
from moldau.cli.dead_letters.letters import DeadLetter, letter_in
from moldau.client.consuming.consumer import Consumer
from moldau.client.consuming.fetched.record import Record
from moldau.client.fetching import topic_partitions
from moldau.client.offsets import LATEST
from moldau.names import TopicPartition

POLL_MS: Final = 200
POLL_RECORDS: Final = 500
Found = tuple[Record, DeadLetter]


def all_letters(topic: str, brokers: str, settings: dict[str, Any], last: int | None = None) -> Iterator[Found]:
    """Each record of the topic that says why it failed, from its beginning or the `last` records of each partition.
    Raises `KafkaError`."""
    tps = [TopicPartition(topic, number) for number in topic_partitions(brokers, [topic])[topic]]
    with Consumer({"client.id": "moldau-dead-letters", "isolation.level": "read_committed", **settings}) as consumer:
        (EARLIEST_NOW if last is None else Beginning(LATEST, last=last)).seek(consumer, tps)
        ending = ending_of(consumer, tps, None)
        while not ending.is_reached(consumer):
            for record in ending.before(consumer.poll(POLL_MS, POLL_RECORDS)):
                letter = letter_in(record.headers)
                if letter is not None:
                    yield record, letter
