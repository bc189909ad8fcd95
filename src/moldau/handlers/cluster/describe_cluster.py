"""DescribeCluster (key 60), versions 0 to 2: the brokers and the controller, for administrators.

Each broker has the address of the listener that the request came in on; a broker without such a listener is left out,
and is not named as the controller, as in Kafka. Only endpoint type 1, brokers, is supported: type 2, controllers, is a
mismatch, and any other type is unsupported (KIP-919). From version 2 on a client may ask for brokers that are fenced,
too (KIP-1073): those that have registered, are away, and were not unregistered. They are read from the store, with the
addresses that they had; an answer without them is an error, REQUEST_TIMED_OUT. Every client may ask; it is told no
operations on the cluster unless it may describe it. While the store and the controller do not answer this broker, it
names no controller.
"""

from collections.abc import Awaitable, Callable, Mapping

from moldau.cluster.state.image import NO_LEADER, BrokerImage
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.errors import ErrorCode, StorageError
from moldau.handlers.topics.metadata import cluster_operations
from moldau.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from moldau.requests.session import Call

_BROKERS = 1
_CONTROLLERS = 2


class DescribeCluster:
    """`known` returns all brokers, also those that are away; None if there is no other one."""

    def __init__(
        self,
        metadata: MetadataCache,
        has_controller: Callable[[], bool] = lambda: True,
        known: Callable[[], Awaitable[Mapping[int, BrokerImage]]] | None = None,
    ):
        self._metadata = metadata
        self._has_controller = has_controller
        self._known = known

    async def __call__(self, request: DescribeClusterRequest, call: Call) -> DescribeClusterResponse:
        if request.endpoint_type == _CONTROLLERS:
            return DescribeClusterResponse(
                error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE, error_message="this is a broker, not a controller"
            )
        if request.endpoint_type != _BROKERS:
            return DescribeClusterResponse(
                error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
                error_message=f"there are no endpoints of type {request.endpoint_type}",
            )
        known: Mapping[int, BrokerImage] = {}
        if request.include_fenced_brokers and self._known is not None:
            try:
                known = await self._known()
            except StorageError as error:
                return DescribeClusterResponse(error_code=ErrorCode.REQUEST_TIMED_OUT, error_message=str(error))
        image = self._metadata.image
        brokers = image.reachable(call.session.listener)
        listed = any(broker.id == image.controller_id for broker, _ in brokers) and self._has_controller()
        response = DescribeClusterResponse(
            cluster_id=image.cluster_id,
            controller_id=image.controller_id if listed else NO_LEADER,
            brokers=[
                DescribeClusterBroker(broker_id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack)
                for broker, endpoint in brokers
            ],
        )
        fenced = [broker for broker in known.values() if broker.id not in image.brokers]
        response.brokers += [
            DescribeClusterBroker(
                broker_id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack, is_fenced=True
            )
            for broker in fenced
            if (endpoint := broker.endpoint(call.session.listener)) is not None
        ]
        if request.include_cluster_authorized_operations:
            response.cluster_authorized_operations = cluster_operations(call)
        return response
