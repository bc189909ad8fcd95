"""The producer's queues: order, numbering and trying again, against a model of what a broker remembers."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.tiers import examples
from moldau.client.producing.batch import Batch, ProducerIdAndEpoch
from moldau.client.producing.batching import TABLES_BYTES, Accumulator, BufferFull
from moldau.client.producing.partition_queue import MAX_IN_FLIGHT, PartitionQueue
from moldau.errors import ErrorCode, KafkaError
from moldau.names import TopicPartition
from moldau.records.batch import read_header
from moldau.records.rows import iterate

TP = TopicPartition("t", 0)
ME = ProducerIdAndEpoch(7, 0)
NOW_S = 100.0


def accumulator(batch_bytes: int = 1 << 20, buffer_bytes: int = 1 << 20) -> Accumulator:
    return Accumulator(batch_bytes=batch_bytes, linger_ms=5, buffer_bytes=buffer_bytes, delivery_timeout_ms=1000)


def put(into: Accumulator, value: bytes, now_s: float = NOW_S) -> Batch:
    return into.append(TP, None, value, 0, (), now_s)[0]


def values(batch: Batch) -> list[bytes]:
    return [record.value or b"" for record in iterate(batch.bytes_to_send(0))]


def queue_of(batches: int) -> PartitionQueue:
    """A queue with as many batches of one record."""
    full = accumulator(batch_bytes=1)
    for number in range(batches):
        put(full, b"%d" % number)
    return full.queues[TP]


def test_records_share_a_batch_until_it_is_full() -> None:
    into = accumulator(batch_bytes=300)
    batches = [put(into, b"x" * 50) for _ in range(6)]
    assert [batches.index(batch) for batch in batches] == [0, 0, 0, 0, 4, 4]


def test_only_a_record_that_opens_a_batch_wakes_the_sender() -> None:
    into = accumulator()
    assert [into.append(TP, None, b"x", 0, (), NOW_S)[2] for _ in range(3)] == [True, False, False]


def test_a_batch_is_due_when_it_lingered_or_a_newer_one_began_or_someone_is_in_a_hurry() -> None:
    into = accumulator()
    put(into, b"x")
    queue = into.queues[TP]
    assert queue.due_s(NOW_S, False, True) == pytest.approx(NOW_S + 0.005)
    assert queue.due_s(NOW_S, True, True) <= NOW_S
    into.append_encoded(TP, bytearray(b"x" * 100), 1, NOW_S)
    assert queue.due_s(NOW_S, False, True) <= NOW_S


def test_the_buffer_is_bounded_and_gives_room_back() -> None:
    into = accumulator(buffer_bytes=500)
    batch = put(into, b"x" * 250)
    with pytest.raises(BufferFull):
        put(into, b"x" * 250)
    with pytest.raises(KafkaError, match="does not fit") as refused:
        put(into, b"x" * 500)
    assert refused.value.code == ErrorCode.MESSAGE_TOO_LARGE
    into.queues[TP].take(None)
    into.release(batch)
    assert into.held_bytes == 0
    put(into, b"x" * 250)


def test_tables_are_not_encoded_far_ahead_of_the_broker_and_leave_the_rest_of_the_buffer_to_records() -> None:
    into = accumulator(buffer_bytes=1 << 30)
    portion = bytearray(TABLES_BYTES // 4)
    for _ in range(4):
        into.append_encoded(TP, portion, 1, NOW_S)
    with pytest.raises(BufferFull):
        into.append_encoded(TP, portion, 1, NOW_S)
    put(into, b"x")
    accumulator(buffer_bytes=1 << 30).append_encoded(TP, bytearray(TABLES_BYTES + 1), 1, NOW_S)


def test_memory_of_acknowledged_tables_is_used_again_unless_someone_still_reads_it() -> None:
    into = accumulator()
    free, read = bytearray(b"x" * 1_000), bytearray(b"y" * 1_000)
    reader = memoryview(read)
    into.reuse(free)
    into.reuse(read)
    assert (into.spare() is free, into.spare(), bytes(reader)) == (True, None, b"y" * 1_000)
    for _ in range(TABLES_BYTES // 1_000_000 + 5):
        into.reuse(bytearray(1_000_000))
    kept = [*iter(into.spare, None)]
    assert 0 < sum(len(memory) for memory in kept if memory is not None) <= TABLES_BYTES


def test_batches_do_not_linger_while_a_caller_waits_for_room() -> None:
    into = accumulator()
    assert not into.pressing
    with into.waiting_for_room():
        assert into.pressing
    assert not into.pressing


def test_the_first_batch_of_an_epoch_flies_alone_and_then_five_may() -> None:
    queue = queue_of(9)
    first = queue.take(ME)
    assert queue.due_s(NOW_S, True, True) is None
    queue.acknowledged(first)
    for _ in range(MAX_IN_FLIGHT):
        assert queue.due_s(NOW_S, True, True) is not None
        queue.take(ME)
    assert queue.due_s(NOW_S, True, True) is None


def test_without_idempotence_the_first_batch_does_not_wait() -> None:
    queue = queue_of(3)
    queue.take(None)
    assert queue.due_s(NOW_S, True, False) is not None


def test_sequences_count_records_and_an_encoded_batch_carries_them() -> None:
    into = accumulator(batch_bytes=200)
    for number in range(6):
        put(into, b"%050d" % number)
    queue = into.queues[TP]
    headers = []
    while queue.waiting:
        batch = queue.take(ME)
        data = batch.bytes_to_send(0)
        headers.append(read_header(data))
        assert next(record.value for record in iterate(data)) == b"%050d" % headers[-1].base_sequence
        queue.acknowledged(batch)
    assert [header.base_sequence for header in headers] == [0, 1, 2, 3, 4, 5][:: headers[0].count]
    assert {(header.producer_id, header.producer_epoch) for header in headers} == {(7, 0)}


def test_a_batch_sent_again_in_a_new_epoch_is_stamped_anew_and_its_checksum_holds() -> None:
    queue = queue_of(1)
    batch = queue.take(ME)
    batch.bytes_to_send(0)
    assert queue.failed(batch, ErrorCode.UNKNOWN_PRODUCER_ID, NOW_S)
    again = queue.take(ME)
    assert again is batch
    header = read_header(again.bytes_to_send(0))
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 1, 0)
    assert [record.value for record in iterate(again.bytes_to_send(0))] == [b"0"]


def test_while_a_batch_waits_to_be_sent_again_nothing_newer_is_sent() -> None:
    queue = queue_of(5)
    queue.acknowledged(queue.take(ME))
    second, third = queue.take(ME), queue.take(ME)
    assert queue.failed(second, ErrorCode.NOT_LEADER_OR_FOLLOWER, NOW_S + 1)
    assert queue.due_s(NOW_S, True, True) is None
    assert queue.failed(third, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, NOW_S + 1)
    assert queue.due_s(NOW_S, True, True) == NOW_S + 1
    assert [queue.take(ME)] == [second]
    assert queue.due_s(NOW_S + 2, True, True) is None
    queue.acknowledged(second)
    assert queue.take(ME) is third


def test_batches_behind_one_that_was_given_up_go_on_in_a_new_epoch() -> None:
    queue = queue_of(3)
    queue.acknowledged(queue.take(ME))
    second = queue.take(ME)
    assert not queue.failed(second, ErrorCode.INVALID_RECORD, NOW_S)
    third = queue.take(ME)
    assert not queue.has_lost(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert queue.failed(third, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, NOW_S)
    assert queue.take(ME) is third
    assert (third.identity, third.sequence) == (ProducerIdAndEpoch(7, 1), 0)


def test_batches_behind_those_that_the_log_has_lost_go_on_in_a_new_epoch() -> None:
    queue = queue_of(4)
    queue.acknowledged(queue.take(ME))
    second, third = queue.take(ME), queue.take(ME)
    assert queue.has_lost(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    for batch in (second, third):
        assert queue.failed(batch, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, NOW_S)
    assert [queue.take(ME), queue.due_s(NOW_S, True, True)] == [second, None]
    assert (second.identity, second.sequence) == (ProducerIdAndEpoch(7, 1), 0)
    assert not queue.failed(second, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, NOW_S), "no epoch is begun twice in vain"


def test_in_a_transaction_a_batch_behind_lost_ones_fails() -> None:
    queue = queue_of(2)
    queue.may_renew = False
    queue.acknowledged(queue.take(ME))
    assert not queue.failed(queue.take(ME), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, NOW_S)


def test_a_batch_that_is_too_large_goes_out_in_halves_with_its_own_sequences() -> None:
    into = accumulator()
    for number in range(5):
        put(into, b"%d" % number)
    queue = into.queues[TP]
    batch = queue.take(ME)
    batch.bytes_to_send(2)
    parts = queue.split(batch, ErrorCode.MESSAGE_TOO_LARGE)
    assert parts is not None
    assert [part.sequence for part in parts] == [0, 2]
    assert sum(part.held for part in parts) == batch.held
    assert [parts.holding(index) for index in (0, 1, 2, 4)] == [
        (parts.first, 0), (parts.first, 1), (parts.second, 0), (parts.second, 2)
    ]  # fmt: skip
    sent = []
    while queue.again:
        part = queue.take(ME)
        sent += [record.value for record in iterate(part.bytes_to_send(2))]
        queue.acknowledged(part)
    assert sent == [b"0", b"1", b"2", b"3", b"4"]


def test_one_record_that_is_too_large_is_not_split() -> None:
    queue = queue_of(1)
    assert queue.split(queue.take(ME), ErrorCode.MESSAGE_TOO_LARGE) is None


def test_an_exhausted_producer_id_is_replaced_by_a_new_one() -> None:
    queue = queue_of(1)
    batch = queue.take(ProducerIdAndEpoch(7, 32767))
    assert queue.failed(batch, ErrorCode.UNKNOWN_PRODUCER_ID, NOW_S)
    assert queue.exhausted
    assert queue.take(ProducerIdAndEpoch(8, 0)).identity == ProducerIdAndEpoch(8, 0)


def test_what_takes_longer_than_the_delivery_timeout_is_taken_out_oldest_first() -> None:
    into = accumulator(batch_bytes=1)
    old, young = put(into, b"1", NOW_S), put(into, b"2", NOW_S + 0.5)
    assert [batch for _, batch in into.expired(NOW_S + 1.2)] == [old]
    assert into.outstanding() == [young]


class BrokerModel:
    """What a partition's leader does with idempotent batches: the last five of a producer are known again."""

    def __init__(self) -> None:
        self.log: list[bytes] = []
        self._epochs: dict[int, int] = {}
        self._recent: dict[int, list[tuple[int, int]]] = {}

    def append(self, batch: Batch) -> ErrorCode:
        assert batch.identity is not None
        producer_id, epoch = batch.identity
        if epoch < self._epochs.get(producer_id, epoch):
            return ErrorCode.INVALID_PRODUCER_EPOCH
        recent = self._recent.setdefault(producer_id, [])
        if epoch > self._epochs.get(producer_id, -1) and recent:
            if batch.sequence != 0:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            recent.clear()
        entry = batch.sequence, batch.sequence + batch.count
        if entry in recent:
            return ErrorCode.NONE
        if recent and recent[-1][1] != batch.sequence:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        self._epochs[producer_id] = epoch
        recent.append(entry)
        del recent[:-5]
        self.log += values(batch)
        return ErrorCode.NONE


