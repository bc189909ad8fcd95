"""Produce (key 0), versions 3 to 13: append batches, answer for each partition where they stand.

Kafka's behaviour: versions 0 to 2 are advertised and close the connection; acks=0 has no reply, and an error there
closes the connection, since nothing else could tell; acks=all answers when the in-sync replicas have it, and
`min.insync.replicas` is checked before appending. From version 8 an error may name the records (null keys and
timestamps only, and only then, or where a partition was not added to a transaction, has a message), from version 13 a
topic is named by its id. Zstd needs version 7. The first batch of a transaction in a partition waits for its
coordinator (see `verifying`), the others do not.

A request that only needs the loop is answered without awaiting. If any of its batches is heavy (D14), or a log wants
its flush before the answer, the frame is copied and the request goes through the executor; its connection is muted
meanwhile, so order holds.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from moldau.errors import ErrorCode, ProtocolViolation
from moldau.handlers.verifying import ADDS_PARTITIONS, Begins, Verifying, why_refused
from moldau.log.appended import Appended
from moldau.protocol import codec
from moldau.protocol.apis import PRODUCE
from moldau.protocol.hot_produce import Produce, ProduceResult, pack_produce, read_produce
from moldau.protocol.hot_topics import Wide
from moldau.protocol.primitives import ZERO_UUID
from moldau.records.batch import CODEC_BITS
from moldau.records.compression import ZSTD
from moldau.records.validation import Checked, is_told, reached_the_log
from moldau.replication.replica import Begun, Replica
from moldau.replication.replicas import Replicas
from moldau.runtime import Answer, Reply, Runtime
from moldau.turns import Steps, Turns, in_turns, turn

if TYPE_CHECKING:
    from moldau.protocol.messages.produce import ProduceResponse

ALL_IN_SYNC = -1
"""acks: -1 (or "all"), 1 the leader alone, 0 no reply at all."""
TRANSACTIONAL = 0x10
"""The bit in the low byte of a batch's attributes, which is at `LOW_ATTRIBUTES`."""
LOW_ATTRIBUTES = 22
WIDE, OF_A_TURN = 500, 100
"""A request of more topics and partitions is answered in turns, with this many appends in one of them."""
ZSTD_SINCE = 7
"""KIP-110: an older client could not read it back."""


class Unverified(NamedTuple):
    """A refusal of before the append that says why."""

    message: str
    record_errors: tuple[tuple[int, str], ...] = ()


Details = dict[int, Checked | Unverified]
"""Refusals that have more to say than a code, by the position of the partition in the request."""
NOTHING_BEGINS: Mapping[int, tuple[Replica, Begun]] = MappingProxyType({})
NOTHING_REFUSED: Mapping[int, ErrorCode] = MappingProxyType({})


