"""How far a mirror into a foreign Kafka is: its positions in the target, beside the ends of the source's logs."""

from moldau.errors import ConfigError
from moldau.mirror.ends import ClusterEnd
from moldau.mirror.foreign.copy_positions import CopyPosition
from moldau.mirror.foreign.policy import ReplicationPolicy
from moldau.mirror.foreign.target_topics import read_positions, reader
from moldau.mirror.status import MirrorStatus, behind_source
from moldau.names import TopicPartition


async def foreign_status(source: ClusterEnd, target: ClusterEnd, policy: ReplicationPolicy) -> list[MirrorStatus]:
    """Each partition of the source that is mirrored; `end` is the next offset of the source that the target lacks.
    Raises `KafkaError` if the target does not answer, `ConfigError` if it has no such mirror."""
    topic = policy.positions()
    known = (await target.admin.list_topics()).get(topic)
    if known is None:
        raise ConfigError(f"{target.brokers} has no mirror of a cluster {policy.source!r}: it has no topic {topic}")
    positions: dict[TopicPartition, CopyPosition] = {}
    async with reader(target) as topics:
        for lane in known.partitions:
            positions |= await read_positions(topics, topic, lane, len(known.partitions), source.cluster_id)
    of_source = await source.topics()
    there = {
        tp: at.upstream
        for tp, at in positions.items()
        if tp.topic in of_source and tp.partition in of_source[tp.topic].partitions
    }
    lags, stable = await behind_source(source, there)
    shown: list[MirrorStatus] = []
    for tp in sorted(positions):
        lag = lags.get(tp)
        told = (None, None, None) if lag is None else (lag.end, lag.records, lag.seconds)
        shown.append(MirrorStatus(*tp, told[0], stable.get(tp), positions[tp].upstream, *told[1:]))
    return shown
