"""Reading of columns: `read_columns` yields an offset range of one partition as Arrow batches. `list_offsets` and
`topic_partitions` find the ranges.

Everything here is synchronous, on blocking sockets and in the caller's thread: it runs in Spark's driver and tasks. The
next Fetch is sent before the current reply is decoded, so that the broker and the kernel work meanwhile. Replies are
received into a reused buffer; decoding copies them once, into Arrow's memory.

Invariants: batches come in offset order; the only gaps are those that compaction, control batches and, with isolation
level read_committed, aborted transactions leave. No record below `start` or at or above `end` is yielded. A batch with
a wrong CRC is never decoded.
"""

import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from moldau.client.blocking import BlockingLink, Caller
from moldau.client.cluster_view import TopicView
from moldau.client.epoch_ends import FetchPosition
from moldau.client.failures import check
from moldau.errors import ConfigError, ErrorCode, KafkaError, ProtocolViolation
from moldau.names import TopicPartition
from moldau.protocol.apis import FETCH, LIST_OFFSETS, OFFSET_FOR_LEADER_EPOCH
from moldau.protocol.codec import read_reply
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from moldau.records.arena import Arena
from moldau.records.batch import batches
from moldau.records.sections import FETCHED_INFLATED_MAX

if TYPE_CHECKING:
    import pyarrow

EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
ISOLATION_LEVELS = ("read_uncommitted", "read_committed")
"""The names of the isolation levels; the index is the number in a request."""
FETCH_MAX_BYTES = 8 * 1024 * 1024
FETCH_WAIT_MS = 500
INFLATED_BYTES = 64 * 1024 * 1024


def fetch_request(
    tp: TopicPartition,
    offset: int,
    max_bytes: int,
    *,
    wait_ms: int = FETCH_WAIT_MS,
    isolation: int = READ_UNCOMMITTED,
    leader_epoch: int = -1,
) -> FetchRequest:
    """A Fetch request for one partition, without a fetch session; only a leader of this epoch answers it, if it is
    given."""
    partition = FetchPartition(
        partition=tp.partition, fetch_offset=offset, partition_max_bytes=max_bytes, current_leader_epoch=leader_epoch
    )
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        isolation_level=isolation,
        topics=[FetchTopic(topic=tp.topic, partitions=[partition])],
    )


class Fetched(NamedTuple):
    """The complete batches of one reply, and producer id and first offset of each aborted transaction among them."""

    records: memoryview | bytes
    aborted: list[tuple[int, int]]


class _Range:
    """Reads one partition in offset order, with one Fetch sent ahead. A new leader is asked first whether it has what
    was read before."""

    def __init__(self, caller: Caller, at: FetchPosition, max_bytes: int, isolation: int):
        self._caller = caller
        self._tp = at.tp
        self._at = at
        self._max_bytes = max_bytes
        self._isolation = isolation
        self._asked: tuple[BlockingLink, int] | None = None

    def ask(self) -> None:
        """Send a Fetch; the next call of `records` takes its reply."""
        link, leader_epoch = self._leader()
        if leader_epoch == self._at.leader_epoch:
            request = fetch_request(
                self._tp, self._at.offset, self._max_bytes, isolation=self._isolation, leader_epoch=leader_epoch
            )
            self._asked = link, link.send(FETCH, request)

    def _leader(self) -> tuple[BlockingLink, int]:
        link, view = self._caller.leader(self._tp), self._caller.view
        self._at.leads_to(view.topic_id(self._tp.topic))
        return link, view.leader_epoch(self._tp)

    def _compare(self) -> None:
        link, leader_epoch = self._leader()
        asked = self._at.request(leader_epoch, link.versions.has(OFFSET_FOR_LEADER_EPOCH))
        if asked is not None:
            self._at.answered(link.call(OFFSET_FOR_LEADER_EPOCH, asked), leader_epoch)

    def records(self) -> Fetched:
        """The complete batches of the reply, beginning with the one that holds the position; no bytes at the end of the
        readable records. The position moves behind them."""
        if self._asked is None:
            self._compare()
            self.ask()
        assert self._asked is not None
        (link, version), self._asked, offset = self._asked, None, self._at.offset
        reply = read_reply(FETCH, version, link.receive())
        check(reply.error_code, f"fetching {self._tp}")
        partition = reply.responses[0].partitions[0]
        check(partition.error_code, f"fetching {self._tp} from offset {offset}")
        if not partition.records:
            return Fetched(b"", [])
        records = memoryview(partition.records)
        for _, header in batches(records):
            if header.last_offset >= self._at.offset:
                self._at.read(header.last_offset + 1, header.partition_leader_epoch)
        if self._at.offset == offset:
            raise ProtocolViolation(f"the reply to a Fetch of {self._tp} has no complete batch from offset {offset} on")
        aborted = [(one.producer_id, one.first_offset) for one in partition.aborted_transactions or ()]
        return Fetched(records, aborted)


