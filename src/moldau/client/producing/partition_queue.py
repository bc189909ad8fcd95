"""The batches of one partition, those that wait and those in flight, and the rules for when a batch may be sent.

Pure: `now_s` is the loop's time. Invariants:

- Batches are sent in the order they were filled. After a failure they are sent again in the same order.
- With idempotence, a batch that was sent keeps its producer id, epoch and sequence until it is acknowledged or known
  not to have been appended. Only then may it get a new epoch and sequence.
- At most `in_flight_max` batches are unacknowledged. With idempotence that is at most 5: a broker remembers five
  batches of a producer to recognise duplicates. The first batch of an epoch is sent alone, because a broker that does
  not know the producer yet would accept a later batch first.
- A batch that waits to be sent again blocks newer batches, and is sent only when nothing is in flight.
"""

from bisect import insort
from collections import deque
from dataclasses import dataclass, field

from moldau.client.producing.batch import Batch, Parts, ProducerIdAndEpoch
from moldau.errors import ErrorCode
from moldau.names import TopicPartition
from moldau.records.batch import encode_batch, read_header
from moldau.records.rows import iterate

MAX_IN_FLIGHT = 5
"""The default of `max.in.flight.requests.per.connection`."""
LAST_EPOCH = 32767
_TOO_LARGE = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})
_LOST_SEQUENCE = frozenset({ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID})


