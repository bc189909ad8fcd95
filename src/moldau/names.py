"""The nouns that all layers share. This module imports no other module of this package and holds two rules: `guess`,
and how an extra is installed."""

import base64
import uuid
from collections.abc import Iterable
from typing import NamedTuple, NewType

BrokerId = NewType("BrokerId", int)
Offset = NewType("Offset", int)
LeaderEpoch = NewType("LeaderEpoch", int)


class TopicPartition(NamedTuple):
    """One partition of one topic, by the topic's name."""

    topic: str
    partition: int

    def __str__(self) -> str:
        """`topic-partition`: the name of its folder on disk, and its name in every log line."""
        return f"{self.topic}-{self.partition}"


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """The numbers of the partitions by topic, in the given order."""
    numbers: dict[str, list[int]] = {}
    for topic, partition in partitions:
        numbers.setdefault(topic, []).append(partition)
    return numbers


class OffsetAndMetadata(NamedTuple):
    """A committed position: the offset of the next record to read, a text of the one who committed it, and the leader
    epoch of the record before it, if known."""

    offset: int
    metadata: str = ""
    leader_epoch: int | None = None


class GroupMetadata(NamedTuple):
    """A consumer as its group knows it: the offsets that join a transaction are refused once it has left (KIP-447)."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


class VerificationGuard:
    """The token that the first batch of a producer's transaction in a partition needs to be appended (KIP-890). It
    exists while the coordinator verifies the transaction, and is void once the transaction has begun or ended. Compared
    by identity.

    `epoch` and `lowest_sequence` belong to the producer's batches that wait for the verification; `since_ms` is when
    the first of them arrived.
    """

    __slots__ = ("epoch", "lowest_sequence", "since_ms")

    def __init__(self, epoch: int, lowest_sequence: int, since_ms: int):
        self.epoch = epoch
        self.lowest_sequence = lowest_sequence
        self.since_ms = since_ms


class TransactionMarkers(NamedTuple):
    """The end of one producer's transaction, as its coordinator decided it: the content of each partition's marker."""

    producer_id: int
    epoch: int
    coordinator_epoch: int
    commits: bool
    transaction_version: int
    partitions: tuple[TopicPartition, ...]


def short_id(value: uuid.UUID) -> str:
    """A UUID as Kafka writes it: 22 characters of URL-safe base64."""
    return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")


def long_id(text: str) -> uuid.UUID:
    """The reverse of `short_id`. Raises `ValueError`."""
    return uuid.UUID(bytes=base64.urlsafe_b64decode(text + "=="))


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun: `1 segment`, `10,000 partitions`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def how_to_install(extra: str) -> str:
    """The command that installs what an extra of this package names, quoted for every shell: zsh expands brackets."""
    return f"install it with `pip install 'moldau[{extra}]'`"


CLOSE = 0.8
"""Names are close if this share of their letters is the same, in the same order (`difflib`'s ratio)."""
_GUESSED_LENGTH_MAX = 200


def guess(name: str, known: Iterable[str]) -> str:
    """`; did you mean X?` if a known name is close to this one, if it has the same letters in another order, or if one
    alone begins with its words, as `bootstrap.servers` does with `bootstrap`. Otherwise nothing: a far guess misleads.
    """
    import difflib  # no start needs it

    names = [*known]
    lower = {one.lower(): one for one in names}
    wanted = name[:_GUESSED_LENGTH_MAX].lower()
    close = difflib.get_close_matches(wanted, lower, 1, CLOSE)
    close = close or [one for one in lower if sorted(one) == sorted(wanted)][:1]
    longer = [one for one in lower if one.startswith(wanted) and one[len(wanted) :][:1] in ("_", ".", "-")]
    if not close and len(longer) == 1:
        close = longer
    return f"; did you mean {lower[close[0]]}?" if close else ""


NOBODY = "ANONYMOUS"
"""The name of clients that have not authenticated: one that has does not get it."""
OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC})
