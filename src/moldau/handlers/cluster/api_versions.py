"""ApiVersions (key 18), versions 0 to 5: the supported APIs and their versions.

An unknown version is answered in version 0, with UNSUPPORTED_VERSION and only this API's own range (KIP-511); the
client then tries again. From version 3 on the request has the client's name and version, in letters, digits, dots and
hyphens. A request of version 5 may name a cluster id and a broker id. One without the other is INVALID_REQUEST. A
broker with other ids answers REBOOTSTRAP_REQUIRED, and the connection stays usable (KIP-1242). Of Kafka's features,
`group.version` and `transaction.version` are finalized (KIP-584): clients choose their behaviour by them. Our own
clients are told of the APIs of ours as well. Those by which clients push
metrics are offered while `client.metrics.topic` is set, as Kafka offers them if it has a receiver.
"""

import re
from collections.abc import Iterable

from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.errors import ErrorCode
from moldau.protocol.apis import API_VERSIONS, APIS, GET_TELEMETRY_SUBSCRIPTIONS, OURS, PUSH_TELEMETRY, Api
from moldau.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from moldau.requests.session import Call

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?", re.ASCII)
_TELEMETRY = (GET_TELEMETRY_SUBSCRIPTIONS, PUSH_TELEMETRY)


def _ranges(apis: Iterable[Api]) -> list[ApiVersion]:
    return [ApiVersion(api_key=api.key, min_version=api.low, max_version=api.high) for api in apis]


_IN_ORDER = [api for _, api in sorted(APIS.items())]
_ALL = {True: _ranges(_IN_ORDER), False: _ranges(api for api in _IN_ORDER if api not in _TELEMETRY)}
"""By whether the broker wants metrics of clients."""
_WITH_OURS = {wants: ranges + _ranges(OURS.values()) for wants, ranges in _ALL.items()}
_OWN = _ranges([API_VERSIONS])
_FEATURES = {"group.version": 1, "transaction.version": 2}
_SUPPORTED = [SupportedFeatureKey(name=name, max_version=level) for name, level in _FEATURES.items()]
_FINALIZED = [
    FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
    for name, level in _FEATURES.items()
]
MINIMUM_MAY_BE_0 = 4
"""Clients that use version 3 fail on a feature whose lowest version is 0."""
FEATURES_EPOCH = 0
"""Feature levels change only with the software version, so their epoch is constant."""
ANY_NODE = -1
SOFTWARE_CHARS_MAX = 0x7FFF
"""Kafka's strings have no more bytes. The name and the version are kept as long as their connection."""
OUR_NAME = "moldau"
"""What our own clients call themselves."""


class ApiVersions:
    def __init__(self, metadata: MetadataCache):
        self._metadata = metadata

    def __call__(self, request: ApiVersionsRequest, call: Call) -> ApiVersionsResponse:
        if not API_VERSIONS.low <= call.version <= API_VERSIONS.high:
            return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=_OWN)
        if not _is_valid(request, call.version):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        if call.version >= 3:
            call.session.software_name = request.client_software_name
            call.session.software_version = request.client_software_version
        if self._is_misrouted(request):
            return ApiVersionsResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
        ranges = _WITH_OURS if call.version >= 3 and request.client_software_name == OUR_NAME else _ALL
        return ApiVersionsResponse(
            api_keys=ranges[bool(self._metadata.config.client_metrics_topic)],
            supported_features=_SUPPORTED if call.version >= MINIMUM_MAY_BE_0 else [],
            finalized_features_epoch=FEATURES_EPOCH,
            finalized_features=_FINALIZED,
        )

    def _is_misrouted(self, request: ApiVersionsRequest) -> bool:
        """Whether the client wants another broker, or another cluster."""
        if request.cluster_id is None:
            return False
        return request.cluster_id != self._metadata.image.cluster_id or request.node_id != self._metadata.broker_id


def _is_valid(request: ApiVersionsRequest, version: int) -> bool:
    if (request.cluster_id is None) != (request.node_id == ANY_NODE):
        return False
    software = (request.client_software_name, request.client_software_version)
    return version < 3 or all(len(text) <= SOFTWARE_CHARS_MAX and _SOFTWARE.fullmatch(text) for text in software)
