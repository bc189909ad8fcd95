"""Metadata rebuilt from the partitions in the log folders, if it was lost or is older than they are. Pure: the input is
an image that may be incomplete and the partitions' own files; the result is the new image.

Topics of the image keep their metadata; a topic that the image lacks is rebuilt from its partitions. Nothing is dropped
silently: a partition without a folder starts empty only if that was accepted, and a contradiction is a problem for a
person to solve. New leader epochs are above all epochs in the logs, and new producer ids above all that may have been
assigned.
"""

import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from moldau.cluster.controlling import controller
from moldau.cluster.state import layout
from moldau.cluster.state.image import Image, PartitionImage, TopicImage
from moldau.log.folders.traces import Trace
from moldau.metadata_store.store import NodeOperation
from moldau.names import INTERNAL_TOPICS, OFFSETS_TOPIC, TopicPartition, short_id

PRODUCER_IDS_SKIPPED: Final = 10_000_000
"""More producer ids than are assigned between two copies, or between two snapshots of producers."""
INTERNAL_SETTINGS: Final = {"cleanup.policy": "compact", "segment.bytes": "104857600"}
KEEPING: Final = {"retention.ms": "-1", "retention.bytes": "-1"}
"""Settings of a topic whose own are lost: nothing is deleted before somebody has set them again."""


@dataclass(frozen=True)
class Known:
    """The input besides the partitions. `image` is None if no metadata was left, and `stale` if it may be older
    than the partitions; `directories` are the ids of the available log folders, by path; `accepted` decides which
    partitions may start empty."""

    node_id: int
    cluster_id: str
    directories: Mapping[str, str]
    new_id: Callable[[], uuid.UUID]
    image: Image | None = None
    stale: bool = True
    producer_id: int = -1
    accepted: Callable[[TopicPartition], bool] = lambda tp: False


@dataclass
class Rebuilt:
    """`done` and `problems` are sentences; `renamed` are the partitions whose `partition.metadata` has to name the
    topic id that the metadata has."""

    image: Image
    producer_id: int
    done: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    renamed: dict[TopicPartition, uuid.UUID] = field(default_factory=dict)

    def operations(self, node_id: int) -> list[NodeOperation]:
        """The operations that write all of it into an empty store."""
        return [*layout.whole(self.image), *layout.last_producer_ids(node_id, self.producer_id)]


def rebuild(traces: Sequence[Trace], known: Known) -> Rebuilt:
    """The image for these partitions. `traces` are all in the available log folders."""
    return _Rebuilding(traces, known).run()


