"""The nouns everyone shares. This module imports nothing of ours and knows no rule."""

from typing import NamedTuple, NewType

BrokerId = NewType("BrokerId", int)
Offset = NewType("Offset", int)
LeaderEpoch = NewType("LeaderEpoch", int)


class TopicPartition(NamedTuple):
    """One partition of one topic, by the topic's name."""

    topic: str
    partition: int

    def __str__(self) -> str:
        """The name of its folder on disk and of the thing in every log line: `topic-partition`."""
        return f"{self.topic}-{self.partition}"


class TransactionMarkers(NamedTuple):
    """The end of one producer's transaction, as a coordinator decided it: what the marker of each partition says."""

    producer_id: int
    epoch: int
    coordinator_epoch: int
    commits: bool
    transaction_version: int
    partitions: tuple[TopicPartition, ...]


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun: `1 segment`, `10,000 partitions`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC})