def read_columns(
    bootstrap: str | Iterable[str],
    topic: str,
    partition: int,
    start: int,
    end: int,
    *,
    isolation_level: str = "read_committed",
    max_bytes: int = FETCH_MAX_BYTES,
    timeout_ms: int = 30_000,
    client_id: str = "moldau",
    columns: Collection[str] | None = None,
    topic_id: uuid.UUID | None = None,
) -> Iterator["pyarrow.RecordBatch"]:
    """The records with start <= offset < end, in the columns of `records.arrow`; one Arrow batch per Fetch of
    `max_bytes`. `columns` names those to decode. With isolation level read_committed, records of aborted transactions
    are left out, and the readable records end at the last stable offset.

    Raises `KafkaError`: OFFSET_OUT_OF_RANGE if `start` was deleted, REQUEST_TIMED_OUT if the readable records end
    before `end` and none arrives for `timeout_ms`, `LogTruncated` if records of the range were lost while it was read,
    and any error that lasts longer than `timeout_ms`. With `topic_id`,
    raises UNKNOWN_TOPIC_ID if the topic has another id before the first or after the last record: since an id is never
    used again, no error means that all records are of that topic. Raises `ConfigError` for an unknown isolation level.
    """
    tp, isolation = TopicPartition(topic, partition), isolation_number(isolation_level)
    with Caller(bootstrap, client_id=client_id, timeout_ms=timeout_ms, fetch_bytes_max=max_bytes) as caller:
        if topic_id is not None:
            _check_topic_id(caller, topic, topic_id)
        yield from read_range(caller, tp, start, end, isolation, max_bytes, Arena(), columns)
        if topic_id is not None:
            _check_topic_id(caller, topic, topic_id)


def _check_topic_id(caller: Caller, topic: str, topic_id: uuid.UUID) -> None:
    """Raise `KafkaError(UNKNOWN_TOPIC_ID)` unless the topic with this name has this id."""

    def ask() -> None:
        caller.refresh([topic])
        missing = caller.view.missing.get(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if topic not in caller.view.topics and missing != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            check(missing, f"topic {topic}")

    caller.retrying(ask)
    topic_view = caller.view.topics.get(topic)
    if topic_view is None or topic_view.topic_id != topic_id:
        what = "deleted" if topic_view is None else "deleted and created again"
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"topic {topic} was {what}")


def read_range(
    caller: Caller,
    tp: TopicPartition,
    start: int,
    end: int,
    isolation: int,
    max_bytes: int,
    arena: Arena,
    columns: Collection[str] | None = None,
    inflated_bytes: int = INFLATED_BYTES,
    inflated_max: int = FETCHED_INFLATED_MAX,
) -> Iterator["pyarrow.RecordBatch"]:
    """As `read_columns`, through the connections of a caller, who takes all batches before it calls anything else. An
    Arrow batch has about `inflated_bytes` at most, in whole batches of Kafka's, none of which may inflate to more than
    `inflated_max` bytes."""
    from moldau.records.arrow import ALL, to_record_batches

    names = ALL if columns is None else columns
    at = FetchPosition(tp, start)
    walk, idle_ms = _Range(caller, at, max_bytes, isolation), 0
    while at.offset < end:
        position = at.offset
        fetched: Fetched = caller.retrying(walk.records)
        if at.offset == position:
            idle_ms += FETCH_WAIT_MS
            if idle_ms >= caller.timeout_ms:
                raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"{tp} ends at offset {position}, before {end}")
            continue
        idle_ms = 0
        if at.offset < end:
            caller.retrying(walk.ask)
        yield from to_record_batches(
            fetched.records,
            *tp,
            start,
            end,
            bytes_max=inflated_bytes,
            aborted=fetched.aborted,
            arena=arena,
            names=names,
            inflated_max=inflated_max,
        )


