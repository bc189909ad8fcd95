"""AlterPartition (API key 56): request and response; the leader of a partition proposes another ISR to the controller
(KIP-497, 903)."""

import uuid

from moldau.protocol.schema import ARRAY, INT8, INT16, INT32, INT64, UUID, message


@message
class ProposedReplica:
    broker_id: int = INT32()
    broker_epoch: int = INT64(default=-1)


@message
class ProposedPartition:
    partition_index: int = INT32()
    leader_epoch: int = INT32()
    new_isr_with_epochs: list[ProposedReplica] = ARRAY(ProposedReplica, since=3)
    leader_recovery_state: int = INT8()
    partition_epoch: int = INT32()


@message
class ProposedTopic:
    topic_id: uuid.UUID = UUID()
    partitions: list[ProposedPartition] = ARRAY(ProposedPartition)


@message
class AlterPartitionRequest:
    broker_id: int = INT32()
    broker_epoch: int = INT64(default=-1)
    topics: list[ProposedTopic] = ARRAY(ProposedTopic)


@message
class AlteredPartition:
    """After an error the fields other than `error_code` have no meaning."""

    partition_index: int = INT32()
    error_code: int = INT16()
    leader_id: int = INT32()
    leader_epoch: int = INT32()
    isr: list[int] = ARRAY(INT32)
    leader_recovery_state: int = INT8()
    partition_epoch: int = INT32()


@message
class AlteredTopic:
    topic_id: uuid.UUID = UUID()
    partitions: list[AlteredPartition] = ARRAY(AlteredPartition)


@message
class AlterPartitionResponse:
    throttle_time_ms: int = INT32()
    error_code: int = INT16()
    topics: list[AlteredTopic] = ARRAY(AlteredTopic)
