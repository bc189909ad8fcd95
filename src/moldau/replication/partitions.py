"""All partitions this broker hosts, kept in step with the cluster's image.

`follow` makes and opens the logs of partitions that became ours, hands changed settings and leaderships on, and
removes what is gone; it is awaited before the change is answered, so a topic that was created can be written to. The
look-up by name or id is what every request pays: a few subscripts, no object made.
"""

import logging
import uuid
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from moldau.cluster.cluster import Cluster
from moldau.cluster.image import Image, TopicImage
from moldau.errors import StorageError
from moldau.log.folder import LogFolder
from moldau.log.log import Log
from moldau.names import BrokerId, LeaderEpoch, Offset, TopicPartition
from moldau.replication.hosted import Hosted
from moldau.replication.partition import Partition
from moldau.runtime import Runtime

logger = logging.getLogger(__name__)


class Partitions:
    """`local` is this broker. Nothing is hosted before `load`."""

    def __init__(self, local: BrokerId, cluster: Cluster, folder: LogFolder, runtime: Runtime):
        self._local = local
        self._cluster = cluster
        self._folder = folder
        self._runtime = runtime
        self._by_name: dict[str, list[Hosted | None]] = {}
        self._names: dict[bytes, str] = {}

    def find(self, name: str | None, topic_id: bytes | None, index: int) -> Hosted | None:
        """The partition of the topic of that id, or of that name where the id is None; None if it is not here."""
        if topic_id is not None:
            name = self._names.get(topic_id)
        hosts = self._by_name.get(name) if name is not None else None
        if hosts is None or not 0 <= index < len(hosts):
            return None
        return hosts[index]

    def knows(self, topic_id: bytes) -> bool:
        return topic_id in self._names

    def __iter__(self) -> Iterator[Hosted]:
        """Those that are there when their turn comes: who iterates may await."""
        for name, hosts in list(self._by_name.items()):
            for hosted in list(hosts):
                if hosted is not None and self._by_name.get(name) is hosts:
                    yield hosted

    def high_watermarks(self) -> dict[TopicPartition, int]:
        return {hosted.tp: hosted.high_watermark for hosted in self}

    async def load(self) -> list[str]:
        """Open what is in the log folder and in the image. Returns the names in the folder that belong to nothing
        known.

        Partitions whose deletion was cut off by a crash go now. Raises `OSError`, `KafkaError(KAFKA_STORAGE_ERROR)`.
        """
        image = self._cluster.image
        known = {name: topic.id for name, topic in image.topics.items()}
        deleted = list(image.deleted)
        strays = await self._runtime.run(partial(self._folder.load, known, self._cluster.topic_config, deleted))
        await self._cluster.forget_deleted(deleted)
        await self.follow(image, list(image.topics))
        return strays

    async def follow(self, image: Image, names: Sequence[str]) -> None:
        """Be as `image` says for the topics that changed. Raises `KafkaError(KAFKA_STORAGE_ERROR)`."""
        missing: list[tuple[TopicPartition, uuid.UUID]] = []
        gone: list[TopicPartition] = []
        for name in names:
            topic, hosts = image.topics.get(name), self._by_name.get(name)
            if hosts is not None and (topic is None or self._names.get(topic.id.bytes) != name):
                gone += self._drop(name)
            if topic is not None:
                missing += [(tp, topic.id) for tp in self._ours(topic) if tp in gone or tp not in self._folder.logs]
        if gone or missing:
            await self._runtime.run(partial(self._change_folder, gone, missing))
        for name in names:
            topic = image.topics.get(name)
            if topic is not None:
                self._host(topic)

    def _ours(self, topic: TopicImage) -> list[TopicPartition]:
        return [
            TopicPartition(topic.name, number)
            for number, partition in enumerate(topic.partitions)
            if self._local in partition.replicas
        ]

    def _drop(self, name: str) -> list[TopicPartition]:
        """Serve a topic no longer; whoever waits for it is told, whoever is in the middle of something finds it
        gone."""
        hosts = self._by_name.pop(name)
        self._names = {topic_id: known for topic_id, known in self._names.items() if known != name}
        found = [hosted for hosted in hosts if hosted is not None]
        for hosted in found:
            hosted.leave()
        return [hosted.tp for hosted in found]

    def _change_folder(self, gone: list[TopicPartition], missing: list[tuple[TopicPartition, uuid.UUID]]) -> None:
        now_ms = self._runtime.clock.now_ms()
        for tp in gone:
            self._folder.delete(tp, now_ms)
        for tp, topic_id in missing:
            if tp not in self._folder.logs:
                try:
                    self._folder.create(tp, topic_id, self._cluster.topic_config(tp.topic))
                except StorageError as error:
                    logger.error("%s is not served: %s, and is not ours", tp, error)

    def _host(self, topic: TopicImage) -> None:
        config = self._cluster.topic_config(topic.name)
        hosts = self._by_name.setdefault(topic.name, [])
        self._names[topic.id.bytes] = topic.name
        hosts += [None] * (len(topic.partitions) - len(hosts))
        logs: Mapping[TopicPartition, Log] = self._folder.logs
        for number, partition in enumerate(topic.partitions):
            tp = TopicPartition(topic.name, number)
            log = logs.get(tp)
            if log is None:
                continue
            hosted = hosts[number]
            if hosted is None:
                committed = min(self._folder.high_watermarks.get(tp, 0), log.log_end_offset)
                state = Partition(self._local, Offset(max(committed, log.log_start_offset)))
                hosted = hosts[number] = Hosted(tp, topic.id, log, config, state, self._runtime)
            elif hosted.config != config:
                hosted.configure(config)
            isr = tuple(BrokerId(broker) for broker in partition.isr)
            leader, epoch = BrokerId(partition.leader), LeaderEpoch(partition.leader_epoch)
            if (hosted.state.leader, hosted.state.leader_epoch) != (leader, epoch):
                hosted.waiters.wake()
            hosted.state.lead(leader, epoch, isr, log.log_end_offset)
