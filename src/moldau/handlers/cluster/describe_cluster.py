"""DescribeCluster (key 60), versions 0 to 2: the brokers and the controller, for administrators.

Each broker has the address of the listener that the request came in on; a broker without such a listener is left out,
and is not named as the controller, as in Kafka. Only endpoint type 1, brokers, is supported: type 2, controllers, is a
mismatch, and any other type is unsupported (KIP-919). No broker is ever fenced here: one that is not up is not in the
image. Every client may ask; it is told no operations on the cluster unless it may describe it. While the store and
the controller do not answer this broker, it names none.
"""

from collections.abc import Callable

from moldau.cluster.state.image import NO_LEADER
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.errors import ErrorCode
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
    def __init__(self, metadata: MetadataCache, has_controller: Callable[[], bool] = lambda: True):
        self._metadata = metadata
        self._has_controller = has_controller

    def __call__(self, request: DescribeClusterRequest, call: Call) -> DescribeClusterResponse:
        if request.endpoint_type == _CONTROLLERS:
            return DescribeClusterResponse(
                error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE, error_message="this is a broker, not a controller"
            )
        if request.endpoint_type != _BROKERS:
            return DescribeClusterResponse(
                error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
                error_message=f"there are no endpoints of type {request.endpoint_type}",
            )
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
        if request.include_cluster_authorized_operations:
            response.cluster_authorized_operations = cluster_operations(call)
        return response
