"""Answers about a replica's log without its records: offsets by time, leader epochs, and producers.

ListOffsets, OffsetForLeaderEpoch, DescribeProducers and the Fetch of followers use them.
"""

from collections.abc import Iterator

from moldau.log.times import TimestampSearch
from moldau.records.batch import NO_SEQUENCE
from moldau.replication.replica import Replica
from moldau.replication.results import ActiveProducer


def may_have_more(replica: Replica) -> bool:
    """Whether this new leader does not know yet how far the log is committed: earlier leaders may have told readers of
    offsets above its high watermark (KIP-207)."""
    return replica.high_watermark < replica.leadership.epoch_start


def look_up(replica: Replica, timestamp_ms: int | None, committed: bool) -> TimestampSearch:
    """Search for the first record at or after a time, or for the first one with the largest timestamp of all where the
    time is None. The steps end with None if a reader may not see that record; `committed`: its isolation level is
    read_committed. Raises `KafkaError`."""
    log = replica.log
    search = log.by_time.first_of_largest() if timestamp_ms is None else log.by_time.first_since(timestamp_ms)
    at = yield from search
    return None if at is None or at.offset >= replica.end(committed) else at


def epoch_at(replica: Replica, offset: int) -> int:
    """The leader epoch of the record at `offset`; at the end of the log, the current epoch."""
    log = replica.log
    return log.epochs.epoch_at(offset) if offset < log.log_end_offset else replica.leadership.leader_epoch


def end_of_epoch(replica: Replica, epoch: int) -> tuple[int, int]:
    """The largest epoch at or below `epoch` that this log knows, and where it ended; (-1, -1) for a later one."""
    epochs, log_end, current = replica.log.epochs, replica.log.log_end_offset, replica.leadership.leader_epoch
    if epoch == current:
        return epoch, log_end
    if 0 <= epochs.latest < epoch < current:
        return epochs.latest, log_end
    return epochs.end_of(epoch, log_end)


def active_producers(replica: Replica) -> Iterator[ActiveProducer]:
    """The producers that the log remembers. The caller may give up the loop between two of them."""
    for producer_id, producer in replica.log.producers:
        yield ActiveProducer(
            producer_id=producer_id,
            epoch=producer.epoch,
            last_sequence=producer.batches[-1].last_sequence if producer.batches else NO_SEQUENCE,
            last_timestamp=producer.last_timestamp,
            coordinator_epoch=producer.coordinator_epoch,
            transaction_start=producer.transaction_start,
        )
