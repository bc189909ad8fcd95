"""Fetch (key 1), versions 4 to 18: slices of the log, up to where this reader may see.

Kafka's behaviour: the request's and each partition's byte limit hold, except for the first batch of the first
partition that has one, which goes out whole (KIP-74); fewer than `min_bytes` wait for up to `max_wait_ms`, unless a
partition has an error. In a session (`fetch_sessions`) a request names what changed, and so does its answer. From
version 13 on a topic is named by its id. Slices end where the watermark stands, or the last stable offset for readers
of committed records, who are also told which transactions were aborted: an empty list rather than null if none were. A
batch that contains the offset asked for is sent from its start.

Not Kafka's: until a reply has left it holds a file open for each partition with records, and the process has only so
many descriptors. A reply that may hold no more ends there, as at the byte limit: the partitions behind it have no
records this time. Clients rotate the partitions they ask for, and so do sessions, so each has its turn.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from moldau.errors import ErrorCode, KafkaError
from moldau.handlers.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, NO_SESSION, FetchSessions, Session
from moldau.protocol.hot_fetch import CONSUMER, Fetch, FetchPartition, FetchResult, FetchTopic, pack_fetch, read_fetch
from moldau.protocol.hot_topics import Wide
from moldau.replication.replica import Replica
from moldau.replication.replicas import Replicas
from moldau.replication.waiting import Wait
from moldau.runtime import Answer, Reply, Runtime
from moldau.turns import Steps, Turns, turn

NAMES_UNTIL = 12
SESSION_ID_MAX = 2**31 - 1
NOT_THERE = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
"""Kafka answers these before it looks at a log, with no aborted transactions instead of null."""
READ_COMMITTED = 1
WIDE = 500
"""A request, or a session, of more partitions is read in turns."""
_NONE = ErrorCode.NONE


Asked: TypeAlias = tuple[int, int, Fetch, Session | None, Sequence[FetchTopic]]
"""A request's version, its correlation id, itself, its session if it goes on with one, and all that it is about."""


