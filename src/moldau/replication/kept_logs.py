"""Logs of partitions that were moved to other brokers while this broker was down.

A broker deletes the log of a replica that is moved away from it. At its start it keeps such a log, as Kafka does with a
stray one: the metadata may have been rebuilt from other brokers' folders, and then this log may be the only one.
"""

from collections.abc import Callable, Sequence

from moldau.cluster.state.image import Image
from moldau.names import BrokerId, TopicPartition, counted

NAMED_MAX = 3


def moved_away(
    image: Image, local: BrokerId, folder_of: Callable[[TopicPartition], object | None]
) -> list[TopicPartition]:
    """The partitions whose replicas are on other brokers, and which have a log in a folder of this one."""
    return [
        tp
        for topic in image.topics.values()
        for number, part in enumerate(topic.partitions)
        if local not in part.replicas and folder_of(tp := TopicPartition(topic.name, number)) is not None
    ]


def moved_line(partitions: Sequence[TopicPartition]) -> str:
    named = ", ".join(map(str, partitions[:NAMED_MAX])) + (", ..." if len(partitions) > NAMED_MAX else "")
    return (
        f"the logs of {counted(len(partitions), 'partition')} are kept but not served, because other brokers have the "
        f"replicas by now: {named}. Stop the broker and delete their folders once the other replicas are in sync"
    )