class Run:
    """A queue, a connection that answers in order or breaks, and the model behind it."""

    def __init__(self) -> None:
        self.into = accumulator(batch_bytes=120)
        self.broker = BrokerModel()
        self.sent: list[Batch] = []
        self.answered: list[tuple[Batch, ErrorCode]] = []
        self.records: list[bytes] = []
        self.refused: list[bytes] = []

    @property
    def queue(self) -> PartitionQueue:
        return self.into.queues[TP]

    def step(self, action: str) -> None:
        if action == "append":
            self.records.append(b"%d" % len(self.records))
            put(self.into, self.records[-1])
        elif action == "send" and TP in self.into.queues and self.queue.due_s(1e9, True, True) is not None:
            self.sent.append(self.queue.take(ME))
        elif action in ("handle", "refuse", "too large") and self.sent:
            batch = self.sent.pop(0)
            code = {"refuse": ErrorCode.NOT_LEADER_OR_FOLLOWER, "too large": ErrorCode.MESSAGE_TOO_LARGE}.get(action)
            if batch.attempts > 1 and action == "too large":
                code = None  # a broker that may have appended it does not refuse it now
            self.answered.append((batch, self.broker.append(batch) if code is None else code))
        elif action == "answer" and self.answered:
            self.settle(*self.answered.pop(0))
        elif action == "break":
            lost = [*(batch for batch, _ in self.answered), *self.sent]
            self.sent, self.answered = [], []
            for batch in lost:
                self.settle(batch, ErrorCode.NETWORK_EXCEPTION)

    def settle(self, batch: Batch, code: ErrorCode) -> None:
        if code == ErrorCode.NONE:
            self.queue.acknowledged(batch)
        elif self.queue.split(batch, code):
            pass
        elif not self.queue.failed(batch, code, 0.0):
            self.refused += values(batch)


