"""Produce (key 0), versions 3 to 13: append batches, answer for each partition where they stand.

Kafka's behaviour: versions 0 to 2 are advertised and close the connection; acks=0 has no reply, and an error there
closes the connection, since nothing else could tell; acks=all answers when the in-sync replicas have it, and
`min.insync.replicas` is checked before appending. From version 8 an error may name the records (null keys and
timestamps only, and only then, or where a partition was not added to a transaction, has a message), from version 13 a
topic is named by its id. Zstd needs version 7. The first batch of a transaction in a partition waits for its
coordinator (see `verifying`), the others do not.

A request that only needs the loop is answered without awaiting. If any of its batches is heavy (D14), or a log wants
its flush before the answer, the record sets are copied and the request goes through the executor; its connection is
muted meanwhile, so order holds.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from moldau.errors import ErrorCode, ProtocolViolation
from moldau.handlers.verifying import ADDS_PARTITIONS, Begins, Verifying, why_refused
from moldau.log.appended import Appended
from moldau.protocol.hot_produce import Produce, ProduceResult, in_own_memory, produce_response
from moldau.protocol.hot_topics import WIDE
from moldau.records.batch import CODEC_BITS
from moldau.records.compression import ZSTD
from moldau.records.validation import Checked, is_told, reached_the_log
from moldau.replication.replica import Begun, Replica
from moldau.replication.replicas import Replicas
from moldau.requests.session import Call
from moldau.runtime import Runtime
from moldau.turns import Steps, Turns, in_turns, turn

if TYPE_CHECKING:
    from moldau.protocol.messages.produce import ProduceResponse

ALL_IN_SYNC = -1
"""acks: -1 (or "all"), 1 the leader alone, 0 no reply at all."""
TRANSACTIONAL = 0x10
"""The bit in the low byte of a batch's attributes, which is at `LOW_ATTRIBUTES`."""
LOW_ATTRIBUTES = 22
OF_A_TURN = 100
"""A wide request is answered in turns, with this many appends in one of them."""
ZSTD_SINCE = 7
"""KIP-110: an older client could not read it back."""


class Unverified(NamedTuple):
    """A refusal of before the append that says why."""

    message: str
    record_errors: tuple[tuple[int, str], ...] = ()


Details = dict[int, Checked | Unverified]
"""Refusals that have more to say than a code, by the position of the partition in the request."""
Answer: TypeAlias = "list[ProduceResult] | ProduceResponse | None"
"""The results of all partitions, in the request's order; a message if one has more to say; None for acks=0."""
NOTHING_BEGINS: Mapping[int, tuple[Replica, Begun]] = MappingProxyType({})
NOTHING_REFUSED: Mapping[int, ErrorCode] = MappingProxyType({})


