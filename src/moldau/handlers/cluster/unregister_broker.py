"""UnregisterBroker (key 64, version 0): the cluster forgets a broker that has left for good.

The controller removes it from the eligible leaders of partitions, and waits for it no longer where topics were deleted;
it stays among the replicas of its partitions, as in Kafka: move those first, or afterwards. A broker that never
registered, or was forgotten, is BROKER_ID_NOT_REGISTERED. A broker that is running is refused, unlike in Kafka, which
leaves a process behind that serves nothing until it is restarted. A broker that was forgotten may come back: its
replicas then count as new.
"""

from collections.abc import Awaitable, Callable

from moldau.cluster.controlling.brokers.forgetting import forgetting_refusal
from moldau.cluster.controlling.controller import Refusal
from moldau.cluster.state.image import Image
from moldau.errors import ErrorCode, KafkaError, StorageError
from moldau.handlers.responding import not_made
from moldau.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from moldau.requests.session import Call

Forget = Callable[[int], Awaitable[Refusal | None]]


class UnregisterBroker:
    """`forget` is the controller's; None for a broker alone, which knows of no other."""

    def __init__(self, image: Callable[[], Image], forget: Forget | None = None):
        self._image = image
        self._forget = forget

    async def __call__(self, request: UnregisterBrokerRequest, call: Call) -> UnregisterBrokerResponse:
        refusal: Refusal | None
        if self._forget is None:
            refusal = forgetting_refusal(self._image(), request.broker_id, ())
        else:
            try:
                refusal = await self._forget(request.broker_id)
            except (StorageError, KafkaError) as error:
                refusal = not_made(error)
        code, message = refusal or Refusal(ErrorCode.NONE, "")
        return UnregisterBrokerResponse(error_code=code, error_message=message)