class FetchHandler:
    def __init__(self, replicas: Replicas, bytes_max: int, sessions_max: int, runtime: Runtime, turns: Turns):
        self._replicas = replicas
        self._turns = turns
        self._bytes_max = bytes_max
        self._now_ms = runtime.clock.now_ms
        self._sessions = FetchSessions(sessions_max, lambda: 1 + runtime.random.below(SESSION_ID_MAX))

    def __call__(self, version: int, correlation_id: int, body: int, frame: memoryview) -> Answer:
        """`body` is where the message starts. Raises `ProtocolViolation`."""
        try:
            request = read_fetch(frame, version, body, WIDE)
        except Wide:
            return self._read_wide(version, correlation_id, body, memoryview(bytes(frame)))
        session: Session | None = None
        if _is_in_a_session(request):
            found = turn(self._sessions.go_on(request, version > NAMES_UNTIL, self._now_ms()))
            if isinstance(found, ErrorCode):
                return pack_fetch(version, correlation_id, found, NO_SESSION, (), ())
            session = found
        if session is not None and len(session.held) > WIDE:
            return self._in_turns(version, correlation_id, request, session)
        topics = request.topics if session is None else turn(session.topics())
        asked = version, correlation_id, request, session, topics
        results, missing, hosts = turn(self._read(request, topics))
        if missing <= 0 or request.max_wait_ms <= 0:
            if request.session_epoch == FINAL_EPOCH:
                return pack_fetch(version, correlation_id, _NONE, NO_SESSION, topics, results)
            pack: Callable[[], Reply] = turn(self._answer(asked, results))
            return pack()
        return self._wait(asked, missing, hosts)

    async def _read_wide(self, version: int, correlation_id: int, body: int, frame: memoryview) -> Reply:
        """A request that names very many partitions."""
        session: Session | None = None
        with self._turns.holding(len(frame)):
            async with self._turns:
                request = await self._turns.off_loop(partial(read_fetch, frame, version, body))
                if _is_in_a_session(request):
                    going_on = self._sessions.go_on(request, version > NAMES_UNTIL, self._now_ms())
                    found = await self._turns.finish(going_on)
                    if isinstance(found, ErrorCode):
                        return pack_fetch(version, correlation_id, found, NO_SESSION, (), ())
                    session = found
        del frame  # the answer may wait for records
        return await self._in_turns(version, correlation_id, request, session)

    async def _in_turns(self, version: int, correlation_id: int, request: Fetch, session: Session | None) -> Reply:
        async with self._turns:
            topics = request.topics if session is None else await self._turns.finish(session.topics())
            asked = version, correlation_id, request, session, topics
            results, missing, hosts = await self._turns.finish(self._read(request, topics))
        if missing <= 0 or request.max_wait_ms <= 0:
            return await self._answer_in_turns(asked, results)
        return await self._wait(asked, missing, hosts)

    async def _answer_in_turns(self, asked: Asked, results: list[FetchResult]) -> Reply:
        async with self._turns:
            return await self._turns.off_loop(await self._turns.finish(self._answer(asked, results)))

    def _answer(self, asked: Asked, results: list[FetchResult]) -> Steps[Callable[[], Reply]]:
        """The function that packs the reply."""
        version, correlation_id, request, session, topics = asked
        session_id = NO_SESSION
        if session is not None:
            session_id = session.id
            topics, results = yield from session.news(topics, results)
        elif request.session_epoch == INITIAL_EPOCH:
            session_id = yield from self._sessions.begin(topics, results, version > NAMES_UNTIL, self._now_ms())
        return partial(pack_fetch, version, correlation_id, _NONE, session_id, topics, results)

    async def _wait(self, asked: Asked, missing: int, hosts: list[Replica]) -> Reply:
        _, _, request, _, topics = asked
        loop = asyncio.get_running_loop()
        deadline = loop.time() + request.max_wait_ms / 1000
        results: list[FetchResult] = []
        while True:  # what came may be part of a transaction, or its end: not all of it is for this reader
            waiters = [replica.waiters for replica in hosts]
            results.clear()  # a request that waits holds no file open
            await Wait.for_bytes(missing, deadline - loop.time(), waiters, loop).done
            results, missing, hosts = await self._turns.run(self._read(request, topics))
            if missing <= 0 or loop.time() >= deadline:
                if len(results) > WIDE:
                    return await self._answer_in_turns(asked, results)
                pack: Callable[[], Reply] = turn(self._answer(asked, results))
                return pack()

    def _read(
        self, request: Fetch, topics: Sequence[FetchTopic]
    ) -> Steps[tuple[list[FetchResult], int, list[Replica]]]:
        """What the partitions have: one result each, how many bytes are missing (none if something must be told at
        once), and the partitions that may get more."""
        left = min(request.max_bytes, self._bytes_max)
        is_one = len(topics) == 1 == len(topics[0][2])  # whose file each connection may hold
        hold = None if is_one else self._replicas.files.hold()
        files = 0 if hold is None else hold.count
        committed = request.isolation_level == READ_COMMITTED
        missing = request.min_bytes if topics else 0
        results: list[FetchResult] = []
        hosts: list[Replica] = []
        first = True
        for name, topic_id, parts in topics:
            for part in parts:
                yield
                found = self._find(name, topic_id, part, request.replica_id)
                if not isinstance(found, Replica):
                    results.append(_error(part, found, found in NOT_THERE))
                    missing = 0
                    continue
                result = _read_one(found, part, left, first, committed)
                results.append(result)
                hosts.append(found)
                if result.error:
                    missing = 0
                elif result.records is not None:
                    first = False
                    left -= result.records.length
                    missing -= result.records.length
                    files -= 1
                    if (
                        not files and hold is not None
                    ):  # the reply may hold no more of them: the rest is asked for again
                        left = missing = 0
        if hold is not None and not first:
            hold.shrink(hold.count - files)
            _keep(hold, results)
        return results, missing, hosts

    def _find(
        self, name: str | None, topic_id: bytes | None, part: FetchPartition, replica_id: int
    ) -> Replica | ErrorCode:
        replica = self._replicas.find(name, topic_id, part[0])
        if replica is None:
            return self._replicas.absence(name, topic_id, part[0])
        if replica_id > CONSUMER:  # there is no other broker that could follow us
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return replica.leadership_error(part[1]) or replica


def _keep(hold: object, results: list[FetchResult]) -> None:
    """Give it to the last slice, which leaves last."""
    for at in reversed(range(len(results))):
        result = results[at]
        if result.records is not None:
            results[at] = result._replace(records=result.records._replace(hold=hold))
            return


def _is_in_a_session(request: Fetch) -> bool:
    return bool(request.session_id) or request.session_epoch != FINAL_EPOCH


def _read_one(replica: Replica, part: FetchPartition, left: int, first: bool, committed: bool) -> FetchResult:
    """`first`: no partition before it had a batch, so that this one's first goes out whole."""
    index, _, offset, bytes_max = part
    try:
        return FetchResult(index, _NONE, *replica.read(offset, max(min(bytes_max, left), 0), committed, first))
    except KafkaError as error:
        return _error(part, error.code)


def _error(part: FetchPartition, code: ErrorCode, not_there: bool = False) -> FetchResult:
    return FetchResult(part[0], code, -1, -1, -1, [] if not_there else None)
