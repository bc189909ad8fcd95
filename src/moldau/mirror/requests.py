"""What a mirror's worker sends: a Fetch of many partitions, MirrorAppend, and the batch at one offset. Builds and reads
messages; sends nothing but what a caller awaits."""

import uuid
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from moldau.client.failures import STALE_METADATA, check, error_of
from moldau.client.fetching import fetch_request
from moldau.client.routing import Router
from moldau.error_codes import ErrorCode
from moldau.errors import KafkaError
from moldau.mirror.latency import RecordTimes
from moldau.mirror.source_session import FetchedBatches, SourceSession, WantedPartition
from moldau.names import TopicPartition
from moldau.protocol.apis import FETCH, MIRROR_APPEND
from moldau.protocol.messages.mirror_append import MirrorAppendRequest, MirroredPartition, MirroredTopic
from moldau.protocol.primitives import Detached
from moldau.records.batch import BatchHeader, batches

ONE_BATCH = 1
ASKS_ONLY = -1


class Appending(NamedTuple):
    """What the mirror's leader is sent for one partition: batches that go on at `end` (`ASKS_ONLY`: nothing, where does
    its log end?), and where the source starts (-1: unknown). `times`: of the records."""

    source: str
    end: int
    source_start: int
    records: memoryview
    times: RecordTimes = RecordTimes()


class MirrorAnswer(NamedTuple):
    error: ErrorCode
    message: str | None
    start: int
    end: int


async def fetch(
    router: Router, leader: int, wanted: Mapping[TopicPartition, int], ids: Mapping[str, uuid.UUID], wait_ms: int
) -> dict[TopicPartition, FetchedBatches]:
    """What a leader has from these offsets on, of any transaction, of the topics with these ids: another topic of the
    same name answers UNKNOWN_TOPIC_ID (a broker before Kafka 3.1 goes by the name). Raises `KafkaError`."""
    session = SourceSession(is_kept=False)
    for tp, offset in wanted.items():
        session.want(tp, WantedPartition(ids[tp.topic], offset, router.view.leader_epoch(tp)))
    return await fetch_next(router, leader, session, wait_ms)


async def fetch_next(
    router: Router, leader: int, session: SourceSession, wait_ms: int
) -> dict[TopicPartition, FetchedBatches]:
    """What a leader has of the partitions of a session, beyond what it has told. Raises `KafkaError`."""
    link = await router.broker(leader, "mirror")
    return session.answered(await link.call(FETCH, session.request(wait_ms), wait_ms + router.request_timeout_ms))


async def append(
    router: Router, leader: int, wanted: Mapping[TopicPartition, Appending], purpose: str = ""
) -> dict[TopicPartition, MirrorAnswer]:
    """Send batches to a leader of mirrors; answered once they are committed. A broker answers the requests of one
    connection, which `purpose` names, one after the other. Raises `KafkaError`."""
    by_topic: dict[str, dict[TopicPartition, Appending]] = {}
    for tp, one in wanted.items():
        by_topic.setdefault(tp.topic, {})[tp] = one
    topics, around = list[MirroredTopic](), list[tuple[Detached, memoryview]]()
    for name, parts in by_topic.items():
        topics.append(MirroredTopic(name=name, source=next(iter(parts.values())).source))
        for tp, one in parts.items():
            around.append((Detached(len(one.records)), one.records))
            topics[-1].partitions.append(
                MirroredPartition(
                    index=tp.partition,
                    current_leader_epoch=router.view.leader_epoch(tp),
                    log_end_offset=one.end,
                    source_start_offset=one.source_start,
                    records=around[-1][0],
                )
            )
    request = MirrorAppendRequest(timeout_ms=router.request_timeout_ms, topics=topics)
    link = await router.broker(leader, purpose)
    reply = await link.call(MIRROR_APPEND, request, 2 * router.request_timeout_ms, around=around)
    return {
        TopicPartition(topic.name, part.index): MirrorAnswer(
            error_of(part.error_code), part.error_message, part.log_start_offset, part.log_end_offset
        )
        for topic in reply.topics
        for part in topic.partitions
    }


class Led(NamedTuple):
    """Partitions by the broker that leads them; and why some have none."""

    leaders: dict[int, list[TopicPartition]]
    failures: dict[TopicPartition, KafkaError]


async def by_leader(router: Router, partitions: Iterable[TopicPartition]) -> Led:
    """Each partition is asked for alone: one without a leader does not hold up others."""
    led = Led({}, {})
    away: KafkaError | None = None
    for tp in partitions:
        # If no broker answers, the partitions whose leaders are not known fail without another attempt.
        if away is not None and isinstance(router.view.leader(tp), ErrorCode):
            led.failures[tp] = away
            continue
        try:
            led.leaders.setdefault(await router.leader(tp), []).append(tp)
        except KafkaError as failure:
            led.failures[tp] = failure
            if failure.code is ErrorCode.NETWORK_EXCEPTION:
                away = failure
    return led


async def batch_at(router: Router, tp: TopicPartition, topic_id: uuid.UUID, offset: int) -> BatchHeader | None:
    """The header of the batch that holds this offset; None if the log has none there: it was deleted or compacted, or
    is not readable yet. Raises `KafkaError`."""
    try:
        link = await router.broker(await router.leader(tp))
        request = fetch_request(tp, offset, ONE_BATCH, wait_ms=0, leader_epoch=router.view.leader_epoch(tp))
        request.topics[0].topic_id = topic_id
        reply = await link.call(FETCH, request, router.request_timeout_ms)
        check(reply.error_code, f"fetching {tp}")
        part = reply.responses[0].partitions[0]
        if part.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            return None
        check(part.error_code, f"fetching {tp} from offset {offset}")
    except KafkaError as failure:
        if failure.code in STALE_METADATA:
            router.stale(tp.topic)
        raise
    for _, header in batches(memoryview(part.records or b"")):
        if header.last_offset >= offset:
            return header if header.base_offset <= offset else None
    return None
