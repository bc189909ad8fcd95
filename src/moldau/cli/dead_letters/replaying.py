"""`moldau dead-letters replay`: dead letters go back to the topic in which they failed, each exactly once.

Each batch is one transaction with the offsets of a group, which remembers what was replayed. A command that is killed
leaves nothing half done: the next one goes on behind the last transaction. A second one at the same time fences the
first, since both have the same transactional id.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from moldau.cli.consuming.ending import Ending, ending_of
from moldau.cli.dead_letters.letters import DeadLetter, WantedLetters, letter_in
from moldau.cli.dead_letters.reading import POLL_MS, POLL_RECORDS
from moldau.client.consuming.consumer import Consumer
from moldau.client.consuming.fetched.record import Record
from moldau.client.fetching import topic_partitions
from moldau.client.producing.producer import Producer
from moldau.errors import ConfigError
from moldau.names import TopicPartition

CLIENT_ID: Final = "moldau-dead-letters"


class SentBack(NamedTuple):
    """A record on its way back."""

    topic: str
    partition: int | None
    record: Record
    letter: DeadLetter


class LetterReplay:
    """One run. `to` is a topic for all letters, "" for the topics that they come from. `counts` has the records by
    topic, `passed` those that were not wanted or are no dead letters."""

    def __init__(
        self, topic: str, brokers: str, settings: Mapping[str, Any], group: str, wanted: WantedLetters, to: str
    ):
        self.counts: dict[str, int] = {}
        self.passed = 0
        self._topic, self._brokers, self._group, self._wanted, self._to = topic, brokers, group, wanted, to
        self._settings = {"client.id": CLIENT_ID, **settings}
        self._partitions: dict[str, list[int]] = {}

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def run(self, most: int | None, *, execute: bool) -> None:
        """Replay at most so many letters; without `execute` only count them. Raises `ConfigError`, `KafkaError`."""
        if not execute:
            self._through(None, most)
            return
        with Producer({**self._settings, "transactional.id": self._group}) as producer:
            producer.init_transactions()  # before the group's offsets are read: no other replay commits from here on
            self._through(producer, most)

    def _through(self, producer: Producer | None, most: int | None) -> None:
        of_group = {"group.id": self._group, "auto.offset.reset": "earliest", "enable.auto.commit": "false"}
        reading = {**self._settings, **of_group, "isolation.level": "read_committed"}
        tps = [TopicPartition(self._topic, number) for number in self._partitions_of(self._topic)]
        with Consumer(reading) as consumer:
            consumer.assign(tps)
            ending = ending_of(consumer, tps, None)
            while (most is None or self.total < most) and not ending.is_reached(consumer):
                self._batch(producer, consumer, ending, most)

    def _batch(self, producer: Producer | None, consumer: Consumer, ending: Ending, most: int | None) -> None:
        room = POLL_RECORDS if most is None else min(POLL_RECORDS, most - self.total)
        records = ending.before(consumer.poll(POLL_MS, room))
        if not records:
            return
        chosen = [sent for record in records if (sent := self._sent(record)) is not None]
        if producer is not None:
            with producer.transaction() as transaction:
                for sent in chosen:
                    _send(producer, sent)
                behind = {record.topic_partition: record.position for record in records}
                transaction.send_offsets(behind, self._group)
        self.passed += len(records) - len(chosen)
        for sent in chosen:
            self.counts[sent.topic] = self.counts.get(sent.topic, 0) + 1

    def _sent(self, record: Record) -> SentBack | None:
        """Where the record goes; None if it is not wanted. Raises `ConfigError` if that is not known."""
        letter = letter_in(record.headers)
        if letter is None or not self._wanted.takes(letter):
            return None
        topic = self._to or letter.topic
        if not topic:
            place = f"{record.topic_partition}@{record.offset}"
            raise ConfigError(f"{place} does not say from which topic it comes: give --to TOPIC")
        if topic == self._topic:
            raise ConfigError(f"{topic} is the topic of the dead letters itself: give --to with another one")
        known = self._partitions_of(topic)
        keeps = not self._to and letter.partition in known
        return SentBack(topic, letter.partition if keeps else None, record, letter)

    def _partitions_of(self, topic: str) -> list[int]:
        if topic not in self._partitions:
            self._partitions[topic] = topic_partitions(self._brokers, [topic])[topic]
        return self._partitions[topic]


def _send(producer: Producer, sent: SentBack) -> None:
    """The record as it was, without the headers about its failure."""
    record = sent.record
    at_ms = record.timestamp_ms if record.timestamp_ms >= 0 else None
    producer.send(
        sent.topic, record.value, record.key, partition=sent.partition, timestamp_ms=at_ms, headers=sent.letter.own
    )
