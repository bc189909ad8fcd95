"""The lines about partitions that are not served although this broker starts: why that may be, and what to do. Pure.

A log folder may be offline: one that is only not mounted looks like one that an empty one replaced. Or a partition was
moved to other brokers while this one was down. A broker deletes the log of a replica that is moved away from it; at its
start it keeps such a log, as Kafka does with a stray one: the metadata may have been rebuilt from other brokers'
folders, and then this log may be the only one.
"""

from collections.abc import Callable, Iterable, Sequence

from moldau.cluster.state.image import Image
from moldau.names import BrokerId, TopicPartition, counted

NAMED_MAX = 3


def offline_line(count: int, directories: Iterable[str], repair_command: str | None) -> str:
    """`count` partitions are offline; `directories` are the ids of their log folders ("" for one that is not known).
    `repair_command` is that of a broker alone, None for one of several."""
    named = ", ".join(directory or "(not assigned)" for directory in sorted(set(directories)))
    go_on = "start once with --accept-empty all (or TOPIC-N), and they start empty and fetch what other replicas have"
    if repair_command is not None:
        go_on = f"`{repair_command}` can start them empty"
    return (
        f"{counted(count, 'partition')} {'is' if count == 1 else 'are'} offline with the log folder that has "
        f"directory.id={named}: it is offline, not mounted, missing in log.dirs, or was replaced by an empty folder. "
        f"Put it back and restart the broker; if it is lost for good, {go_on}"
    )


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
