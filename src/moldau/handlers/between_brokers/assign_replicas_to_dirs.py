"""AssignReplicasToDirs (key 73), version 0: a broker tells the controller in which log folders its partitions are.

What is answered is recorded. NOT_CONTROLLER if this broker is not the controller, STALE_BROKER_EPOCH if the one that
asks has registered again since, INVALID_REQUEST if it speaks for another broker. A partition has UNKNOWN_TOPIC_ID,
UNKNOWN_TOPIC_OR_PARTITION, or NOT_LEADER_OR_FOLLOWER if the broker has no replica of it.
"""

from collections.abc import Awaitable, Callable, Sequence

from moldau.cluster.controlling.assigned_directories import InDirectory
from moldau.cluster.directory_messages import from_request, to_response
from moldau.errors import ErrorCode, KafkaError, StorageError
from moldau.metadata_store.store import StoreConflict
from moldau.protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse
from moldau.requests.session import Call

Assign = Callable[[int, int, Sequence[InDirectory]], Awaitable[Sequence[ErrorCode]]]


class AssignReplicasToDirs:
    """`assign` is the controller's, given the broker's id and epoch."""

    def __init__(self, assign: Assign):
        self._assign = assign

    async def __call__(self, request: AssignReplicasToDirsRequest, call: Call) -> AssignReplicasToDirsResponse:
        introduction = call.session.introduction
        if introduction is None or introduction.broker_id != request.broker_id:
            return AssignReplicasToDirsResponse(error_code=ErrorCode.INVALID_REQUEST)
        try:
            errors = await self._assign(request.broker_id, request.broker_epoch, from_request(request))
        except KafkaError as error:
            return AssignReplicasToDirsResponse(error_code=error.code)
        except (StorageError, StoreConflict):
            return AssignReplicasToDirsResponse(error_code=ErrorCode.KAFKA_STORAGE_ERROR)
        return to_response(request, errors)
