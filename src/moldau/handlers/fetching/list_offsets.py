"""ListOffsets (key 2), versions 1 to 11: the offset at a time, or at one of the ends.

Kafka's special timestamps: -1 the end that this reader may see, -2 the first offset, -3 the record with the largest
timestamp (version 7), -4 the first local offset (8) and -5 the last tiered one (9), -6 the first not yet uploaded
(11): with nothing tiered the first is the log's start and the other two are unknown (-1). A time answers the first
record at or after it. Readers of committed records (version 2) see up to the last stable offset, others up to the high
watermark.

A new leader whose high watermark is below the start of its epoch does not know the end, nor a record that it does not
find: OFFSET_NOT_AVAILABLE (LEADER_NOT_AVAILABLE before version 5), and clients ask again (KIP-207). A client needs
DESCRIBE on a topic.

A time is searched for in steps (see `log/times`), and a request is answered piece by piece (see `places`): other
connections are served while it has much to look at.
"""

from collections.abc import Awaitable

from moldau.errors import ErrorCode, KafkaError
from moldau.handlers.fetching.places import LookUps, Places
from moldau.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from moldau.replication.lookups import epoch_at, look_up, may_have_more
from moldau.replication.replica import Replica
from moldau.replication.replicas import Replicas
from moldau.requests.access import DESCRIBE_TOPIC
from moldau.requests.session import Call

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
READ_COMMITTED = 1
FIRST_VERSION = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
NOT_AVAILABLE_SINCE = 5
TURN, PLACE, SEARCH = 1024, 1, 64
"""The cost that a turn may have, and the costs of an offset by name and of a search."""


class ListOffsets:
    def __init__(self, replicas: Replicas, places: Places):
        self._replicas = replicas
        self._places = places

    def __call__(self, request: ListOffsetsRequest, call: Call) -> ListOffsetsResponse | Awaitable[ListOffsetsResponse]:
        return self._places.carry_out(self._answer(request, call))

    def _answer(self, request: ListOffsetsRequest, call: Call) -> LookUps[ListOffsetsResponse]:
        asked: dict[tuple[str, int], int] = {}
        left = TURN
        for topic in request.topics:
            for part in topic.partitions:
                if left <= 0:
                    left = yield from _turn()
                left -= PLACE
                asked[topic.name, part.partition_index] = asked.get((topic.name, part.partition_index), 0) + 1
        committed = request.isolation_level == READ_COMMITTED
        topics = []
        for topic in request.topics:
            parts, denied = [], not call.may(DESCRIBE_TOPIC, topic.name)
            for part in topic.partitions:
                if left <= 0:
                    left = yield from _turn()
                left -= SEARCH if part.timestamp >= 0 or part.timestamp == MAX_TIMESTAMP else PLACE
                times = asked[topic.name, part.partition_index]
                if denied:
                    parts.append(_error(part, DESCRIBE_TOPIC.denied))
                elif times == 1:
                    parts.append((yield from self._one(topic.name, part, call.version, committed)))
                elif times > 1:  # one error tells of all of them
                    parts.append(_error(part, ErrorCode.INVALID_REQUEST))
                    asked[topic.name, part.partition_index] = 0
            topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=parts))
        return ListOffsetsResponse(topics=topics)

    def _one(
        self, topic: str, part: ListOffsetsPartition, version: int, committed: bool
    ) -> LookUps[ListOffsetsPartitionResponse]:
        replica = self._replicas.find(topic, None, part.partition_index)
        if replica is None:
            return _error(part, self._replicas.absence(topic, None, part.partition_index))
        code = replica.reader_error(part.current_leader_epoch)
        if code:
            return _error(part, code)
        if part.timestamp < 0 and version < FIRST_VERSION.get(part.timestamp, 0):
            return _error(part, ErrorCode.UNSUPPORTED_VERSION)
        if part.timestamp < EARLIEST_PENDING_UPLOAD:
            return _error(part, ErrorCode.UNSUPPORTED_VERSION)
        try:
            timestamp, offset, epoch = yield from _look_up(replica, part.timestamp, committed)
        except KafkaError as error:  # a partition that was deleted or moved meanwhile has let go of its log
            code = replica.reader_error(part.current_leader_epoch) or error.code
            is_unknown = code is ErrorCode.OFFSET_NOT_AVAILABLE and version < NOT_AVAILABLE_SINCE
            return _error(part, ErrorCode.LEADER_NOT_AVAILABLE if is_unknown else code)
        code = replica.reader_error(part.current_leader_epoch)
        if code:
            return _error(part, code)
        return ListOffsetsPartitionResponse(
            partition_index=part.partition_index, timestamp=timestamp, offset=offset, leader_epoch=epoch
        )


def _turn() -> LookUps[int]:
    """Let others have theirs; returns what the next one may cost."""
    yield None
    return TURN


def _look_up(replica: Replica, timestamp: int, committed: bool) -> LookUps[tuple[int, int, int]]:
    """(timestamp, offset, leader epoch), each -1 if this reader may see no such record. Raises `KafkaError`."""
    if timestamp == LATEST:
        _check_known(replica)
        end = replica.end(committed)
        return -1, end, epoch_at(replica, end)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        start = replica.log_start_offset
        return -1, start, epoch_at(replica, start)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return -1, -1, -1
    at = yield from look_up(replica, None if timestamp == MAX_TIMESTAMP else timestamp, committed)
    if at is None:
        _check_known(replica)
        return -1, -1, -1
    return *at, replica.log.epoch_of_batch(at.offset)


def _check_known(replica: Replica) -> None:
    if may_have_more(replica):
        raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE)


def _error(part: ListOffsetsPartition, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=part.partition_index, error_code=code)
