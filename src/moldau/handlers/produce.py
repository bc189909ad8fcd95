"""Produce (key 0), versions 3 to 13: append batches, answer for each partition where they stand.

Kafka's behaviour: versions 0 to 2 are advertised and close the connection; acks=0 has no reply, and an error there
closes the connection, since nothing else could tell; acks=all answers when the in-sync replicas have it, and
`min.insync.replicas` is checked before appending. From version 8 an error may name the records, from version 13 a
topic is named by its id.

A request that only needs the loop is answered without awaiting. If any of its batches is heavy (D14), or a log wants
its flush before the answer, the frame is copied and the request goes through the executor; its connection is muted
meanwhile, so order holds.
"""

import uuid
from collections.abc import Callable

from moldau.errors import ErrorCode, ProtocolViolation
from moldau.log.log import Appended
from moldau.names import INTERNAL_TOPICS
from moldau.protocol import codec
from moldau.protocol.apis import PRODUCE
from moldau.protocol.codec import RequestHeader
from moldau.protocol.hot import Produce, ProducePartition, ProduceResult, ProduceTopic, pack_produce, read_produce
from moldau.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from moldau.protocol.primitives import ZERO_UUID
from moldau.records.validation import Checked
from moldau.replication.hosted import Hosted
from moldau.replication.partitions import Partitions
from moldau.runtime import Answer, Reply, Runtime

ALL_IN_SYNC = -1
"""acks: -1 (or "all"), 1 the leader alone, 0 no reply at all."""
TRANSACTIONAL = 0x10
"""The bit in the low byte of a batch's attributes, which is at `LOW_ATTRIBUTES`."""
LOW_ATTRIBUTES = 22

Outcome = Appended | Checked
Results = list[tuple[str | None, bytes | None, list[ProduceResult]]]
Details = dict[tuple[int, int], Checked]
"""Refusals that have more to say than a code, by the position of topic and partition in the request."""


class ProduceHandler:
    def __init__(self, partitions: Partitions, runtime: Runtime):
        self._partitions = partitions
        self._now_ms: Callable[[], int] = runtime.clock.now_ms

    def __call__(self, header: RequestHeader, frame: memoryview) -> Answer:
        if header.version < PRODUCE.lowest:
            raise ProtocolViolation(f"Produce version {header.version}")
        request = read_produce(frame, header.version, header.body)
        for topic in request.topics:
            for part in topic.partitions:
                hosted = self._partitions.find(topic.name, topic.topic_id, part.index)
                if hosted is not None and part.records is not None and hosted.wants_executor(part.records):
                    copied = read_produce(memoryview(bytearray(frame)), header.version, header.body)
                    return self._through_executor(header, copied)
        now_ms, details = self._now_ms(), Details()
        answer: Results = []
        for topic in request.topics:
            results = []
            for part in topic.partitions:
                hosted = self._partitions.find(topic.name, topic.topic_id, part.index)
                refusal = self._refusal(request, topic, part, hosted)
                if hosted is None or part.records is None or refusal:
                    results.append(ProduceResult(part.index, refusal, -1, -1, -1))
                else:
                    outcome = hosted.produce(part.records, now_ms)
                    results.append(_result(part.index, outcome))
                    if outcome.error and isinstance(outcome, Checked):
                        details[len(answer), len(results) - 1] = outcome
            answer.append((topic.name, topic.topic_id, results))
        return _reply(header, request.acks, answer, details)

    async def _through_executor(self, header: RequestHeader, request: Produce) -> Reply:
        """The same, in the same order, with the heavy parts off the loop."""
        details = Details()
        answer: Results = []
        for topic in request.topics:
            results = []
            for part in topic.partitions:
                hosted = self._partitions.find(topic.name, topic.topic_id, part.index)
                refusal = self._refusal(request, topic, part, hosted)
                if hosted is None or part.records is None or refusal:
                    results.append(ProduceResult(part.index, refusal, -1, -1, -1))
                    continue
                outcome = await hosted.produce_in_executor(part.records, self._now_ms())
                results.append(_result(part.index, outcome))
                if outcome.error and isinstance(outcome, Checked):
                    details[len(answer), len(results) - 1] = outcome
            answer.append((topic.name, topic.topic_id, results))
        return _reply(header, request.acks, answer, details)

    def _refusal(self, request: Produce, topic: ProduceTopic, part: ProducePartition, hosted: Hosted | None) -> int:
        """Why this partition is not even looked at, or 0."""
        if request.acks not in (ALL_IN_SYNC, 0, 1):
            return ErrorCode.INVALID_REQUIRED_ACKS
        if hosted is None:
            known = topic.topic_id is None or self._partitions.knows(topic.topic_id)
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if known else ErrorCode.UNKNOWN_TOPIC_ID
        if part.records is None:
            return ErrorCode.INVALID_RECORD
        if hosted.tp.topic in INTERNAL_TOPICS:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        if not hosted.state.leads:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if request.acks == ALL_IN_SYNC and len(hosted.state.isr) < hosted.config.min_insync_replicas:
            return ErrorCode.NOT_ENOUGH_REPLICAS
        transactional = request.transactional_id is not None
        if transactional or (len(part.records) > LOW_ATTRIBUTES and part.records[LOW_ATTRIBUTES] & TRANSACTIONAL):
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return 0


def _result(index: int, outcome: Outcome) -> ProduceResult:
    if isinstance(outcome, Checked):
        return ProduceResult(index, outcome.error, -1, -1, -1)
    if outcome.error:
        return ProduceResult(index, outcome.error, -1, -1, -1)
    return ProduceResult(index, 0, outcome.base_offset, outcome.log_append_time_ms, outcome.log_start_offset)


def _reply(header: RequestHeader, acks: int, answer: Results, details: Details) -> list[bytes] | None:
    if acks == 0:
        if any(result.error for _, _, results in answer for result in results):
            raise ProtocolViolation("a Produce with acks=0 was refused, and only closing can tell")
        return None
    if details and header.version >= 8:
        return [codec.write_reply(PRODUCE, header.version, header.correlation_id, _with_details(answer, details))]
    return [pack_produce(header.version, header.correlation_id, answer)]


def _with_details(answer: Results, details: Details) -> ProduceResponse:
    """The reply that names the bad records and says why, as version 8 and later can."""
    topics = []
    for t, (name, topic_id, results) in enumerate(answer):
        parts = []
        for p, result in enumerate(results):
            part = PartitionProduceResponse(
                index=result.index,
                error_code=result.error,
                base_offset=result.base_offset,
                log_append_time_ms=result.log_append_time_ms,
                log_start_offset=result.log_start_offset,
            )
            refused = details.get((t, p))
            if refused is not None:
                part.error_message = refused.message
                part.record_errors = [
                    BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
                    for index, message in refused.record_errors
                ]
            parts.append(part)
        by_id = uuid.UUID(bytes=topic_id) if topic_id else ZERO_UUID
        topics.append(TopicProduceResponse(name=name or "", topic_id=by_id, partition_responses=parts))
    return ProduceResponse(responses=topics)
