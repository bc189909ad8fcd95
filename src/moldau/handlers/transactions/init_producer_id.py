"""InitProducerId (key 22), versions 0 to 5: a producer id for an idempotent producer, or for a transactional id.

A producer without a transactional id always gets a new producer id and epoch 0, even if it names its last one, as in
Kafka. A transactional id keeps its producer id: each producer that starts with it fences the earlier ones (KIP-98), and
one that names its last producer id and epoch recovers (KIP-360). Before version 4 PRODUCER_FENCED is unknown, and the
answer is INVALID_PRODUCER_EPOCH. Rights are judged before anything else; without a transactional id, a client that may
write to any topic may have a producer id.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from moldau.cluster.producer_ids import ProducerIds
from moldau.errors import ErrorCode, StorageError
from moldau.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from moldau.protocol.transaction_errors import INIT_PRODUCER_ID
from moldau.requests.access import IDEMPOTENT_WRITE, TWO_PHASE_COMMIT, WRITE_TOPIC, WRITE_TRANSACTIONAL_ID
from moldau.requests.session import Call

if TYPE_CHECKING:
    from moldau.coordinators.transactions.coordinator import TransactionCoordinator


class InitProducerId:
    def __init__(self, producer_ids: ProducerIds, transactions: "Callable[[], TransactionCoordinator]"):
        self._producer_ids = producer_ids
        self._transactions = transactions

    def __call__(
        self, request: InitProducerIdRequest, call: Call
    ) -> InitProducerIdResponse | Awaitable[InitProducerIdResponse]:
        denied = _denied(request, call)
        if denied:
            return _refused(denied)
        if request.transactional_id == "" or (request.producer_id == -1) != (request.producer_epoch == -1):
            return _refused(ErrorCode.INVALID_REQUEST)
        if request.transactional_id is not None:
            return self._of_transactional_id(request, request.transactional_id, call.version)
        producer_id = self._producer_ids.next()
        if isinstance(producer_id, int):
            return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
        return self._later(producer_id)

    def _of_transactional_id(
        self, request: InitProducerIdRequest, transactional_id: str, version: int
    ) -> InitProducerIdResponse | Awaitable[InitProducerIdResponse]:
        from moldau.coordinators.transactions.messages import Initialized, InitProducer
        from moldau.handlers.responding import respond_when_ready

        def respond(done: Initialized) -> InitProducerIdResponse:
            error = INIT_PRODUCER_ID.in_version(done.error, version)
            return InitProducerIdResponse(error_code=error, producer_id=done.producer_id, producer_epoch=done.epoch)

        timeout_ms, producer_id, epoch = request.transaction_timeout_ms, request.producer_id, request.producer_epoch
        ask = InitProducer(transactional_id, timeout_ms, producer_id, epoch)
        return respond_when_ready(self._transactions().init_producer_id(ask), respond)

    async def _later(self, producer_id: Awaitable[int]) -> InitProducerIdResponse:
        try:
            return InitProducerIdResponse(producer_id=await producer_id, producer_epoch=0)
        except StorageError:
            return _refused(ErrorCode.COORDINATOR_NOT_AVAILABLE)


def _denied(request: InitProducerIdRequest, call: Call) -> ErrorCode:
    """The error of a client that lacks a right; NONE if it lacks none."""
    name = request.transactional_id
    if name is None:
        may = call.may(IDEMPOTENT_WRITE, logged=False) or call.may_any(WRITE_TOPIC)
        return ErrorCode.NONE if may else IDEMPOTENT_WRITE.denied
    may = call.may(WRITE_TRANSACTIONAL_ID, name) and (not request.enable2_pc or call.may(TWO_PHASE_COMMIT, name))
    return ErrorCode.NONE if may else WRITE_TRANSACTIONAL_ID.denied


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