class ProduceHandler:
    def __init__(self, replicas: Replicas, runtime: Runtime, verifying: Verifying, turns: Turns):
        self._find = replicas.find
        self._absence = replicas.absence
        self._verifying = verifying
        self._turns = turns
        self._now_ms: Callable[[], int] = runtime.clock.now_ms

    def __call__(self, version: int, correlation_id: int, body: int, frame: memoryview) -> Answer:
        """`body` is where the message starts. Raises `ProtocolViolation`."""
        if version < PRODUCE.lowest:
            raise ProtocolViolation(f"Produce version {version}")
        try:
            request = read_produce(frame, version, body, WIDE)
        except Wide:
            return self._wide(version, correlation_id, body, memoryview(bytearray(frame)))
        now_ms, details = self._now_ms(), Details()
        done: list[ProduceResult] = []
        if request.transactional_id is not None and (begins := turn(self._beginning(version, request, now_ms))):
            copied = read_produce(memoryview(bytearray(frame)), version, body)
            return self._after_verifying(version, correlation_id, copied, begins)
        for name, topic_id, parts in request.topics:
            for index, records in parts:
                replica = self._find(name, topic_id, index)
                refusal = self._refusal(version, request, topic_id, records, replica)
                if replica is None or records is None or refusal:
                    done.append((index, refusal or self._absence(name, topic_id, index), -1, -1, -1))
                elif replica.wants_executor(records):
                    copied = read_produce(memoryview(bytearray(frame)), version, body)
                    return self._through_executor(version, correlation_id, copied, done, details)
                else:
                    outcome = replica.produce(records, now_ms)
                    if isinstance(outcome, Appended):
                        base, _, time_ms, start, error, _ = outcome
                        done.append((index, error, base, time_ms, start))
                    else:
                        _refuse(done, index, replica, outcome, details)
        return _reply(version, correlation_id, request, done, details)

    async def _wide(self, version: int, correlation_id: int, body: int, frame: memoryview) -> Reply:
        """A request of very many partitions: they are read in the executor, and appended to in turns."""
        with self._turns.holding(len(frame)):
            async with self._turns:
                request = await self._turns.off_loop(lambda: read_produce(frame, version, body))
                if request.transactional_id is not None:
                    begins = await self._turns.finish(self._beginning(version, request, self._now_ms()))
                else:
                    begins = Begins()
            if begins:
                return await self._after_verifying(version, correlation_id, request, begins)
            return await self._through_executor(version, correlation_id, request, [], Details())

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

    async def _after_verifying(self, version: int, correlation_id: int, request: Produce, begins: Begins) -> Reply:
        assert request.transactional_id is not None
        count = sum(len(parts) for _, _, parts in request.topics)
        refused = await self._verifying.ask(request.transactional_id, version, begins, count)
        return await self._through_executor(version, correlation_id, request, [], Details(), begins, refused)

    async def _through_executor(
        self,
        version: int,
        correlation_id: int,
        request: Produce,
        done: list[ProduceResult],
        details: Details,
        begins: Mapping[int, tuple[Replica, Begun]] = NOTHING_BEGINS,
        refused: Mapping[int, ErrorCode] = NOTHING_REFUSED,
    ) -> Reply:
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
            return _reply(version, correlation_id, request, done, details)
        async with self._turns:
            return await self._turns.off_loop(lambda: _reply(version, correlation_id, request, done, details))

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


def _reply(
    version: int, correlation_id: int, request: Produce, done: list[ProduceResult], details: Details
) -> list[bytes] | None:
    if request.acks == 0:
        if any(error for _, error, *_ in done):
            raise ProtocolViolation("a Produce with acks=0 was refused, and only closing can tell")
        return None
    if details and version >= 8:
        return [codec.write_reply(PRODUCE, version, correlation_id, _with_details(request, done, details))]
    return [pack_produce(version, correlation_id, request, done)]


def _with_details(request: Produce, done: list[ProduceResult], details: Details) -> "ProduceResponse":
    """The reply that names the bad records and says why, as version 8 and later can."""
    from moldau.protocol.messages.produce import (
        BatchIndexAndErrorMessage,
        PartitionProduceResponse,
        ProduceResponse,
        TopicProduceResponse,
    )

    topics, position = [], 0
    for name, topic_id, asked in request.topics:
        parts = []
        for _ in asked:
            index, error, base_offset, time_ms, start = done[position]
            part = PartitionProduceResponse(
                index=index,
                error_code=error,
                base_offset=base_offset,
                log_append_time_ms=time_ms,
                log_start_offset=start,
            )
            refused = details.get(position)
            if refused is not None:
                part.error_message = refused.message
                part.record_errors = [
                    BatchIndexAndErrorMessage(batch_index=number, batch_index_error_message=message)
                    for number, message in refused.record_errors
                ]
            parts.append(part)
            position += 1
        by_id = uuid.UUID(bytes=topic_id) if topic_id else ZERO_UUID
        topics.append(TopicProduceResponse(name=name or "", topic_id=by_id, partition_responses=parts))
    return ProduceResponse(responses=topics)
