"""InitProducerId (key 22), versions 0 to 5: a number for an idempotent producer.

A producer without a transactional id always gets a new number and epoch 0, even if it says which it had, as from
Kafka. There are no transactions yet: a transactional id is answered with TRANSACTIONAL_ID_AUTHORIZATION_FAILED, which
every client takes for final, so that nobody waits for a coordinator that does not come.
"""

from collections.abc import Awaitable

from moldau.cluster.cluster import Cluster
from moldau.errors import ErrorCode, StorageError
from moldau.handlers.context import Context
from moldau.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


class InitProducerId:
    def __init__(self, cluster: Cluster):
        self._cluster = cluster

    def __call__(
        self, request: InitProducerIdRequest, context: Context
    ) -> InitProducerIdResponse | Awaitable[InitProducerIdResponse]:
        if request.transactional_id == "" or (request.producer_id == -1) != (request.producer_epoch == -1):
            return _refused(ErrorCode.INVALID_REQUEST)
        if request.transactional_id is not None:
            return _refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        producer_id = self._cluster.next_producer_id()
        if isinstance(producer_id, int):
            return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
        return self._later(producer_id)

    async def _later(self, producer_id: Awaitable[int]) -> InitProducerIdResponse:
        try:
            return InitProducerIdResponse(producer_id=await producer_id, producer_epoch=0)
        except StorageError:
            return _refused(ErrorCode.COORDINATOR_NOT_AVAILABLE)


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
