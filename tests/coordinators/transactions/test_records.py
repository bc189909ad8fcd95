"""What stands in `__transaction_state`: Kafka's bytes, written and read back, and nothing that stops a load."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.coordinators.decision import Decision, InternalRecord, Now
from moldau.coordinators.transactions.messages import TransactionSettings
from moldau.coordinators.transactions.records import read_record, transaction_record
from moldau.coordinators.transactions.shard import TransactionShard
from moldau.coordinators.transactions.transaction import IDLE, TransactionMetadata, TransactionState, unpack
from moldau.errors import ProtocolViolation
from moldau.names import TopicPartition
from moldau.protocol.stored import TRANSACTION_STATES
from tests.coordinators.transactions.scene import transaction_of

STATES = [
    state for state in TransactionState if state not in (TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE)
]
INT64, INT32, INT16 = (st.integers(-(2**bits), 2**bits - 1) for bits in (63, 31, 15))
TOPICS = st.builds(TopicPartition, st.text(min_size=1, max_size=5), INT32)


@st.composite
def transactions(draw: st.DrawFn) -> TransactionMetadata:
    """As they are read back: what is idle has no partitions and no id to come."""
    state = draw(st.sampled_from(STATES))
    is_idle = state in IDLE
    return TransactionMetadata(
        producer_id=draw(INT64),
        epoch=draw(INT16),
        timeout_ms=draw(INT32),
        state=state,
        update_ms=draw(INT64),
        partitions={} if is_idle else dict.fromkeys(draw(st.lists(TOPICS, max_size=4))),
        start_ms=draw(INT64),
        client_version=draw(st.sampled_from([0, 1, 2, 3, 32767])),
        last_epoch=draw(st.one_of(st.just(-1), INT16)),
        previous_producer_id=draw(st.one_of(st.just(-1), INT64)),
        next_producer_id=-1 if is_idle else draw(st.one_of(st.just(-1), INT64)),
    )


@given(st.text(max_size=20), transactions())
def test_a_transaction_is_read_back_as_it_was_written(transactional_id: str, transaction: TransactionMetadata) -> None:
    assert transaction_of(transaction_record(transactional_id, transaction, 2)) == (transactional_id, transaction)


@given(transactions())
def test_version_0_knows_no_more_than_its_fields(transaction: TransactionMetadata) -> None:
    plain = transaction._replace(client_version=0, last_epoch=-1, previous_producer_id=-1, next_producer_id=-1)
    record = transaction_record("x", transaction, 0)
    assert record.value is not None and record.value[:2] == b"\0\0"
    assert transaction_of(record) == ("x", plain)


def test_states_have_the_names_that_clients_know() -> None:
    assert tuple(state.label for state in TransactionState) == TRANSACTION_STATES


def test_the_bytes_are_those_that_kafka_writes() -> None:
    ongoing = TransactionMetadata(1, 2, 60_000, TransactionState.ONGOING, 1000, {TopicPartition("t", 3): None}, 999, 2)
    record = transaction_record("x", ongoing, 2)
    assert record.key == b"\0\0\0\1x"
    assert record.value == bytes.fromhex(
        "0001 0000000000000001 0002 0000ea60 01 02 02 74 02 00000003 00 00000000000003e8 00000000000003e7 01 02 02 0002"
    )
    empty = transaction_record("x", ongoing._replace(state=TransactionState.EMPTY, partitions={}, client_version=0), 2)
    assert empty.value == bytes.fromhex(
        "0001 0000000000000001 0002 0000ea60 00 00 00000000000003e8 00000000000003e7 00"
    )
    ended = ongoing._replace(state=TransactionState.COMPLETE_COMMIT, partitions={}, epoch=3, last_epoch=2)
    assert transaction_record("x", ended, 2).value == bytes.fromhex(
        "0001 0000000000000001 0003 0000ea60 04 01 00000000000003e8 00000000000003e7 02 02 02 0002 04 02 0002"
    )
    assert transaction_record("x", None, 2) == InternalRecord(b"\0\0\0\1x", None)


@given(transactions(), st.data())
def test_a_record_that_is_cut_short_is_no_record(transaction: TransactionMetadata, data: st.DataObject) -> None:
    key, value = transaction_record("some id", transaction, 2)
    assert value is not None
    for cut in (
        InternalRecord(key[: data.draw(st.integers(0, len(key) - 1))], value),
        InternalRecord(key, value[: data.draw(st.integers(0, len(value) - 1))]),
    ):
        with pytest.raises(ProtocolViolation):
            read_record(cut)


@given(st.binary(max_size=40), st.one_of(st.none(), st.binary(max_size=60)))
def test_a_load_is_not_stopped_by_what_nobody_understands(key: bytes, value: bytes | None) -> None:
    now = Now(0, 0)
    shard = TransactionShard(TransactionSettings(), 1, lambda: None, lambda _, __: None)
    for record in (InternalRecord(key, value), InternalRecord(b"\0\0\0\1x", value)):
        shard.apply(record, now)
    list(shard.start(now, Decision()))
    for listed in shard.listed():
        assert shard.describe(listed.transactional_id) is not None


def test_kinds_versions_and_states_of_newer_brokers_are_passed_over() -> None:
    idle = TransactionMetadata(1, 2, 60_000, TransactionState.COMPLETE_ABORT, 1000, {}, 999, 2, last_epoch=1)
    key, value = transaction_record("x", idle, 2)
    assert value is not None
    assert read_record(InternalRecord(b"\0\1" + key[2:], value)) is None
    assert read_record(InternalRecord(key, b"\0\2" + value[2:])) is None
    assert read_record(InternalRecord(key, value[:16] + b"\7" + value[17:])) is None
    assert read_record(InternalRecord(key, value[:16] + b"\x63" + value[17:])) is None
    with_tag_9 = value[:34] + b"\3" + value[35:] + b"\x09\1\0"
    for same in (value, with_tag_9):
        assert isinstance(packed := read_record(InternalRecord(key, same)).value, bytes)  # type: ignore[union-attr]
        assert unpack(packed) == idle