@settings(max_examples=examples(100, 150))
@given(st.lists(st.sampled_from(["append", "append", "send", "send", "handle", "handle", "answer", "answer", "break",
                                 "refuse", "too large"]), max_size=120))  # fmt: skip
def test_whatever_breaks_each_record_is_in_the_log_once_and_in_order_or_was_refused(actions: list[str]) -> None:
    run = Run()
    for action in actions:
        run.step(action)
    steps = 0
    while run.into.outstanding():
        steps += 1
        assert steps < 1000, "no progress"
        for action in ("send", "handle", "answer"):
            run.step(action)
    assert run.broker.log == [record for record in run.records if record not in run.refused]


def test_no_more_batches_are_in_flight_than_the_setting_allows() -> None:
    into = Accumulator(batch_bytes=1, linger_ms=5, buffer_bytes=1 << 20, delivery_timeout_ms=1000, in_flight_max=2)
    for _ in range(4):
        put(into, b"x")
    queue = into.queues[TP]
    queue.take(None)
    queue.take(None)
    assert queue.due_s(NOW_S, True, False) is None
    queue.acknowledged(queue.in_flight[0])
    assert queue.due_s(NOW_S, True, False) is not None


def test_a_batch_without_attempts_left_fails_for_good() -> None:
    queue = queue_of(1)
    batch = queue.take(None)
    assert not queue.failed(batch, ErrorCode.NOT_LEADER_OR_FOLLOWER, NOW_S, may_retry=False)
    assert queue.due_s(NOW_S, True, False) is None
