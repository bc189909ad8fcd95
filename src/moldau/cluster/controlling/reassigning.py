"""Whether a partition may move to other brokers, and what it becomes: the decisions of AlterPartitionReassignments.

Error codes and their order are those of Kafka 4.3.1 (KIP-455, KIP-860); the sentences are ours. What a partition looks
like on its way is in `cluster/state/reassignment.py`. A new replica is not in sync: its leader adds it to the ISR when
it has caught up. A broker that is not up cannot be added, and may be kept: it holds what it had.
"""

from collections.abc import Sequence

from moldau.cluster.controlling.controller import Refusal, shortened
from moldau.cluster.state.elections import LeastInSync
from moldau.cluster.state.image import Image, PartitionImage
from moldau.cluster.state.reassignment import begun, cancelled, is_under_way, originals_of
from moldau.errors import ErrorCode
from moldau.names import TopicPartition


def reassigned(
    image: Image,
    tp: TopicPartition,
    replicas: Sequence[int] | None,
    least: LeastInSync,
    *,
    keeps_factor: bool = False,
) -> PartitionImage | Refusal:
    """The partition on its way to these replicas, the preferred leader first; None cancels a reassignment.
    `keeps_factor`: the number of replicas must be the one from before any reassignment that is under way."""
    part = image.partition(tp)
    if part is None:
        sentence = f"partition {tp.partition} of {shortened(tp.topic)} does not exist"
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, sentence)
    if replicas is None:
        if not is_under_way(part):
            return Refusal(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
        return cancelled(part, least(tp.topic)) or _needs_unclean_election(tp)
    refusal = _refusal(image, part, replicas)
    if refusal is not None:
        return refusal
    factor = len(originals_of(part))
    if keeps_factor and len(replicas) != factor:
        return Refusal(ErrorCode.INVALID_REPLICATION_FACTOR, f"the partition has {factor} replicas")
    return begun(part, tuple(replicas), least(tp.topic)) or _needs_unclean_election(tp)


def _refusal(image: Image, part: PartitionImage, replicas: Sequence[int]) -> Refusal | None:
    code = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    if not replicas:
        return Refusal(code, "a partition is assigned to no broker")
    for broker in replicas:
        if broker not in image.brokers and broker not in part.replicas:
            return Refusal(code, f"broker {broker} is not running")
    if len(set(replicas)) < len(replicas):
        return Refusal(code, "a partition is assigned to one broker twice")
    return None


def _needs_unclean_election(tp: TopicPartition) -> Refusal:
    sentence = (
        f"only replicas of {tp} that would be removed are in sync: an unclean election would have to find a leader"
    )
    return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, sentence)
