"""A leader's answers to its followers: records up to the end of its log, or where a follower's log differs from it.

A follower names the offset it has reached and the leader epoch of its last record. If that epoch ended earlier in this
log, the answer says only that: the follower truncates and asks again (KIP-595's form of KIP-101 and KIP-279). Otherwise
the follower has everything below the offset, and that is noted before anything is read, if the cluster knows it.
"""

from typing import Final, NamedTuple

from moldau.errors import ErrorCode, KafkaError
from moldau.names import BrokerId, Offset
from moldau.replication.lookups import end_of_epoch
from moldau.replication.replica import Replica
from moldau.replies import FileSlice

_NONE: Final = ErrorCode.NONE
_new: Final = tuple.__new__  # what a NamedTuple's constructor does, at a third of its cost


class EpochEnd(NamedTuple):
    """The largest leader epoch at or below one that a follower named, and where it ended in the leader's log. Epoch -1
    if the leader knows none: then the offset is the end of its log."""

    epoch: int
    end_offset: int


class FollowerPosition(NamedTuple):
    """How far a follower's log is; `last_fetched_epoch` is -1 for an empty log. `log_start_offset` is where it begins,
    -1 if the follower does not say."""

    leader_epoch: int
    offset: int
    last_fetched_epoch: int
    log_start_offset: int = -1


class Asker(NamedTuple):
    """The follower. `counts`: the cluster shows it with that broker epoch; otherwise it is sent records, and nothing is
    noted of it. `may_join`: it counts, and is not about to stop."""

    broker: BrokerId
    broker_epoch: int
    counts: bool
    may_join: bool


class FollowerRead(NamedTuple):
    """The answer for one partition. `log_start_offset` holds also with OFFSET_OUT_OF_RANGE."""

    error: ErrorCode
    high_watermark: int
    log_start_offset: int
    diverging: EpochEnd | None = None
    records: FileSlice | None = None


def read_for(
    replica: Replica, asker: Asker, position: FollowerPosition, max_bytes: int, min_one: bool, now_ms: int
) -> FollowerRead:
    """Note how far the follower is, and read on from there. `max_bytes` and `min_one` are those of `Log.read`."""
    leadership, log = replica.leadership, replica.log
    error = replica.leadership_error(position.leader_epoch)
    if error is not None:
        return FollowerRead(error, -1, -1)
    if position.offset < log.log_start_offset:
        return FollowerRead(ErrorCode.OFFSET_OUT_OF_RANGE, replica.high_watermark, log.log_start_offset)
    diverging = divergence(replica, position)
    if diverging is not None:
        if asker.counts:
            replica.follower_diverged(asker.broker)
        return FollowerRead(ErrorCode.NONE, replica.high_watermark, log.log_start_offset, diverging)
    if asker.broker not in leadership.replicas:
        return FollowerRead(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, -1)
    if asker.counts:
        offset = Offset(position.offset)
        if not replica.follower_asked(asker.broker, offset, asker.broker_epoch, asker.may_join, now_ms):
            return FollowerRead(ErrorCode.STALE_BROKER_EPOCH, -1, -1)
        replica.follower_starts_at(asker.broker, Offset(position.log_start_offset))
    try:
        records = log.read(position.offset, max_bytes, log.log_end_offset, min_one)
    except KafkaError as failed:
        return FollowerRead(failed.code, -1, -1)
    return _new(FollowerRead, (_NONE, replica.high_watermark, log.log_start_offset, None, records))


def divergence(replica: Replica, position: FollowerPosition) -> EpochEnd | None:
    """Where the follower's log differs from this one at the latest; None if it is a beginning of it."""
    epoch, end_offset = -1, -1
    if position.last_fetched_epoch >= 0:
        epoch, end_offset = end_of_epoch(replica, position.last_fetched_epoch)
    if epoch < 0:  # nothing is known of that epoch: all that can be said is where this log ends
        end_offset = replica.log.log_end_offset
        return EpochEnd(-1, end_offset) if position.offset > end_offset else None
    is_beginning = epoch >= position.last_fetched_epoch and end_offset >= position.offset
    return None if is_beginning else EpochEnd(epoch, end_offset)