@dataclass
class PartitionQueue:
    """The waiting batches and the batches in flight of one partition."""

    tp: TopicPartition
    in_flight_max: int = MAX_IN_FLIGHT
    may_renew: bool = True
    waiting: deque[Batch] = field(default_factory=deque)
    again: list[Batch] = field(default_factory=list)
    in_flight: deque[Batch] = field(default_factory=deque)
    identity: ProducerIdAndEpoch | None = None
    next_sequence: int = 0
    epoch_acknowledged: bool = False
    gap: bool = False
    renew: bool = False
    not_before_s: float = 0.0
    orders: int = 0

    def due_s(self, now_s: float, hurry: bool, idempotent: bool) -> float | None:
        """The time from which the next batch may be sent; None while that depends on a reply or on another record."""
        if self.again:
            return None if self.in_flight else self.not_before_s
        if not self.waiting:
            return None
        limit = self.in_flight_max if self.epoch_acknowledged or not idempotent else 1
        if len(self.in_flight) >= limit:
            return None
        full = len(self.waiting) > 1 or hurry
        return self.not_before_s if full else max(self.waiting[0].due_s, self.not_before_s)

    def take(self, identity: ProducerIdAndEpoch | None) -> Batch:
        """Remove and return the next batch, with its sequence set; from now on it is in flight."""
        if self.again:
            if self.renew and self.identity is not None and identity is not None:
                identity = (
                    identity
                    if self.exhausted
                    else ProducerIdAndEpoch(self.identity.producer_id, self.identity.epoch + 1)
                )
                self._begin_epoch(identity)
            batch = self.again.pop(0)
        else:
            batch = self.waiting.popleft()
            batch.seal()
            batch.order = (self.orders,)
            self.orders += 1
            if identity is not None:
                self._number(batch, self.identity or identity)
        batch.attempts += 1
        self.in_flight.append(batch)
        return batch

    def _number(self, batch: Batch, identity: ProducerIdAndEpoch) -> None:
        self.identity = batch.identity = identity
        batch.sequence = self.next_sequence
        self.next_sequence = (self.next_sequence + batch.count) & 0x7FFFFFFF

    def acknowledged(self, batch: Batch) -> None:
        self.in_flight.remove(batch)
        if batch.identity == self.identity:
            self.epoch_acknowledged = True

    def failed(self, batch: Batch, code: ErrorCode, not_before_s: float, may_retry: bool = True) -> bool:
        """Record a failed attempt; `may_retry` says whether the batch has attempts left. Returns whether the batch will
        be sent again; if not, it has failed for good.

        OUT_OF_ORDER_SEQUENCE_NUMBER and UNKNOWN_PRODUCER_ID mean that the batch was not appended. If an earlier batch
        is still unacknowledged, that is the cause. If an earlier batch was given up, the broker has forgotten the
        producer, or the log has lost earlier batches (`has_lost`), all unacknowledged batches are sent in a new epoch,
        as by Java's producer (KIP-360); in a transaction (`may_renew` is false) they fail, because only the coordinator
        gives epochs to a transactional id.
        """
        if code in _LOST_SEQUENCE and batch.sequence >= 0:
            if self.in_flight[0] is not batch or (self.again and self.again[0].order < batch.order):
                self._send_again(batch, self.not_before_s)
                return True
            if self.may_renew and (self.gap or code == ErrorCode.UNKNOWN_PRODUCER_ID or self.has_lost(code)):
                self.renew = True
                self._send_again(batch, 0.0)
                return True
        elif code.retriable and may_retry:
            self._send_again(batch, not_before_s)
            return True
        self.in_flight.remove(batch)
        self.gave_up(batch)
        return False

    def has_lost(self, code: ErrorCode) -> bool:
        """Whether a broker's answer to the first batch in flight means that its log has lost batches which were
        acknowledged, as after an unclean election."""
        return code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and self.epoch_acknowledged and not self.gap

    def split(self, batch: Batch, code: ErrorCode) -> Parts | None:
        """If the broker refused a batch as too large, replace it by its two halves; None if it has only one record or
        failed for another reason.

        The batch was not appended, so the halves share its sequences and later batches keep theirs.
        """
        if code not in _TOO_LARGE or batch.count < 2:
            return None
        encoded = batch.bytes_to_send(0)
        rows = [(r.key, r.value, r.timestamp_ms, r.headers) for r in iterate(encoded)]
        middle, codec = len(rows) // 2, read_header(encoded).codec
        halves = (rows[:middle], 0, middle), (rows[middle:], middle, len(rows))
        parts = Parts(
            *(
                Batch.of_encoded(batch.tp, batch.due_s, batch.deadline_s, encode_batch(half, codec=codec), len(half))
                for half, *_ in halves
            )
        )
        for number, (part, (_, start, stop)) in enumerate(zip(parts, halves, strict=True)):
            part.held = batch.held * stop // len(rows) - batch.held * start // len(rows)
            part.callbacks, part.timestamps = batch.callbacks[start:stop], batch.timestamps[start:stop]
            part.order, part.attempts, part.identity = (*batch.order, number), batch.attempts, batch.identity
            part.outcome.loop_thread = batch.outcome.loop_thread
            part.sequence = batch.sequence + start & 0x7FFFFFFF if batch.sequence >= 0 else batch.sequence
            insort(self.again, part, key=lambda b: b.order)
        self.in_flight.remove(batch)
        self.not_before_s = 0.0
        return parts

    def gave_up(self, batch: Batch) -> None:
        """Note that a batch failed for good or that its outcome stays unknown: later sequences may now leave a gap."""
        self.gap = self.gap or batch.sequence >= 0

    @property
    def exhausted(self) -> bool:
        """Whether the producer id has used its last epoch in this partition."""
        return self.identity is not None and self.identity.epoch >= LAST_EPOCH

    def _send_again(self, batch: Batch, not_before_s: float) -> None:
        self.in_flight.remove(batch)
        insort(self.again, batch, key=lambda b: b.order)
        self.not_before_s = not_before_s

    def _begin_epoch(self, identity: ProducerIdAndEpoch) -> None:
        """Begin a new epoch and give the batches that are to be sent again new sequences: none of them was appended."""
        assert not self.in_flight
        self.identity, self.next_sequence, self.epoch_acknowledged, self.gap, self.renew = (
            identity,
            0,
            False,
            False,
            False,
        )
        for batch in self.again:
            self._number(batch, identity)
