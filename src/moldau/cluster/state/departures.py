"""The leaderships that a broker hands over before it stops (controlled shutdown). Pure.

A leaving broker is still alive: it serves, and follows other leaders, until it is in no ISR. For each partition:

    enough others in sync     it leaves the ISR, and another replica in sync leads. "Enough" is `min.insync.replicas`
    too few, one may join     another replica in sync leads if there is one, and the broker stays in sync until a
                              replica that is up has caught up: otherwise acks=all would be refused
    too few, none may join    as if it had gone: waiting would help nobody

All of them begin a new leader epoch only if the leader changes.
"""

from collections.abc import Collection

from moldau.cluster.state.eligibility import CanLead, elected, led_by, without
from moldau.cluster.state.image import Image, PartitionImage


def after_leaving(part: PartitionImage, leaving: Collection[int], can_lead: CanLead, least: int) -> PartitionImage:
    """The partition after as much of that as is possible now. `can_lead` is true also for leaving brokers that are up,
    `least` is `min.insync.replicas`."""
    others = [one for one in part.isr if one not in leaving]
    if len(others) == len(part.isr):
        return part
    may_join = any(one not in part.isr and one not in leaving and can_lead(one) for one in part.replicas)
    if len(others) >= min(least, len(part.replicas)) or not may_join:
        gone = [one for one in part.isr if one in leaving]
        return elected(without(part, gone, least), lambda one: one not in leaving and can_lead(one), least)
    if part.leader in leaving and others:
        return led_by(part, next(one for one in part.replicas if one in others))
    return part


def is_in_sync(image: Image, broker: int) -> bool:
    """Whether this broker is in any ISR: then it must not stop yet."""
    return any(broker in part.isr for topic in image.topics.values() for part in topic.partitions)