class _Rebuilding:
    def __init__(self, traces: Sequence[Trace], known: Known):
        self._known = known
        self._raise = 1 if known.stale else 0
        self._image = known.image or Image(known.cluster_id)
        self._traces: dict[TopicPartition, Trace] = {}
        self._result = Rebuilt(self._image, _producer_id(traces, known))
        for trace in traces:
            if trace.topic_id in self._image.deleted:
                continue  # the next start removes it
            other = self._traces.setdefault(trace.tp, trace)
            if other is not trace:
                sentence = f"{trace.tp} is in both {other.folder.parent} and {trace.folder.parent}: move the "
                self._result.problems.append(sentence + "unwanted one out of the log folders")

    def run(self) -> Rebuilt:
        image, result = self._image, self._result
        topics = {name: self._kept(topic) for name, topic in image.topics.items()}
        unknown: dict[str, list[Trace]] = {}
        for trace in self._traces.values():
            if trace.tp.topic not in topics:
                unknown.setdefault(trace.tp.topic, []).append(trace)
        for name, traces in sorted(unknown.items()):
            made = self._made(name, traces)
            if made is not None:
                topics[name] = made
        result.image = replace(image, topics={}, topics_by_id={}).with_topics(topics)
        return result

    def _kept(self, topic: TopicImage) -> TopicImage:
        """A topic of the image, with the partitions that were added later."""
        parts = list(topic.partitions)
        last = max(
            (tp.partition for tp, one in self._traces.items() if tp.topic == topic.name and one.topic_id == topic.id),
            default=-1,
        )
        if last >= len(parts):
            self._result.done.append(f"topic {topic.name}: it has {last + 1} partitions, not {len(parts)}")
            parts += [self._new_partition()] * (last + 1 - len(parts))
        return topic._replace(
            partitions=tuple(self._partition(TopicPartition(topic.name, n), topic.id, p) for n, p in enumerate(parts))
        )

    def _made(self, name: str, traces: Sequence[Trace]) -> TopicImage | None:
        """A topic rebuilt from its partitions; None if they do not belong to one topic."""
        result = self._result
        ids = {trace.topic_id for trace in traces if trace.topic_id is not None}
        wrong = controller.name_refusal(name)
        if wrong is not None:
            result.problems.append(f"{traces[0].folder} is in the way: {wrong.message}; move it elsewhere")
            return None
        if len(ids) > 1:
            names = ", ".join(str(trace.folder) for trace in traces[:5])
            result.problems.append(
                f"topic {name} has several topic ids: move the folders of another topic away ({names})"
            )
            return None
        other = next((self._image.topics_by_id[one].name for one in ids if one in self._image.topics_by_id), None)
        if other is not None:
            result.problems.append(f"{traces[0].folder} has the topic id of {other}: move it elsewhere, or rename it")
            return None
        topic_id = next(iter(ids), None) or self._known.new_id()
        count = 1 + max(trace.tp.partition for trace in traces)
        parts = [
            self._partition(TopicPartition(name, number), topic_id, self._new_partition()) for number in range(count)
        ]
        overrides = dict(INTERNAL_SETTINGS if name in INTERNAL_TOPICS else KEEPING)
        if name == OFFSETS_TOPIC:
            overrides["compression.type"] = "producer"
        said = ", ".join(f"{setting}={value}" for setting, value in overrides.items())
        result.done.append(
            f"topic {name}: rebuilt from its {count} partitions; its settings are lost, and it gets {said}"
        )
        return TopicImage(name, topic_id, tuple(parts), overrides)

    def _new_partition(self) -> PartitionImage:
        me = (self._known.node_id,)
        return PartitionImage(me[0], 0, me, me)

    def _partition(self, tp: TopicPartition, topic_id: uuid.UUID, part: PartitionImage) -> PartitionImage:
        known, result = self._known, self._result
        node_id = known.node_id
        if node_id not in part.replicas:
            return part
        trace = self._traces.get(tp)
        if trace is None:
            return self._missing(tp, part)
        if trace.topic_id is not None and trace.topic_id != topic_id:
            if trace.topic_id in self._image.topics_by_id:
                other = self._image.topics_by_id[trace.topic_id].name
                result.problems.append(f"{trace.folder} has the topic id of {other}: move it elsewhere")
                return part
            was, now = short_id(trace.topic_id), short_id(topic_id)
            result.done.append(f"{trace.folder}: partition.metadata names the topic id {was}, and will name {now}")
            result.renamed[tp] = topic_id
        epoch = max(part.leader_epoch, trace.leader_epoch) + self._raise
        part = part._replace(leader_epoch=epoch, made=True)
        return part.with_directory(node_id, known.directories[str(trace.folder.parent)])

    def _missing(self, tp: TopicPartition, part: PartitionImage) -> PartitionImage:
        known, result = self._known, self._result
        directory = part.directory_of(known.node_id)
        at_hand = not directory or directory in known.directories.values()
        if known.accepted(tp):
            result.done.append(f"{tp} has no folder: it starts empty")
            directory = directory if at_hand else next(iter(known.directories.values()))
            part = part._replace(made=False, leader_epoch=part.leader_epoch + 1)
            return part.with_directory(known.node_id, directory)
        if at_hand and part.made:
            result.problems.append(f"{tp} has no folder: restore it, or accept its loss with --accept-empty {tp}")
        elif not at_hand:
            result.done.append(f"{tp} is in a log folder that was not named ({directory}): it stays there")
        return part._replace(leader_epoch=part.leader_epoch + self._raise)


def _producer_id(traces: Iterable[Trace], known: Known) -> int:
    last = max([known.producer_id, *(trace.producer_id for trace in traces)])
    if not known.stale:
        return last
    blocks = (last + PRODUCER_IDS_SKIPPED) // layout.PRODUCER_IDS_PER_BLOCK + 1
    return blocks * layout.PRODUCER_IDS_PER_BLOCK - 1


def unknown_to(image: Image, traces: Collection[Trace]) -> list[Trace]:
    """The partitions whose topic is neither in the image nor among its deleted topics."""
    return [
        trace
        for trace in traces
        if trace.topic_id not in image.deleted
        and (
            trace.topic_id not in image.topics_by_id
            if trace.topic_id is not None
            else trace.tp.topic not in image.topics and trace.tp.topic not in image.deleted.values()
        )
    ]
