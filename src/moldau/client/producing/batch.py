"""One batch of a producer: records of one partition that are sent in one piece and succeed or fail together.

An `OpenBatch` takes records until it is sealed; `Batch` adds what sending needs to know: producer id and sequence, time
limits, attempts, and the halves that took its place if it was too large.
"""

import struct
from typing import NamedTuple

from moldau.client.producing.outcome import Outcome
from moldau.names import TopicPartition
from moldau.records.batch import HEADER_SIZE, NO_PRODUCER_ID, read_header, stamp, write_batch
from moldau.records.columns import OpenBatch

_PRODUCER_AT = 43
_PRODUCER = struct.Struct(">qhi")


class Ack(NamedTuple):
    """The broker's acknowledgement of a batch; -1 in fields that the broker did not fill."""

    base_offset: int
    append_time_ms: int


class Parts(NamedTuple):
    """The two halves of a batch that was split because it was too large for its topic."""

    first: "Batch"
    second: "Batch"

    def holding(self, index: int) -> "tuple[Batch, int]":
        """The half that holds the record at `index` of the whole batch, and the record's index in that half."""
        if index < self.first.count:
            return self.first, index
        return self.second, index - self.first.count


class ProducerIdAndEpoch(NamedTuple):
    """The producer id and epoch of an idempotent producer."""

    producer_id: int
    epoch: int


NOBODY = ProducerIdAndEpoch(NO_PRODUCER_ID, -1)


class Batch(OpenBatch):
    """Records of one partition that are sent in one piece and succeed or fail together. `held` is the memory that is
    reserved for them."""

    __slots__ = (
        "attempts",
        "deadline_s",
        "due_s",
        "encoded",
        "held",
        "identity",
        "order",
        "outcome",
        "reusable",
        "seen",
        "sequence",
        "stamped",
        "tp",
    )

    def __init__(self, tp: TopicPartition, due_s: float, deadline_s: float, capacity: int = 0):
        super().__init__(HEADER_SIZE, capacity)
        self.tp = tp
        self.encoded: bytearray | None = None
        self.held = capacity
        self.due_s = due_s
        self.deadline_s = deadline_s
        self.order: tuple[int, ...] = ()
        self.attempts = 0
        self.identity: ProducerIdAndEpoch | None = None
        self.sequence = -1
        self.stamped: tuple[ProducerIdAndEpoch | None, int] | None = None
        self.seen: set[int] | None = None
        self.reusable = False
        self.outcome = Outcome()

    @classmethod
    def of_encoded(cls, tp: TopicPartition, due_s: float, deadline_s: float, encoded: bytearray, count: int) -> "Batch":
        """A batch that is encoded already; its checksum need not be right."""
        batch = cls(tp, due_s, deadline_s)
        batch.seal()
        batch.encoded, batch.count, batch.held = encoded, count, len(encoded)
        return batch

    @property
    def size(self) -> int:
        """Its bytes, before compression where it is not encoded yet."""
        size: int = self.filled if self.encoded is None else len(self.encoded)
        return size

    def saw(self, index: int) -> None:
        """Note that the caller of the record at `index` knows that it failed."""
        if self.seen is None:
            self.seen = set()
        self.seen.add(index)

    @property
    def unseen(self) -> int:
        """The number of failed records that no caller has asked about."""
        count: int = self.count
        return count - len(self.seen or ())

    def bytes_to_send(self, codec: int, attributes: int = 0) -> bytearray:
        """The batch's bytes for the Produce request, encoded on the first call and stamped with producer id, epoch and
        sequence. `attributes` are bits of the header that are set beside the batch's own."""
        if self.encoded is None:
            self.encoded = write_batch(
                self.taken(),
                count=self.count,
                base_timestamp=self.base_timestamp,
                max_timestamp=self.max_timestamp,
                codec=codec,
                attributes=attributes,
                producer_id=(self.identity or NOBODY).producer_id,
                producer_epoch=(self.identity or NOBODY).epoch,
                base_sequence=self.sequence,
                room=HEADER_SIZE,
            )
            self.stamped = self.identity, self.sequence
        elif self.stamped != (self.identity, self.sequence):
            _PRODUCER.pack_into(self.encoded, _PRODUCER_AT, *(self.identity or NOBODY), self.sequence)
            header = read_header(self.encoded)
            stamp(self.encoded, header.attributes | attributes, header.max_timestamp)
            self.stamped = self.identity, self.sequence
        return self.encoded
