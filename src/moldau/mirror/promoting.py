"""Promotion: a fail-over that loses nothing, because the source has nothing that its mirrors lack.

Producers of the source must have stopped; what they write after the last look would be lost, so the look is repeated
once the mirrors take no more records. Groups get the offsets that they have in the source then.
"""

import asyncio
import re
from collections.abc import Iterable, Mapping
from functools import partial

from moldau.errors import ErrorCode, KafkaError
from moldau.mirror.ends import SETTING, ClusterEnd
from moldau.mirror.failing_over import FailedOverTopics, fail_over_all, fence, fenced_source, mirror_end
from moldau.mirror.groups import sync_groups
from moldau.mirror.status import status
from moldau.names import TopicPartition, counted

LOOK_S = 0.2


async def behind(source: ClusterEnd, target: ClusterEnd, topics: Mapping[str, str]) -> int:
    """How many records these mirrors lack. Raises `KafkaError` if the source does not tell."""
    records = 0
    for one in await status(source, target):
        if one.topic in topics:
            if one.end is None:
                raise KafkaError(
                    ErrorCode.LEADER_NOT_AVAILABLE,
                    f"the leader of the mirror {one.topic}-{one.partition} does not answer",
                )
            if one.records is None:
                raise KafkaError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    f"the source does not tell where {one.topic}-{one.partition} ends: fail over if it is gone",
                )
            records += one.records
    return records


def narrower(source: ClusterEnd, target: ClusterEnd, topics: Iterable[str]) -> list[str]:
    """A sentence for each topic that has partitions in the source which its mirror lacks, as was asked last."""
    found: list[str] = []
    for name in topics:
        view, mirror = source.router.view.topics.get(name), target.router.view.topics.get(name)
        if view is not None and mirror is not None and len(mirror.partitions) < len(view.partitions):
            has = counted(len(view.partitions), "partition")
            found.append(f"{name} has {has} in the source, and its mirror {len(mirror.partitions)}")
    return found


async def until_level(source: ClusterEnd, target: ClusterEnd, topics: Mapping[str, str], seconds: float) -> None:
    """Wait until the mirrors have all partitions and all records. Raises `KafkaError`: REQUEST_TIMED_OUT, and as
    `behind` does."""
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + seconds
    while True:
        records, lacking = await behind(source, target, topics), narrower(source, target, topics)
        if not records and not lacking:
            return
        if loop.time() > deadline_s:
            what = "; ".join(lacking) or f"the mirrors still lack {counted(records, 'record')}"
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"{what}: does a worker run? Do producers still write?")
        await asyncio.sleep(LOOK_S)


async def promote(
    source: ClusterEnd, target: ClusterEnd, mirrors: Mapping[str, str], groups: re.Pattern[str], seconds: float
) -> FailedOverTopics:
    """Make these mirrors (name -> `mirror.source`) writable once they have all that the source has. If the source still
    grows, or does not answer, or this is cancelled before, they become mirrors as before. Raises `KafkaError`, which
    names those that could not."""
    await until_level(source, target, mirrors, seconds)
    fenced: dict[str, str] = {}
    try:
        for name, mirror_source in mirrors.items():
            fenced[name] = fenced_source(mirror_source)  # before it is set: the answer may be lost
            await fence(target, name, mirror_source)
        if grown := await _grown(source, target, fenced):
            why = f"producers still write to {', '.join(grown)} in the source: stop them first"
            raise KafkaError(ErrorCode.INVALID_REQUEST, why)
        synced = await sync_groups(source, target, mirrors, groups)
    except (KafkaError, asyncio.CancelledError) as failure:
        await _mirrors_again(target, {name: mirrors[name] for name in fenced}, failure)
        raise
    return (await fail_over_all(target, fenced))._replace(groups=synced.failures)


async def _mirrors_again(target: ClusterEnd, mirrors: Mapping[str, str], cause: BaseException) -> None:
    """Let workers write to these topics again. Raises `KafkaError` with the topics of which the target refuses that."""
    stuck: dict[str, KafkaError] = {}
    for name, mirror_source in mirrors.items():
        try:
            await target.admin.alter_topic_configs(name, {SETTING: mirror_source})
        except KafkaError as failure:
            stuck[name] = failure
    if stuck:
        first = next(iter(stuck.values()))
        why = str(cause) or "the promotion was interrupted"
        left = "the fail-over is half done, and no records are taken until it is run again"
        raise KafkaError(first.code, f"{why}; {', '.join(stuck)}: {left}: {first}") from cause


async def _grown(source: ClusterEnd, target: ClusterEnd, fenced: Mapping[str, str]) -> list[str]:
    """The topics that have records in the source which their mirrors, which take no more, lack; or partitions."""
    await source.topics()
    grown = [name for name in fenced if narrower(source, target, [name])]
    for name in fenced:
        partitions = [TopicPartition(name, number) for number in target.router.view.topics[name].partitions]
        ends = await source.admin.offsets(dict.fromkeys(partitions, "latest"))
        for tp in partitions:
            if name not in grown:
                end = await target.router.retrying(partial(mirror_end, target, tp, fenced[name]))
                if end < ends[tp]:
                    grown.append(name)
    return grown
