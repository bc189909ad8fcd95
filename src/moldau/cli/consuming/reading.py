"""The loop of `moldau consume`: from a consumer to standard output."""

import sys
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from moldau.cli.consuming.beginning import LATEST_NOW, Beginning
from moldau.cli.consuming.ending import Ending, ending_of
from moldau.cli.output import note
from moldau.client.consuming.consumer import Consumer
from moldau.client.consuming.fetched.record import Record
from moldau.client.fetching import topic_partitions
from moldau.errors import ConfigError
from moldau.names import TopicPartition

POLL_MS: Final = 200
POLL_RECORDS: Final = 2_000


class TopicReading(NamedTuple):
    """What is read and printed: a topic, or one partition of it, from `begin` on; to the present ends if it `ends`,
    or before the records of `until_ms` if that is given too. A `group` begins where it has committed."""

    topic: str
    write: Callable[[Record], bytes]
    begin: Beginning
    group: str = ""
    partition: int | None = None
    ends: bool = False
    until_ms: int | None = None
    max_messages: int | None = None
    timeout_s: float | None = None

    def run(self, consumer: Consumer, brokers: str) -> None:
        """Print until the end, or until a signal. Raises `ConfigError`, `KafkaError`."""
        ending = None
        if self.group:
            consumer.subscribe([self.topic])
        else:
            tps = _chosen(brokers, self.topic, self.partition)
            self.begin.seek(consumer, tps)
            ending = ending_of(consumer, tps, self.until_ms) if self.ends else None
        try:
            printed = self._print(consumer, ending)
        finally:
            if self.group:
                consumer.commit()
        if ending is None:
            self._note_few(printed)

    def _print(self, consumer: Consumer, ending: Ending | None) -> int:
        """Print records until the time is over or there are as many as wanted; returns how many were printed."""
        out, most = sys.stdout.buffer, self.max_messages
        printed, last_s = 0, time.monotonic()
        while (most is None or printed < most) and not (ending is not None and ending.is_reached(consumer)):
            records = consumer.poll(POLL_MS, POLL_RECORDS if most is None else min(POLL_RECORDS, most - printed))
            if records and ending is not None:
                records = ending.before(records)
            if records:
                try:
                    out.write(b"".join(map(self.write, records)))
                    out.flush()
                except BaseException:  # a signal, or a reader that went away
                    _unread(consumer, records)
                    raise
                printed, last_s = printed + len(records), time.monotonic()
            elif self.timeout_s is not None and time.monotonic() - last_s >= self.timeout_s:
                break
        return printed

    def _note_few(self, printed: int) -> None:
        """Say it if the time-out has ended the command before what was asked for came."""
        most = self.max_messages
        if (printed and (most is None or printed >= most)) or most == 0:
            return
        if printed:
            note(f"{printed:,} of {most:,} records came, then none within {self.timeout_s:g} s")
        else:
            is_new = not self.group and self.begin is LATEST_NOW
            hint = "; --from-beginning also prints those that exist already" if is_new else ""
            note(f"no record came within {self.timeout_s:g} s{hint}")


def _chosen(brokers: str, topic: str, partition: int | None) -> list[TopicPartition]:
    partitions = topic_partitions(brokers, [topic])[topic]
    if partition is not None and partition not in partitions:
        raise ConfigError(f"topic {topic} has no partition {partition}, only 0 to {len(partitions) - 1}")
    return [TopicPartition(topic, p) for p in (partitions if partition is None else [partition])]


def _unread(consumer: Consumer, records: list[Record]) -> None:
    """Go back before these records, which may not have been printed: they are not committed as read."""
    first = {TopicPartition(record.topic, record.partition): record.offset for record in reversed(records)}
    for tp, offset in first.items():
        consumer.seek(tp, offset)
