"""AllocateProducerIds (key 67), version 0: the controller gives a broker its next block of producer ids.

The block is in the store before it is answered. NOT_CONTROLLER if this broker is not the controller.
"""

from collections.abc import Awaitable, Callable

from moldau.errors import ErrorCode, KafkaError, StorageError
from moldau.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from moldau.requests.session import Call


class AllocateProducerIds:
    def __init__(self, take: Callable[[int], Awaitable[range]]):
        self._take = take

    async def __call__(self, request: AllocateProducerIdsRequest, call: Call) -> AllocateProducerIdsResponse:
        try:
            block = await self._take(request.broker_id)
        except KafkaError as error:
            return AllocateProducerIdsResponse(error_code=error.code)
        except StorageError:
            return AllocateProducerIdsResponse(error_code=ErrorCode.KAFKA_STORAGE_ERROR)
        return AllocateProducerIdsResponse(producer_id_start=block.start, producer_id_len=len(block))
