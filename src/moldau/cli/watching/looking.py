"""One look at a cluster for `moldau top`: all brokers are asked at once, and none is waited for longer than `ANSWER_S`.

A broker that did not answer the last look is asked again, but waited for only `AGAIN_S`, so that one broker that
hangs does not slow the view down. The look names it, and leaves out its groups and the ends of its partitions.
"""

import asyncio
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from moldau.cli.watching.changes import ClusterLook, PartitionHealth, SummedLag
from moldau.client.administration.admin import AsyncAdmin
from moldau.client.administration.groups import GroupListing
from moldau.client.administration.request_times import request_metrics, requests_in
from moldau.client.cluster_view import TopicView
from moldau.errors import KafkaError, MoldauError, UnknownTopicOrPartition
from moldau.names import TopicPartition, counted

GROUPS_MAX = 100
ANSWER_S = 2.0
"""How long one question may take."""
AGAIN_S = 0.25
"""How long one to a broker that did not answer the last look may take."""
GROUPS_AT_ONCE = 8


class _Answered(NamedTuple):
    """What one broker knows; `failure` says why that is not all of it."""

    groups: list[GroupListing]
    ends: Mapping[TopicPartition, int]
    failure: str | None


async def look(
    admin: AsyncAdmin,
    metrics: Sequence[str],
    *,
    internal: bool,
    needs_metrics: bool,
    silent: Collection[int] = (),
) -> ClusterLook:
    """`silent` are the brokers that did not answer the last look. Raises `KafkaError` if no broker answers, and with
    `needs_metrics` `MoldauError` for metrics that cannot be read: at the first look the URL is wrong, later the broker
    may be away for a while."""
    topics, cluster = await asyncio.gather(admin.list_topics(internal=True), admin.describe_cluster())
    led: dict[int, list[TopicPartition]] = {broker: [] for broker in cluster.brokers}
    for name, topic in topics.items():
        for number, part in topic.partitions.items():
            if part.leader >= 0:
                led.setdefault(part.leader, []).append(TopicPartition(name, number))
    asked = [_ask(admin, broker, of, AGAIN_S if broker in silent else ANSWER_S) for broker, of in led.items()]
    answers, (texts, unread) = await asyncio.gather(asyncio.gather(*asked), _requests(metrics, needs_metrics))
    by_broker = dict(zip(led, answers, strict=True))
    failed = [
        f"broker {broker} {one.failure}; its groups and the ends of {counted(len(led[broker]), 'partition')} are "
        "left out"
        for broker, one in sorted(by_broker.items())
        if one.failure is not None
    ]
    ends = {tp: end for one in by_broker.values() for tp, end in one.ends.items()}
    groups, late = await _lags(admin, [group for one in by_broker.values() for group in one.groups], ends)
    buckets, sums = requests_in("\n".join(texts))
    return ClusterLook(
        time.monotonic(),
        {tp: end for tp, end in ends.items() if internal or not topics[tp.topic].internal},
        groups,
        buckets,
        sums,
        _health(topics.values()),
        (*failed, *late, *unread),
        cluster,
        frozenset(broker for broker, one in by_broker.items() if one.failure is not None),
    )


async def _ask(admin: AsyncAdmin, broker: int, led: Iterable[TopicPartition], patience_s: float) -> _Answered:
    """A failure of one question leaves out what the other one has found, too."""
    try:
        async with asyncio.timeout(patience_s):
            groups, ends = await asyncio.gather(admin.list_groups(broker_ids=[broker]), _ends(admin, led))
    except TimeoutError:
        return _Answered([], {}, f"did not answer within {patience_s:g} s")
    except KafkaError as failure:
        return _Answered([], {}, f"did not answer: {failure}")
    return _Answered(groups, ends, None)


async def _ends(admin: AsyncAdmin, led: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
    try:
        return await admin.offsets(dict.fromkeys(led, "latest"), known_only=True)
    except UnknownTopicOrPartition:  # a topic was deleted since the look began
        there = await admin.list_topics(internal=True)
        left = [tp for tp in led if tp.topic in there and tp.partition in there[tp.topic].partitions]
        return await admin.offsets(dict.fromkeys(left, "latest"), known_only=True)


async def _lags(
    admin: AsyncAdmin, listed: Iterable[GroupListing], ends: Mapping[TopicPartition, int]
) -> tuple[dict[str, SummedLag], list[str]]:
    """The lag of the first `GROUPS_MAX` groups in the partitions whose ends are known, and what could not be read."""
    every = sorted(listed, key=lambda one: one.group_id)
    chosen, more = every[:GROUPS_MAX], len(every) - GROUPS_MAX
    left_out = [f"only the first {GROUPS_MAX} groups by name are looked at: {more:,} more"] if more > 0 else []
    groups: dict[str, SummedLag] = {}
    turn = asyncio.Semaphore(GROUPS_AT_ONCE)

    async def read(one: GroupListing) -> None:
        async with turn:
            try:
                offsets = (await admin.group_offsets(one.group_id)).items()
                committed = {tp: at.offset for tp, at in offsets if tp in ends}
                behind = sum(max(0, ends[tp] - offset) for tp, offset in committed.items())
                groups[one.group_id] = SummedLag(one.state, sum(committed.values()), behind, None)
                lags = (await admin.lags(committed)).values() if committed else ()
            except KafkaError:  # it may have gone just now
                return
            behind = sum(lag.records or 0 for lag in lags)
            seconds = [lag.seconds for lag in lags if lag.seconds is not None]
            read_until = sum(lag.end for lag in lags) - behind
            groups[one.group_id] = SummedLag(one.state, read_until, behind, max(seconds, default=None))

    reading = [asyncio.ensure_future(read(one)) for one in chosen]
    try:
        async with asyncio.timeout(ANSWER_S):
            await asyncio.gather(*reading)
    except TimeoutError:
        late = sum(task.cancelled() for task in reading)
        return groups, [*left_out, f"the lag of {counted(late, 'group')} could not be read within {ANSWER_S:g} s"]
    return groups, left_out


async def _requests(metrics: Iterable[str], needs_metrics: bool) -> tuple[list[str], list[str]]:
    """What brokers say of their requests, and why some do not."""
    texts, unread = [], []
    answers = await asyncio.gather(
        *(asyncio.to_thread(request_metrics, url, ANSWER_S) for url in metrics), return_exceptions=True
    )
    for answer in answers:
        if not isinstance(answer, BaseException):
            texts.append(answer)
        elif needs_metrics or not isinstance(answer, MoldauError):
            raise answer
        else:
            unread.append(str(answer))
    return texts, unread


def _health(topics: Iterable[TopicView]) -> PartitionHealth:
    parts = [part for topic in topics for part in topic.partitions.values()]
    return PartitionHealth(
        sum(part.leader < 0 for part in parts),
        sum(len(part.isr) < len(part.replicas) for part in parts),
        frozenset(broker for part in parts for broker in part.replicas),
    )
