"""A follower applies its leader's answer for one partition in this order:

    1  Is the answer still for us? Same leader and leader epoch, and the log ends where it was asked from; nothing
       holds appends up.
    2  Error: the log begins before the leader's -> begin anew where that begins; any other error -> pause.
    3  The logs differ -> truncate, and nothing else of this answer (KAFKA-14704).
    4  The leader's next batch is of an earlier epoch than the log's last one: epochs rise in a leader's log, so the
       records of later epochs are not in it -> truncate them, if none of them is committed. Leader epochs alone cannot
       show that (KIP-101): both logs have records of that epoch, and the leader's may reach further.
    5  Append.
    6  High watermark: the leader's, at most the own end. It never falls here: what was committed stays so.
    7  Log start: the leader's.
    8  Flush, if `flush.messages` asks for it, before the next request tells the leader of the new end.

1 to 7 happen in one turn of the loop, so that no change of leadership comes between them. Blocking work
(truncating, beginning anew, flushing) is left to the caller as the answer's `Rest`.
"""

import enum
from typing import Final, NamedTuple

from moldau.error_codes import error_of
from moldau.errors import ErrorCode, KafkaError
from moldau.log import replicated
from moldau.log.epochs import Epochs, EpochStart
from moldau.log.log import Log
from moldau.names import BrokerId, Offset
from moldau.protocol.messages.fetch import PartitionData
from moldau.records.batch import HEADER_SIZE, batches, crc_holds, read_header
from moldau.replication.for_followers import EpochEnd, FollowerPosition
from moldau.replication.replica import Replica
from moldau.runtime import Buffer


class LeaderAnswer(NamedTuple):
    """A leader's answer for one partition. `log_start_offset` is -1 with most errors."""

    error: ErrorCode
    high_watermark: int
    log_start_offset: int
    diverging: EpochEnd | None
    records: Buffer


def answer_in(part: PartitionData) -> LeaderAnswer:
    diverging = part.diverging_epoch
    return LeaderAnswer(
        error_of(part.error_code) if part.error_code else ErrorCode.NONE,
        part.high_watermark,
        part.log_start_offset,
        None if diverging.end_offset < 0 else EpochEnd(diverging.epoch, diverging.end_offset),
        part.records or b"",
    )


class Act(enum.Enum):
    """The work left to do after an answer."""

    ASK = "ask for more"
    DROP = "forget the answer: it is of another leader or epoch"
    PAUSE = "ask again after a pause"
    TRUNCATE = "truncate the log to `offset`"
    BEGIN_ANEW = "begin the log anew at `offset`"
    FLUSH = "flush the log, then ask for more"


class Rest(NamedTuple):
    """The work left to do. `answer`: the leader's answer, to be applied once the log has begun anew. `why`: a reason
    that the operator has to hear."""

    act: Act
    offset: Offset = Offset(-1)
    error: KafkaError | None = None
    answer: LeaderAnswer | None = None
    why: str = ""


_ASK: Final = Rest(Act.ASK)
_DROP: Final = Rest(Act.DROP)


def position_of(replica: Replica) -> FollowerPosition:
    """The position that a follower asks for next."""
    log = replica.log
    return FollowerPosition(
        replica.leadership.leader_epoch, log.log_end_offset, log.epochs.latest, log.log_start_offset
    )


def position_behind(asked: FollowerPosition, answer: LeaderAnswer) -> FollowerPosition | None:
    """The follower's position once it has written the records of this answer; it `asked` for them. None unless that
    position is below the leader's high watermark. Only positions at or above the high watermark decide what is
    committed and who joins the in-sync replicas, so a follower may name a lower one before it has written the
    records."""
    if answer.error or answer.diverging is not None or answer.high_watermark <= asked.offset:
        return None
    headers = [header for _, header in batches(answer.records)]
    if not headers or not asked.offset < headers[-1].next_offset < answer.high_watermark:
        return None
    return asked._replace(offset=headers[-1].next_offset, last_fetched_epoch=headers[-1].partition_leader_epoch)