def isolation_number(level: str) -> int:
    """The number of an isolation level in requests. Raises `ConfigError`."""
    if level not in ISOLATION_LEVELS:
        raise ConfigError(f"isolation level {level!r} is not one of {', '.join(ISOLATION_LEVELS)}")
    return ISOLATION_LEVELS.index(level)


def list_offsets(
    bootstrap: str | Iterable[str],
    wanted: Mapping[TopicPartition, int],
    *,
    isolation_level: str = "read_uncommitted",
    timeout_ms: int = 30_000,
    client_id: str = "moldau",
) -> dict[TopicPartition, int]:
    """For each partition the offset at `EARLIEST`, `LATEST`, `MAX_TIMESTAMP` or of the first record at or after a time
    in ms since 1970; -1 if no record is at or after it. With isolation level read_committed, `LATEST` is the last
    stable offset. Raises `KafkaError`."""
    committed = isolation_number(isolation_level) == READ_COMMITTED
    offsets: dict[TopicPartition, int] = {}
    with Caller(bootstrap, client_id=client_id, timeout_ms=timeout_ms) as caller:

        def ask() -> None:
            by_leader: dict[BlockingLink, list[TopicPartition]] = {}
            unknown = {tp.topic: None for tp in wanted if tp.topic not in caller.view.topics}
            if unknown:
                caller.refresh(unknown)
            for tp in wanted:
                if tp not in offsets:
                    by_leader.setdefault(caller.leader(tp), []).append(tp)
            for link, partitions in by_leader.items():
                offsets.update(offsets_of(link, {tp: wanted[tp] for tp in partitions}, committed=committed))

        caller.retrying(ask)
    return {tp: offsets[tp] for tp in wanted}


def list_offsets_request(wanted: Mapping[TopicPartition, int], *, committed: bool = False) -> ListOffsetsRequest:
    """A ListOffsets request for partitions of one leader, each with its time. With `committed`, LATEST is the last
    stable offset."""
    topics: dict[str, ListOffsetsTopic] = {}
    for tp, time_ms in wanted.items():
        topic = topics.setdefault(tp.topic, ListOffsetsTopic(name=tp.topic))
        topic.partitions.append(ListOffsetsPartition(partition_index=tp.partition, timestamp=time_ms))
    isolation = READ_COMMITTED if committed else READ_UNCOMMITTED
    return ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=list(topics.values()), timeout_ms=30_000)


def offsets_of(
    link: BlockingLink, wanted: Mapping[TopicPartition, int], *, committed: bool = False
) -> dict[TopicPartition, int]:
    """Ask one leader."""
    offsets: dict[TopicPartition, int] = {}
    for topic in link.call(LIST_OFFSETS, list_offsets_request(wanted, committed=committed)).topics:
        for p in topic.partitions:
            tp = TopicPartition(topic.name, p.partition_index)
            check(p.error_code, f"listing the offsets of {tp}")
            offsets[tp] = p.offset
    return offsets


def topic_partitions(
    bootstrap: str | Iterable[str],
    topics: Iterable[str] | None = None,
    *,
    timeout_ms: int = 30_000,
    client_id: str = "moldau",
) -> dict[str, list[int]]:
    """The partitions of the named topics, or of all topics that are not internal. Raises `KafkaError` if a named topic
    does not exist."""
    views = describe_topics(bootstrap, topics, timeout_ms=timeout_ms, client_id=client_id)
    return {name: list(topic.partitions) for name, topic in views.items()}


def describe_topics(
    bootstrap: str | Iterable[str],
    topics: Iterable[str] | None = None,
    *,
    timeout_ms: int = 30_000,
    client_id: str = "moldau",
) -> dict[str, TopicView]:
    """The named topics, or all topics that are not internal. Raises `KafkaError` if a named topic does not exist."""
    names = None if topics is None else list(topics)
    with Caller(bootstrap, client_id=client_id, timeout_ms=timeout_ms) as caller:

        def ask() -> None:
            caller.refresh(names)
            if ErrorCode.LEADER_NOT_AVAILABLE in caller.view.missing.values():
                raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, "a topic is still being created")

        caller.retrying(ask)
        views = caller.view.topics
        for name in names or ():
            if name not in views:
                check(caller.view.missing.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), f"topic {name}")
        chosen = sorted(n for n, t in views.items() if not t.internal) if names is None else names
        return {name: views[name] for name in chosen}
