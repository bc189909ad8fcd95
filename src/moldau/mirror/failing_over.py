"""Fail-over: a mirror becomes a topic that clients write to. Every step may be interrupted; the next run goes on.

    1  `mirror.source` says that the mirror fails over: its leaders refuse workers from then on, and clients still 2
    transactions that are open at its end are aborted by markers: their producers write elsewhere, so nobody else would
       end them, and readers of committed records would wait for ever
    3  a control record behind them says that producers of this cluster begin here: an id of theirs may be that of a
       producer of the source, whose sequences would make their records duplicates (`records/batch.py`)
    4  `mirror.source` is reset: clients may write

Steps 2 and 3 are MirrorAppend: the leader has heard of step 1, and nothing came in between.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from moldau.client.administration.transactions import ProducerDescription
from moldau.client.failures import STALE_METADATA, sentence
from moldau.errors import ErrorCode, KafkaError
from moldau.mirror.ends import SETTING, ClusterEnd
from moldau.mirror.planning import FAILING_OVER
from moldau.mirror.requests import ASKS_ONLY, Appending, append
from moldau.names import TopicPartition
from moldau.records.batch import encode_handover, encode_marker, place

AT_ONCE, TOPICS_AT_ONCE = 16, 8
"""Partitions of one topic, and topics."""


class FailedOver(NamedTuple):
    """A partition that clients may write to from `end` on, and how many transactions were aborted for it (or would be:
    then `end` is the mirror's)."""

    tp: TopicPartition
    end: int
    aborted: int


async def open_transactions(target: ClusterEnd, tp: TopicPartition) -> list[ProducerDescription]:
    """The producers with an open transaction in this partition. Raises `KafkaError`."""
    producers = (await target.admin.transactions.producers([tp]))[tp]
    return [one for one in producers if one.start_offset is not None]


async def rehearse(target: ClusterEnd, topic: str) -> list[FailedOver]:
    """What `fail_over` would do. Raises `KafkaError`."""
    partitions = [TopicPartition(topic, number) for number in target.router.view.topics[topic].partitions]
    ends = await target.admin.offsets(dict.fromkeys(partitions, "latest"))
    return [FailedOver(tp, ends[tp], len(await open_transactions(target, tp))) for tp in partitions]


def fenced_source(mirror_source: str) -> str:
    """The `mirror.source` that a mirror has from step 1 on."""
    if mirror_source.startswith(FAILING_OVER):
        return mirror_source
    return FAILING_OVER + mirror_source.partition("/")[2]


async def fence(target: ClusterEnd, topic: str, mirror_source: str) -> str:
    """Step 1. Returns the `mirror.source` that the topic has now. Raises `KafkaError`."""
    fenced = fenced_source(mirror_source)
    if fenced != mirror_source:
        await target.admin.alter_topic_configs(topic, {SETTING: fenced})
    return fenced


async def fail_over(target: ClusterEnd, topic: str, mirror_source: str) -> list[FailedOver]:
    """Make a mirror writable. Raises `KafkaError`: the topic stays as it was, or takes no records until the next
    run."""
    fenced = await fence(target, topic, mirror_source)
    partitions = [TopicPartition(topic, number) for number in target.router.view.topics[topic].partitions]
    over: list[FailedOver] = []
    for at in range(0, len(partitions), AT_ONCE):
        over += await asyncio.gather(*(_ended(target, tp, fenced) for tp in partitions[at : at + AT_ONCE]))
    await target.admin.alter_topic_configs(topic, {SETTING: None})
    return over


class FailedOverTopics(NamedTuple):
    """Partitions that clients may write to, and why each of the other topics takes no records, until the next run.
    `groups`: why these groups do not have the offsets that they have in the source."""

    over: list[FailedOver]
    failures: dict[str, KafkaError]
    groups: Mapping[str, KafkaError] = {}


async def fail_over_all(target: ClusterEnd, mirrors: Mapping[str, str]) -> FailedOverTopics:
    """Make these mirrors (name -> `mirror.source`) writable: one that cannot be holds up no other."""
    found, turns = dict[str, list[FailedOver]](), asyncio.Semaphore(TOPICS_AT_ONCE)
    failures: dict[str, KafkaError] = {}

    async def one(name: str, mirror_source: str) -> None:
        async with turns:
            try:
                found[name] = await fail_over(target, name, mirror_source)
            except KafkaError as failure:
                failures[name] = failure

    await asyncio.gather(*(one(*mirror) for mirror in mirrors.items()))
    return FailedOverTopics([part for name in mirrors for part in found.get(name, ())], failures)


async def mirror_end(target: ClusterEnd, tp: TopicPartition, fenced: str) -> int:
    """Where a mirror that takes no more records ends, as its leader says, once it has heard that. Raises `KafkaError`,
    also retriable."""
    return await _append(target, tp, Appending(fenced, ASKS_ONLY, -1, memoryview(b"")))


async def _ended(target: ClusterEnd, tp: TopicPartition, fenced: str) -> FailedOver:
    """Steps 2 and 3 of one partition."""

    async def attempt() -> FailedOver:
        end = await mirror_end(target, tp, fenced)
        opened = await open_transactions(target, tp)
        last = _last_batches(opened, end, target.router.runtime.clock.now_ms())
        return FailedOver(tp, await _append(target, tp, Appending(fenced, end, -1, memoryview(last))), len(opened))

    return await target.router.retrying(attempt)


def _last_batches(opened: Sequence[ProducerDescription], end: int, now_ms: int) -> bytearray:
    """The markers that abort these transactions, and the control batch behind them."""
    pieces = [
        encode_marker(one.producer_id, one.producer_epoch, False, max(one.coordinator_epoch, 0), now_ms)
        for one in opened
    ]
    last = bytearray()
    for offset, batch in enumerate([*pieces, encode_handover(now_ms)], end):
        place(batch, offset, 0)
        last += batch
    return last


async def _append(target: ClusterEnd, tp: TopicPartition, appending: Appending) -> int:
    """Returns the mirror's end. Raises `KafkaError`, retriable while the leader changes or has not heard of step 1."""
    router = target.router
    try:
        leader = await router.leader(tp)
        answer = (await append(router, leader, {tp: appending}))[tp]
    except KafkaError as failure:
        if failure.code in STALE_METADATA:
            router.stale(tp.topic)
        raise
    if answer.error in STALE_METADATA:
        router.stale(tp.topic)
    if answer.error in (ErrorCode.INVALID_REQUEST, ErrorCode.OFFSET_OUT_OF_RANGE):
        raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"the leader of {tp} has not heard yet that it fails over")
    if answer.error:
        raise KafkaError(answer.error, f"{tp}: {answer.message or sentence(answer.error)}")
    return answer.end