class ProduceHandler:
    def __init__(self, replicas: Replicas, runtime: Runtime, verifying: Verifying, turns: Turns):
        self._find = replicas.find
        self._absence = replicas.absence
        self._verifying = verifying
        self._turns = turns
        self._now_ms: Callable[[], int] = runtime.clock.now_ms

    def __call__(self, request: Produce, call: Call) -> "Answer | Awaitable[Answer]":
        """Raises `ProtocolViolation` for a refused request with acks=0."""
        version = call.version
        if request.is_wide:
            return self._in_turns(version, request)
        now_ms, details = self._now_ms(), Details()
        done: list[ProduceResult] = []
        if request.transactional_id is not None and (begins := turn(self._beginning(version, request, now_ms))):
            return self._after_verifying(version, in_own_memory(request), begins)
        for name, topic_id, parts in request.topics:
            for index, records in parts:
                replica = self._find(name, topic_id, index)
                refusal = self._refusal(version, request, topic_id, records, replica)
                if replica is None or records is None or refusal:
                    done.append((index, refusal or self._absence(name, topic_id, index), -1, -1, -1))
                elif replica.wants_executor(records):
                    return self._through_executor(version, in_own_memory(request), done, details)
                else:
                    outcome = replica.produce(records, now_ms)
                    if isinstance(outcome, Appended):
                        base, _, time_ms, start, error, _ = outcome
                        done.append((index, error, base, time_ms, start))
                    else:
                        _refuse(done, index, replica, outcome, details)
        return _answer(version, request, done, details)

    async def _in_turns(self, version: int, request: Produce) -> Answer:
        begins = Begins()
        if request.transactional_id is not None:
            begins = await self._turns.run(self._beginning(version, request, self._now_ms()))
        if begins:
            return await self._after_verifying(version, request, begins)
        return await self._through_executor(version, request, [], Details())

    def _beginning(self, version: int, request: Produce, now_ms: int) -> Steps[Begins]:
        """The first batches of transactions in this request."""
        begins, at = Begins(), 0
        for name, topic_id, parts in request.topics:
            for index, records in parts:
                replica = self._find(name, topic_id, index)
                if replica is not None and not self._refusal(version, request, topic_id, records, replica):
                    assert records is not None
                    begun = replica.unverified(records, now_ms)
                    if begun is not None:
                        begins[at] = replica, begun
                at += 1
                yield
        return begins

    async def _after_verifying(self, version: int, request: Produce, begins: Begins) -> Answer:
        assert request.transactional_id is not None
        count = sum(len(parts) for _, _, parts in request.topics)
        refused = await self._verifying.ask(request.transactional_id, version, begins, count)
        return await self._through_executor(version, request, [], Details(), begins, refused)

    async def _through_executor(
        self,
        version: int,
        request: Produce,
        done: list[ProduceResult],
        details: Details,
        begins: Mapping[int, tuple[Replica, Begun]] = NOTHING_BEGINS,
        refused: Mapping[int, ErrorCode] = NOTHING_REFUSED,
    ) -> Answer:
        """Go on where the loop had to stop, in the same order, with the heavy parts off the loop. `begins`: the first
        batches of transactions, of which their coordinator has `refused` some."""
        skipped = len(done)
        transaction_version = 2 if version >= ADDS_PARTITIONS else 0
        async for name, topic_id, index, records in in_turns(_batches(request, skipped), OF_A_TURN):
            replica = self._find(name, topic_id, index)
            refusal = self._refusal(version, request, topic_id, records, replica) or refused.get(len(done), 0)
            if replica is None or records is None or refusal:
                if len(done) in refused and (why := why_refused(refused[len(done)], begins)) is not None:
                    details[len(done)] = Unverified(why)
                done.append((index, refusal or self._absence(name, topic_id, index), -1, -1, -1))
                continue
            begun = begins.get(len(done))
            outcome = await replica.produce_in_executor(
                records, self._now_ms(), None if begun is None else begun[1], transaction_version
            )
            if isinstance(outcome, Appended):
                base, _, time_ms, start, error, _ = outcome
                done.append((index, error, base, time_ms, start))
            else:
                _refuse(done, index, replica, outcome, details)
        if len(done) <= WIDE:
            return _answer(version, request, done, details)
        async with self._turns:
            return await self._turns.off_loop(lambda: _answer(version, request, done, details))

    def _refusal(
        self,
        version: int,
        request: Produce,
        topic_id: bytes | None,
        records: memoryview | None,
        replica: Replica | None,
    ) -> int:
        """Why this partition is not even looked at, or 0."""
        acks = request.acks
        if acks not in (1, ALL_IN_SYNC, 0):
            return ErrorCode.INVALID_REQUIRED_ACKS
        if replica is None:
            return 0  # `absence` says it
        if records is None:
            return ErrorCode.INVALID_RECORD
        if replica.internal:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        leadership = replica.leadership
        if leadership.leader != leadership.local:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if acks == ALL_IN_SYNC and len(leadership.isr) < replica.config.min_insync_replicas:
            return ErrorCode.NOT_ENOUGH_REPLICAS
        attributes = records[LOW_ATTRIBUTES] if len(records) > LOW_ATTRIBUTES else 0
        if attributes & TRANSACTIONAL and request.transactional_id is None:
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        if version < ZSTD_SINCE and attributes & CODEC_BITS == ZSTD:
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        return 0


def _batches(request: Produce, skipped: int) -> Iterator[tuple[str | None, bytes | None, int, memoryview | None]]:
    """Topic's name and id, partition and record set of all but the first ones."""
    for name, topic_id, parts in request.topics:
        for index, records in parts:
            if skipped:
                skipped -= 1
            else:
                yield name, topic_id, index, records


def _refuse(done: list[ProduceResult], index: int, replica: Replica, refused: Checked, details: Details) -> None:
    """Note a batch that did not pass its checks, and in the details if that says more than a code."""
    if is_told(refused):
        details[len(done)] = refused
    start = replica.log.log_start_offset if reached_the_log(refused) else -1
    done.append((index, refused.error, -1, -1, start))


def _answer(version: int, request: Produce, done: list[ProduceResult], details: Details) -> Answer:
    if request.acks == 0:
        if any(error for _, error, *_ in done):
            raise ProtocolViolation("a Produce with acks=0 was refused, and only closing can tell")
        return None
    if details and version >= 8:
        return produce_response(request, done, details)
    return done
