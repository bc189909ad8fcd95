"""How far mirrors are: asked from both clusters, of which a worker knows nothing more."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from moldau.errors import KafkaError, NoSuchPartition
from moldau.mirror.ends import SETTING, ClusterEnd, source_of
from moldau.mirror.planning import FAILING_OVER
from moldau.names import TopicPartition

if TYPE_CHECKING:
    from moldau.client.lag import Lag


class MirrorStatus(NamedTuple):
    """One partition. `source_end`, `stable_end`: where the source's log ends, and where its committed transactions do;
    `end`: where the mirror's log ends. `records`: how many offsets of the source the mirror lacks, `seconds`: the age
    of the oldest record among them. What a cluster does not tell is None."""

    topic: str
    partition: int
    source_end: int | None
    stable_end: int | None
    end: int | None
    records: int | None
    seconds: float | None


async def mirrors_in(target: ClusterEnd, source_cluster_id: str, names: Sequence[str] = ()) -> dict[str, str]:
    """The topics of the target that mirror that cluster (any cluster, if it has no name), with their `mirror.source`;
    of these names, if some are given. Raises `KafkaError`."""
    topics = await target.topics()
    mirrors: dict[str, str] = {}
    for name, settings in (await target.settings(name for name in topics if not names or name in names)).items():
        if isinstance(settings, NoSuchPartition):  # deleted meanwhile
            continue
        if isinstance(settings, KafkaError):
            raise settings
        source = settings.get(SETTING, "")
        if source and source_cluster_id in ("", source.split("/")[0]):
            mirrors[name] = source
    return mirrors


async def interrupted(target: ClusterEnd) -> list[str]:
    """The topics whose fail-over was begun and has not ended. Raises `KafkaError`."""
    return [*await mirrors_in(target, FAILING_OVER.rstrip("/"))]


async def status(source: ClusterEnd, target: ClusterEnd) -> list[MirrorStatus]:
    """Each partition of the target that mirrors the source. Raises `KafkaError` if the target does not answer."""
    mirrors = await mirrors_in(target, source.cluster_id)
    of_target, of_source = dict(target.router.view.topics), await source.topics()
    partitions = [TopicPartition(name, number) for name in mirrors for number in of_target[name].partitions]
    ends = await target.admin.offsets(dict.fromkeys(partitions, "latest"), known_only=True) if partitions else {}
    there: dict[TopicPartition, int] = {}
    for tp, end in ends.items():
        view = of_source.get(tp.topic)
        is_same = view is not None and source_of(source.cluster_id, view.topic_id) == mirrors[tp.topic]
        if view is not None and is_same and tp.partition in view.partitions:
            there[tp] = end
    lags, stable = await behind_source(source, there)
    shown: list[MirrorStatus] = []
    for tp in partitions:
        lag = lags.get(tp)
        told = (None, None, None) if lag is None else (lag.end, lag.records, lag.seconds)
        shown.append(MirrorStatus(*tp, told[0], stable.get(tp), ends.get(tp), *told[1:]))
    return shown


async def behind_source(
    source: ClusterEnd, ends: Mapping[TopicPartition, int]
) -> tuple[Mapping[TopicPartition, "Lag"], Mapping[TopicPartition, int]]:
    """How far these ends are behind, and the stable ends; nothing of partitions whose leaders do not answer."""
    try:
        known = await source.admin.offsets(dict.fromkeys(ends, "latest"), known_only=True) if ends else {}
        if not known:
            return {}, {}
        lags = await source.admin.lags({tp: ends[tp] for tp in known})
        listed = await source.admin.list_offsets(dict.fromkeys(known, "latest"), isolation_level="read_committed")
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
