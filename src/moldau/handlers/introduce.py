"""Introduce (key 30000, ours), version 0: a broker of the same cluster says who it is, first on its connection.

From then on the connection answers the APIs between brokers too. A broker of another cluster, or one that looks for
another broker here, is refused, and the log says so: an address is advertised wrongly, or was reused.
"""

import logging

from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.errors import ErrorCode
from moldau.notices import Notices
from moldau.protocol.apis import BETWEEN_BROKERS
from moldau.protocol.messages.introduce import IntroduceRequest, IntroduceResponse, PeerApiVersion
from moldau.requests.session import Call, Introduction

notices = Notices(logging.getLogger(__name__))
ID_CHARS_MAX = 50


class Introduce:
    def __init__(self, metadata: MetadataCache):
        self._metadata = metadata

    def __call__(self, request: IntroduceRequest, call: Call) -> IntroduceResponse:
        own_cluster, own_id = self._metadata.image.cluster_id, self._metadata.broker_id
        if request.cluster_id != own_cluster:
            theirs = request.cluster_id[:ID_CHARS_MAX]
            why = f"this is a broker of cluster {own_cluster}, not of {theirs}"
            return _refused(ErrorCode.INCONSISTENT_CLUSTER_ID, why, request, call)
        if request.expected_id != own_id:
            why = f"this is broker {own_id}, not {request.expected_id}"
            return _refused(ErrorCode.BROKER_NOT_AVAILABLE, why, request, call)
        if request.broker_id == own_id:
            why = f"this is broker {own_id} itself: two brokers have its id"
            return _refused(ErrorCode.DUPLICATE_BROKER_REGISTRATION, why, request, call)
        call.session.introduction = Introduction(request.broker_id, request.broker_epoch)
        return IntroduceResponse(
            api_keys=[
                PeerApiVersion(api_key=api.key, min_version=api.low, max_version=api.high)
                for api in BETWEEN_BROKERS.values()
            ]
        )


def _refused(code: ErrorCode, why: str, request: IntroduceRequest, call: Call) -> IntroduceResponse:
    place = f"{code.name} {request.broker_id}"
    notices.error(place, "broker %d at %s was refused: %s", request.broker_id, call.client_host, why)
    return IntroduceResponse(error_code=code, error_message=why)
