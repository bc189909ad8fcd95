"""The leaderships of one broker in an image. Pure.

A broker that has just started must not lead by what it reads before a controller has dealt with its registration: it
may have lost records of a leader epoch in which it led before, and would write others with the same offsets and epoch.
No follower can tell these from each other (KIP-101 compares epochs).
"""

from moldau.cluster.state.image import NO_LEADER, Image, TopicImage


def led_topics(image: Image, broker_id: int) -> list[str]:
    """The topics with a partition that the broker leads."""
    return [name for name, topic in image.topics.items() if any(part.leader == broker_id for part in topic.partitions)]


def without_leaderships(image: Image, broker_id: int) -> Image:
    """The image in which the partitions that the broker leads have no leader, in the same leader epoch."""
    led_by_nobody: dict[str, TopicImage | None] = {
        name: (topic := image.topics[name])._replace(
            partitions=tuple(
                part._replace(leader=NO_LEADER) if part.leader == broker_id else part for part in topic.partitions
            )
        )
        for name in led_topics(image, broker_id)
    }
    return image.with_topics(led_by_nobody) if led_by_nobody else image
