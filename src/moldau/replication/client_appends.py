"""Batches that clients produce: each is planned, and then appended to its partition's log.

The plan says what the append takes: is the batch refused at once, must a transaction's coordinator be asked, can the
loop alone append it? The append checks the batch (records), and hands it to the replica. All of that runs on the loop,
except a heavy check and the flush that `flush.messages` asks for, which run in the executor (`append_off_loop`).
"""

from functools import partial
from typing import Final, NamedTuple

from moldau.errors import ErrorCode, KafkaError
from moldau.log.appended import Appended
from moldau.log.producers import verification_guards
from moldau.names import VerificationGuard
from moldau.records.batch import (
    ATTRIBUTES_AT,
    CODEC_BITS,
    HEADER_SIZE,
    TRANSACTIONAL_BIT,
    BatchHeader,
    read_header,
)
from moldau.records.compression import ZSTD
from moldau.records.validation import INLINE_BYTES, Checked, check_produce, is_told, needs_executor, reached_the_log
from moldau.replication.replica import Replica
from moldau.replication.results import AppendRefusal, AppendTerms

LOW_ATTRIBUTES: Final = ATTRIBUTES_AT + 1
"""Where a batch has the attributes that matter before it is checked: its codec, and whether it is transactional."""
_new: Final = tuple.__new__  # what a NamedTuple's constructor does, at a third of its cost


class PlannedAppend(NamedTuple):
    """A client's batch that `replica` has planned to append.

    `off_loop`: appending it takes more than the loop may do. `header`: that of a producer's transactional batch, not
    yet checked; None for other batches. `guard`: the transaction would begin here with this batch, and its coordinator
    must agree before the batch is appended.
    """

    partition: int
    replica: Replica
    records: memoryview
    terms: AppendTerms
    off_loop: bool
    header: BatchHeader | None
    guard: VerificationGuard | None

    @property
    def producer(self) -> tuple[int, int]:
        """Id and epoch of the producer of a transactional batch."""
        assert self.header is not None
        return self.header.producer_id, self.header.producer_epoch


def plan_append(
    replica: Replica, records: memoryview | None, terms: AppendTerms, now_ms: int
) -> PlannedAppend | AppendRefusal:
    """Decide which steps the append of a client's batch needs, from little more than its attributes. Nothing is
    appended.

    `records` stays a view; the caller must copy it if the append cannot be carried out at once.
    """
    if records is None:
        return _refused(replica, ErrorCode.INVALID_RECORD)
    if replica.refuses_clients:
        return _refused_client(replica)
    attributes = records[LOW_ATTRIBUTES] if len(records) > LOW_ATTRIBUTES else 0
    if attributes or replica.may_leave_loop:
        return _plan_rest(replica, records, attributes, terms, now_ms)
    return _new(PlannedAppend, (replica.tp.partition, replica, records, terms, False, None, None))


def _plan_rest(
    replica: Replica, records: memoryview, attributes: int, terms: AppendTerms, now_ms: int
) -> PlannedAppend | AppendRefusal:
    """Plan a batch that is transactional or compressed, or for a topic that flushes or compresses or is held."""
    header = guard = None
    if attributes & TRANSACTIONAL_BIT:
        # As in Kafka: a client may write in a transaction only under the transactional id that its request names.
        if not terms.transactional:
            return _refused(replica, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        header = _header_of_producer(records)
    if attributes & CODEC_BITS == ZSTD and not terms.zstd:
        return _refused(replica, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    if header is not None and not verification_guards.is_open(replica.log.producers, header):
        # The coordinator is not asked for a batch that would be refused after its answer.
        unready = replica.unready[terms.acks_all]
        if unready is not None:
            return _refused(replica, unready)
        guard = verification_guards.obtain(replica.log.producers, header, now_ms)
    off_loop = replica.flushes or replica.held is not None or _is_heavy(replica, records)
    return PlannedAppend(replica.tp.partition, replica, records, terms, off_loop, header, guard)


def _is_heavy(replica: Replica, records: memoryview) -> bool:
    """Whether the check of a batch inflates, or compresses anew, more than the loop may."""
    return needs_executor(records) or (replica.recompresses and len(records) > INLINE_BYTES)


def _refused(replica: Replica, error: ErrorCode, log_start_offset: int = -1) -> AppendRefusal:
    return AppendRefusal(replica.tp.partition, error, log_start_offset)


def _refused_client(replica: Replica) -> AppendRefusal:
    if not replica.mirrors:
        return _refused(replica, ErrorCode.INVALID_TOPIC_EXCEPTION)
    message = f"{replica.tp.topic} is a mirror, and read-only until moldau mirror failover or promote"
    return AppendRefusal(replica.tp.partition, ErrorCode.INVALID_REQUEST, message=message)


def append_planned(planned: PlannedAppend, now_ms: int, checked: Checked | None = None) -> Appended | AppendRefusal:
    """Append a planned batch, which is patched in place, if the state that it was planned on has not changed.
    `checked`: the outcome of the batch's check where that was too heavy for the loop."""
    _, replica, records, terms, _, header, guard = planned
    replica.traffic.produces += 1
    unready = replica.unready[terms.acks_all]
    if unready is not None:
        return _refused(replica, unready)
    if header is not None:
        error = verification_guards.check(replica.log.producers, header, guard, terms.transaction_version)
        if error is not None:
            return _refused(replica, error, replica.log.log_start_offset)
    if checked is None:
        checked = check_produce(records, replica.rules, now_ms)
    if checked.error:
        # What Kafka's response carries of an error depends on where Kafka finds it: in front of the log, or in it.
        start = replica.log.log_start_offset if reached_the_log(checked) else -1
        message = checked.message if is_told(checked) else None
        stamp, errors = checked.max_timestamp, checked.record_errors
        return AppendRefusal(replica.tp.partition, checked.error, start, message, errors, stamp)
    try:
        return replica.append(records, checked, now_ms)
    except KafkaError as failed:
        return _refused(replica, failed.code)


async def append_off_loop(planned: PlannedAppend, now_ms: int) -> Appended | AppendRefusal:
    """Like `append_planned`, with a heavy check in the executor, when nothing holds appends up, and after the flush
    that `flush.messages` asks for."""
    checked, replica, records = None, planned.replica, planned.records
    if _is_heavy(replica, records):
        checked = await replica.runtime.run(partial(check_produce, records, replica.rules, now_ms))
    await replica.until_free()
    outcome = append_planned(planned, now_ms, checked)
    if not outcome.error:
        try:
            await replica.flush_if_due(len(records))
        except KafkaError as failed:
            return _refused(replica, failed.code)
    return outcome


def _header_of_producer(records: memoryview) -> BatchHeader | None:
    """The header, not yet checked, of a batch that a producer with an id wrote; None for anything else."""
    if len(records) < HEADER_SIZE:
        return None
    header = read_header(records)
    return header if header.producer_id >= 0 else None
