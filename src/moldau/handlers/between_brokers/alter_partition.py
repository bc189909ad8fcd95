"""AlterPartition (key 56), version 3: the leader of partitions proposes other ISRs to the controller.

Answered on connections between brokers only. NOT_CONTROLLER if this broker is not the controller, STALE_BROKER_EPOCH if
the sender has registered again since; else each partition has its own code, as Kafka 4.3.1 has them (KIP-497, 903).
"""

from collections.abc import Awaitable, Callable, Sequence

from moldau.cluster.state.image import PartitionImage
from moldau.cluster.state.isr_changes import ProposedIsr, proposals_of, response_of
from moldau.errors import ErrorCode, KafkaError, StorageError
from moldau.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from moldau.requests.session import Call

Alter = Callable[[int, int, Sequence[ProposedIsr]], Awaitable[list[PartitionImage | ErrorCode]]]
"""The controller's judgement on the proposals of the broker with this id and epoch."""


class AlterPartition:
    def __init__(self, alter: Alter):
        self._alter = alter

    async def __call__(self, request: AlterPartitionRequest, call: Call) -> AlterPartitionResponse:
        introduction = call.session.introduction
        if introduction is None or introduction.broker_id != request.broker_id:
            return AlterPartitionResponse(error_code=ErrorCode.INVALID_REQUEST)
        proposals = proposals_of(request)
        try:
            results = await self._alter(request.broker_id, request.broker_epoch, proposals)
        except KafkaError as refused:
            return AlterPartitionResponse(error_code=refused.code)
        except StorageError:
            return AlterPartitionResponse(error_code=ErrorCode.KAFKA_STORAGE_ERROR)
        return response_of(proposals, results)
