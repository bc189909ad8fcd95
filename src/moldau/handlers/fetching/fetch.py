"""Fetch (key 1), versions 4 to 18: slices of the log, up to where this reader may see.

Kafka's behaviour: the request's and each partition's byte limit hold, except for the first batch of the first
partition that has one, which goes out whole (KIP-74); fewer than `min_bytes` wait for up to `max_wait_ms`, unless a
partition has an error. In a session (`fetch_sessions`) a request names what changed, and so does its answer. From
version 13 on a topic is named by its id. Slices end where the watermark stands, or the last stable offset for readers
of committed records, who are also told which transactions were aborted: an empty list rather than null if none were. A
batch that contains the offset asked for is sent from its start.

With the rack-aware `replica.selector.class` a leader sends readers that name a rack (version 11 or higher) on to a
follower there: the answer has that broker's id and no records (KIP-392). Followers answer every reader from version 11
on, whatever its rack and their settings, up to where they know the high watermark: nothing between that and the end of
their log, OFFSET_OUT_OF_RANGE beyond. Before version 11 they refuse readers, except those that compare replicas
(replica id -2, as `kafka-replica-verification` says). A client needs READ on a topic, a follower CLUSTER_ACTION.

Not Kafka's: until a reply has left it holds a file open for each partition with records, and the process has only so
many descriptors. A reply that may hold no more ends there, as at the byte limit: the partitions behind it have no
records this time. Clients rotate the partitions they ask for, and so do sessions, so each has its turn.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from moldau.errors import ErrorCode, KafkaError
from moldau.handlers.denied_topics import IsDenied, everything, is_denied
from moldau.handlers.fetching.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, NO_SESSION, FetchSession, FetchSessions
from moldau.protocol.fetch_request import CONSUMER, Fetch, FetchPartition, FetchTopic
from moldau.protocol.hot_fetch import COMPARES_REPLICAS, FetchReply, FetchResult
from moldau.protocol.hot_topics import WIDE
from moldau.replication.leadership import Leadership
from moldau.replication.replica import Replica
from moldau.replication.replicas import Replicas
from moldau.replication.results import EXPECTED
from moldau.replication.waiting import Wait
from moldau.requests.access import CLUSTER_ACTION, READ_TOPIC
from moldau.requests.gate import Pending
from moldau.requests.session import Call
from moldau.runtime import Runtime
from moldau.turns import Steps, Turns, turn

if TYPE_CHECKING:
    from moldau.protocol.messages.fetch import FetchResponse

NAMES_UNTIL = 12
SESSION_ID_MAX = 2**31 - 1
NOT_THERE = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, READ_TOPIC.denied)
"""Kafka answers these before it looks at a log, with no aborted transactions instead of null."""
READ_COMMITTED = 1
_NONE = ErrorCode.NONE


FetchAnswer: TypeAlias = "FetchReply | FetchResponse"
Near: TypeAlias = Callable[[Leadership, int], int | None]
"""The broker that the reader of a request is to read a partition from, which is led here, from an offset on; None if
it is to read from here."""


class Reader(NamedTuple):
    """Where a reader may be sent on to, and what it may not read; None if it reads here, and everything. `owner` is the
    principal that its session is of, where rights are asked for."""

    near: Near | None = None
    is_denied: IsDenied | None = None
    owner: str = ""


UNRESTRICTED = Reader()
Asked: TypeAlias = tuple[bool, Fetch, FetchSession | None, Sequence[FetchTopic], Reader]
"""Whether a request names topics by id, the request, its session if it goes on with one, all topics it is about, and
its reader."""
Read: TypeAlias = tuple[list[FetchResult], int, list[Replica]]
"""What the partitions have: one result each, how many bytes are missing (none if something must be told at once), and
the partitions that may get more."""


class BudgetedRead:
    """The partitions of a request are read one by one (`add`), within the limits of its bytes, and of the files that
    its reply may hold. `read` has the outcome."""

    __slots__ = ("_bytes_left", "_committed", "_files_left", "_hold", "_hosts", "_is_denied", "_is_first", "_missing",
                 "_near", "_reads_followers", "_replica_id", "_replicas", "_results")  # fmt: skip

    def __init__(
        self,
        request: Fetch,
        topics: Sequence[FetchTopic],
        bytes_max: int,
        replicas: Replicas,
        reader: Reader = UNRESTRICTED,
    ):
        self._replicas = replicas
        self._near, self._is_denied, _ = reader
        self._replica_id = request.replica_id
        self._reads_followers = request.rack is not None or request.replica_id == COMPARES_REPLICAS
        self._committed = request.isolation_level == READ_COMMITTED
        self._bytes_left = min(request.max_bytes, bytes_max)
        self._missing = request.min_bytes if topics else 0
        is_one = len(topics) == 1 == len(topics[0][2])  # whose file each connection may hold
        self._hold = None if is_one else replicas.files.hold()
        self._files_left = 0 if self._hold is None else self._hold.count
        self._is_first = True  # no partition had a batch so far: the next one's first batch goes out whole
        self._results: list[FetchResult] = []
        self._hosts: list[Replica] = []

    def add(self, name: str | None, topic_id: bytes | None, part: FetchPartition) -> None:
        replicas, (index, leader_epoch, offset, bytes_max) = self._replicas, part
        replica = replicas.hosted.get((name if topic_id is None else replicas.names.get(topic_id), index))
        try:
            if self._is_denied is not None and self._is_denied(name, topic_id):
                raise KafkaError(READ_TOPIC.denied)
            if replica is None:
                raise KafkaError(replicas.absence(name, topic_id, index))
            if self._replica_id > CONSUMER:  # a client that says it is a broker, and has not introduced itself
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            if self._near is not None and (preferred := self._near(replica.leadership, offset)) is not None:
                self._results.append(_sent_on(replica, index, leader_epoch, preferred))
                self._missing = 0
                return
            limit = max(min(bytes_max, self._bytes_left), 0)
            read = replica.read(offset, limit, self._committed, self._is_first, leader_epoch, self._reads_followers)
        except KafkaError as error:
            self._results.append(_error(part, error.code, error.code in NOT_THERE))
            self._missing = 0
            if replica is not None:
                replica.traffic.fetches += 1
                replica.traffic.failed_fetches += error.code not in EXPECTED and error.code not in NOT_THERE
            return
        traffic = replica.traffic
        traffic.fetches += 1
        self._results.append(FetchResult(index, _NONE, *read))
        self._hosts.append(replica)
        if read.records is not None:
            self._is_first = False
            self._bytes_left -= read.records.length
            self._missing -= read.records.length
            traffic.bytes_out += read.records.length
            self._files_left -= 1
            if not self._files_left and self._hold is not None:  # it may hold no more: the rest is asked for again
                self._bytes_left = self._missing = 0

    @property
    def read(self) -> Read:
        """The outcome. Files that the reply does not hold are given back; its last slice, which leaves last, holds the
        others."""
        hold, results = self._hold, self._results
        if hold is not None and not self._is_first:
            hold.shrink(hold.count - self._files_left)
            last = max(at for at, result in enumerate(results) if result.records is not None)
            records = results[last].records
            assert records is not None
            results[last] = results[last]._replace(records=records._replace(hold=hold))
        return results, self._missing, self._hosts


class FetchHandler:
    """`followers` answers the brokers that follow this one; a broker alone has none. `near` returns where the readers
    in a rack that came to a listener may be sent on to; None if readers are never sent on."""

    def __init__(
        self,
        replicas: Replicas,
        bytes_max: int,
        sessions_max: int,
        runtime: Runtime,
        turns: Turns,
        followers: "Callable[[Fetch, Call], FetchAnswer | Pending] | None" = None,
        near: Callable[[str, str], Near] | None = None,
    ):
        self._followers = followers
        self._near = near
        self._replicas = replicas
        self._turns = turns
        self._bytes_max = bytes_max
        self._elapsed_s = runtime.clock.elapsed_s
        self._sessions = FetchSessions(sessions_max, lambda: 1 + runtime.random.below(SESSION_ID_MAX))

    def _elapsed_ms(self) -> int:
        return int(self._elapsed_s() * 1000)

    def __call__(self, request: Fetch, call: Call) -> "FetchAnswer | Pending | Awaitable[FetchAnswer]":
        by_id = call.version > NAMES_UNTIL
        denied = None if call.session.authorizer is None else self._denied(request, call)
        is_follower = request.follower is not None and call.session.introduction is not None
        if is_follower and self._followers is not None and denied is not everything:
            return self._followers(request, call)
        near = self._near(request.rack, call.session.listener) if request.rack and self._near is not None else None
        reader = UNRESTRICTED
        if near is not None or denied is not None:
            reader = Reader(near, denied, call.session.principal if denied is not None else "")
        if request.is_wide:
            return self._wide(request, by_id, reader)
        session: FetchSession | None = None
        if _is_in_a_session(request):
            resumed = turn(self._sessions.go_on(request, by_id, self._elapsed_ms(), reader.owner))
            if isinstance(resumed, ErrorCode):
                return FetchReply(resumed, NO_SESSION, (), ())
            session = resumed
        if session is not None and len(session.held) > WIDE:
            return self._in_turns(request, by_id, session, reader)
        topics = request.topics if session is None else turn(session.topics())
        results, missing, hosts = self._read(request, topics, reader)
        if missing <= 0 or request.max_wait_ms <= 0:
            if request.session_epoch == FINAL_EPOCH:
                return FetchReply(_NONE, NO_SESSION, topics, results)
            reply: FetchReply = turn(self._reply((by_id, request, session, topics, reader), results))
            return reply
        return self._wait((by_id, request, session, topics, reader), results, missing, hosts)

    def _denied(self, request: Fetch, call: Call) -> IsDenied | None:
        """The topics that this client may not read: all of them if it claims to be a broker and lacks CLUSTER_ACTION;
        None if nothing is denied."""
        if request.replica_id > CONSUMER:
            return None if call.may(CLUSTER_ACTION) else everything
        return is_denied(call, READ_TOPIC, self._replicas)

    async def _wide(self, request: Fetch, by_id: bool, reader: Reader) -> FetchReply:
        """A request that names very many partitions."""
        session: FetchSession | None = None
        if _is_in_a_session(request):
            resumed = await self._turns.run(self._sessions.go_on(request, by_id, self._elapsed_ms(), reader.owner))
            if isinstance(resumed, ErrorCode):
                return FetchReply(resumed, NO_SESSION, (), ())
            session = resumed
        return await self._in_turns(request, by_id, session, reader)

    async def _in_turns(self, request: Fetch, by_id: bool, session: FetchSession | None, reader: Reader) -> FetchReply:
        async with self._turns:
            topics = request.topics if session is None else await self._turns.finish(session.topics())
            results, missing, hosts = await self._turns.finish(self._read_in_turns(request, topics, reader))
        asked = by_id, request, session, topics, reader
        if missing <= 0 or request.max_wait_ms <= 0:
            return await self._turns.run(self._reply(asked, results))
        return await self._wait(asked, results, missing, hosts)

    def _reply(self, asked: Asked, results: list[FetchResult]) -> Steps[FetchReply]:
        by_id, request, session, topics, reader = asked
        session_id = NO_SESSION
        if session is not None:
            session_id = session.id
            topics, results = yield from session.news(topics, results)
        elif request.session_epoch == INITIAL_EPOCH:
            session_id = yield from self._sessions.begin(topics, results, by_id, self._elapsed_ms(), reader.owner)
        return FetchReply(_NONE, session_id, topics, results)

    async def _wait(self, asked: Asked, results: list[FetchResult], missing: int, hosts: list[Replica]) -> FetchReply:
        """Wait until the partitions have more than these `results`."""
        _, request, _, topics, reader = asked
        loop = asyncio.get_running_loop()
        deadline = loop.time() + request.max_wait_ms / 1000
        while True:  # what came may be part of a transaction, or its end: not all of it is for this reader
            waiters = [replica.waiters for replica in hosts]
            read_until = [result.high_watermark for result in results]
            if missing < request.min_bytes:  # what was read is not sent, and is read again
                _uncount(results, hosts)
            results.clear()  # a request that waits holds no file open
            wait = Wait.for_bytes(missing, deadline - loop.time(), waiters, loop)
            if read_until != [replica.high_watermark for replica in hosts]:  # since an earlier turn of the loop
                wait.finish()
            await wait.done
            results, missing, hosts = await self._turns.run(self._read_in_turns(request, topics, reader))
            if missing <= 0 or loop.time() >= deadline:
                return await self._turns.run(self._reply(asked, results))

    def _read(self, request: Fetch, topics: Sequence[FetchTopic], reader: Reader) -> Read:
        reading = BudgetedRead(request, topics, self._bytes_max, self._replicas, reader)
        for name, topic_id, parts in topics:
            for part in parts:
                reading.add(name, topic_id, part)
        return reading.read

    def _read_in_turns(self, request: Fetch, topics: Sequence[FetchTopic], reader: Reader) -> Steps[Read]:
        reading = BudgetedRead(request, topics, self._bytes_max, self._replicas, reader)
        for name, topic_id, parts in topics:
            for part in parts:
                yield
                reading.add(name, topic_id, part)
        return reading.read


def _is_in_a_session(request: Fetch) -> bool:
    return bool(request.session_id) or request.session_epoch != FINAL_EPOCH


def _uncount(results: Sequence[FetchResult], hosts: Sequence[Replica]) -> None:
    for replica, result in zip(hosts, results, strict=False):
        if result.records is not None:
            replica.traffic.bytes_out -= result.records.length


def _sent_on(replica: Replica, index: int, leader_epoch: int, preferred: int) -> FetchResult:
    """The answer of a leader whose reader is to read from another broker. Raises `KafkaError`, as a read does; but the
    offset need not be in this log, as in Kafka."""
    at_end = replica.read(replica.high_watermark, 0, False, False, leader_epoch)
    return FetchResult(index, _NONE, *at_end, preferred)


def _error(part: FetchPartition, code: ErrorCode, not_there: bool = False) -> FetchResult:
    return FetchResult(part[0], code, -1, -1, -1, [] if not_there else None)