def take_answer(replica: Replica, leader: BrokerId, asked: FollowerPosition, answer: LeaderAnswer, now_ms: int) -> Rest:
    """Apply an answer of `leader` to a question that was `asked`; returns what is left to do."""
    leadership, log = replica.leadership, replica.log
    if leadership.leader != leader or leadership.leader_epoch != asked.leader_epoch:
        return _DROP
    if log.log_end_offset != asked.offset:
        return _DROP
    if replica.held is not None:
        return Rest(Act.PAUSE, error=KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))  # for a moment
    if answer.error is ErrorCode.OFFSET_OUT_OF_RANGE and answer.log_start_offset > log.log_end_offset:
        return Rest(Act.BEGIN_ANEW, Offset(answer.log_start_offset))
    if answer.error:
        return Rest(Act.PAUSE, error=KafkaError(answer.error))
    if answer.diverging is not None:
        return _without_from(log, truncation_point(log.epochs, log.log_end_offset, answer.diverging))
    contradicted = _contradicted(log, answer.records)
    if contradicted is not None and contradicted.start_offset >= replica.high_watermark:
        why = (
            f"its records of leader epoch {contradicted.epoch} from offset {contradicted.start_offset} on are removed, "
            f"and fetched anew: broker {leader}, the leader, has other records there"
        )
        return _without_from(log, Offset(contradicted.start_offset))._replace(why=why)
    base = _base_before(log, answer.records)
    if base is not None:
        return Rest(Act.BEGIN_ANEW, base, answer=answer)
    return apply_answer(replica, answer, now_ms)


def _without_from(log: Log, point: Offset) -> Rest:
    return Rest(Act.TRUNCATE if point >= log.log_start_offset else Act.BEGIN_ANEW, point)


def _contradicted(log: Log, records: Buffer) -> EpochStart | None:
    """The first epoch of this log that is above the epoch of the leader's next batch. A batch that must not be appended
    for another reason proves nothing."""
    if len(records) < HEADER_SIZE:
        return None
    header = read_header(records)
    epoch = header.partition_leader_epoch
    if epoch >= log.epochs.latest or epoch < 0 or header.base_offset < log.log_end_offset or not crc_holds(records):
        return None
    return next(start for start in log.epochs.starts if start.epoch > epoch)


def _base_before(log: Log, records: Buffer) -> Offset | None:
    """Where the leader's first batch begins if an empty log starts within it, as the leader's does (DeleteRecords):
    the log has to begin there, as in Kafka."""
    if log.log_start_offset < log.log_end_offset or len(records) < HEADER_SIZE:
        return None
    header = read_header(records)
    is_within = 0 <= header.base_offset < log.log_end_offset <= header.last_offset
    return Offset(header.base_offset) if is_within else None


def apply_answer(replica: Replica, answer: LeaderAnswer, now_ms: int) -> Rest:
    """Append, and take over the high watermark and the log start."""
    log = replica.log
    try:
        if len(answer.records):
            replicated.append(log, answer.records, replica.leadership.leader_epoch, now_ms)
            replica.traffic.replicated_in += len(answer.records)
        replica.follow_watermark(Offset(answer.high_watermark))
        if log.log_start_offset < answer.log_start_offset <= log.log_end_offset:
            log.delete_records_before(answer.log_start_offset)
    except KafkaError as failed:
        return Rest(Act.PAUSE, error=failed)
    return Rest(Act.FLUSH) if replica.is_flush_due else _ASK


def truncation_point(epochs: Epochs, log_end: int, diverging: EpochEnd) -> Offset:
    """Up to where this log may agree with the leader's, which knows of the epoch that was asked for only what
    `diverging` says. If this log has no record of that epoch, the next answer may say that it still differs."""
    if diverging.epoch < 0:
        return Offset(min(diverging.end_offset, log_end))
    own_epoch, own_end = epochs.end_of(diverging.epoch, log_end)
    if own_epoch < 0:
        return Offset(min(diverging.end_offset, log_end))
    if own_epoch < diverging.epoch:
        return Offset(min(own_end, log_end))
    return Offset(min(own_end, diverging.end_offset, log_end))
