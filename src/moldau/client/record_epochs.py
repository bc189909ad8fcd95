"""Whether a log that does not know a leader epoch holds another record in the place of one of that epoch. Pure.

A replica made after compaction had removed all records of an epoch does not know that epoch, and has lost nothing. So
where only the epoch is missing the batch at the offset decides.
"""

from typing import Any

from moldau.client.epoch_ends import EpochEnd
from moldau.client.failures import check
from moldau.client.fetching import fetch_request
from moldau.errors import ErrorCode
from moldau.names import TopicPartition
from moldau.protocol.messages.fetch import FetchRequest
from moldau.records.batch import batches


def is_open(end: EpochEnd, offset: int, epoch: int) -> bool:
    """Whether this answer to a question about a position leaves open if the record before it is in the log."""
    return end.is_known and end.epoch < epoch and end.end_offset >= offset


def batch_request(tp: TopicPartition, offset: int, leader_epoch: int) -> FetchRequest:
    """Ask the leader for the batch with the record before `offset`, or the next one."""
    return fetch_request(tp, offset - 1, 1, wait_ms=0, leader_epoch=leader_epoch)


def settled(end: EpochEnd, reply: Any, tp: TopicPartition, offset: int, epoch: int) -> EpochEnd:
    """The answer, which holds the position unless the batch is of another epoch. Raises `KafkaError`."""
    check(reply.error_code, f"fetching {tp}")
    data = reply.responses[0].partitions[0]
    if data.error_code != ErrorCode.OFFSET_OUT_OF_RANGE:  # then the next Fetch says so too
        check(data.error_code, f"fetching {tp} from offset {offset - 1}")
        for _, header in batches(memoryview(data.records or b"")):
            if header.base_offset < offset <= header.last_offset + 1 and header.partition_leader_epoch != epoch:
                return end
            break
    return end._replace(epoch=epoch)
