"""How far mirrors are: asked from both clusters, of which a worker knows nothing more."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from moldau.client.lag import Lag
from moldau.errors import KafkaError
from moldau.mirror.ends import SETTING, ClusterEnd, source_of
from moldau.names import TopicPartition


class MirrorStatus(NamedTuple):
    """One partition. `source_end`, `stable_end`: where the source's log ends, and where its committed transactions do;
    `end`: where the mirror's log ends. `records`: how many offsets of the source the mirror lacks, `seconds`: the age
    of the oldest record among them. What a cluster does not tell is None."""

    topic: str
    partition: int
    source_end: int | None
    stable_end: int | None
    end: int
    records: int | None
    seconds: float | None


async def mirrors_in(target: ClusterEnd, source_cluster_id: str, names: Sequence[str] = ()) -> dict[str, str]:
    """The topics of the target that mirror that cluster (any cluster, if it has no name), with their `mirror.source`;
    of these names, if some are given. Raises `KafkaError`."""
    topics = await target.topics()
    mirrors: dict[str, str] = {}
    for name in topics:
        if not names or name in names:
            source = (await target.own_settings(name)).get(SETTING, "")
            if source and source_cluster_id in ("", source.split("/")[0]):
                mirrors[name] = source
    return mirrors


async def status(source: ClusterEnd, target: ClusterEnd) -> list[MirrorStatus]:
    """Each partition of the target that mirrors the source. Raises `KafkaError` if the target does not answer."""
    mirrors = await mirrors_in(target, source.cluster_id)
    of_target, of_source = dict(target.router.view.topics), await source.topics()
    shown: list[MirrorStatus] = []
    for name, mirror_source in mirrors.items():
        partitions = [TopicPartition(name, number) for number in of_target[name].partitions]
        ends = await target.admin.offsets(dict.fromkeys(partitions, "latest"))
        view = of_source.get(name)
        is_same = view is not None and source_of(source.cluster_id, view.topic_id) == mirror_source
        there = {tp: ends[tp] for tp in partitions if view is not None and is_same and tp.partition in view.partitions}
        lags, stable = await behind_source(source, there)
        for tp in partitions:
            lag = lags.get(tp)
            told = (None, None, None) if lag is None else (lag.end, lag.records, lag.seconds)
            shown.append(MirrorStatus(*tp, told[0], stable.get(tp), ends[tp], *told[1:]))
    return shown


async def behind_source(
    source: ClusterEnd, ends: Mapping[TopicPartition, int]
) -> tuple[Mapping[TopicPartition, Lag], Mapping[TopicPartition, int]]:
    """How far these ends are behind, and the stable ends; nothing of a topic whose leaders do not answer."""
    try:
        lags = await source.admin.lags(ends)
        listed = await source.admin.list_offsets(dict.fromkeys(ends, "latest"), isolation_level="read_committed")
    except KafkaError:
        return {}, {}
    return lags, {tp: one.offset for tp, one in listed.items() if one is not None}


async def are_mirrors(source: str, target: str, topics: Sequence[str]) -> bool:
    """Whether all of these topics of the target's brokers mirror those of the source's, at the same offsets; False also
    if the clusters do not tell."""
    async with ClusterEnd(source, "the origin") as origin, ClusterEnd(target, "the mirror") as mirror:
        try:
            found, views = await mirrors_in(mirror, origin.cluster_id, topics), await origin.topics()
        except KafkaError:
            return False
    return all(
        name in views and found.get(name) == source_of(origin.cluster_id, views[name].topic_id) for name in topics
    )
