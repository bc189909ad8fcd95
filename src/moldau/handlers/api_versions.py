"""ApiVersions (key 18), versions 0 to 4: the supported APIs and their versions.

An unknown version is answered in version 0, with UNSUPPORTED_VERSION and only this API's own range (KIP-511); the
client then tries again. From version 3 on the request has the client's name and version, in letters, digits, dots and
hyphens. Of Kafka's features, `group.version` and `transaction.version` are finalized (KIP-584): clients choose their
behaviour by them.
"""

import re

from moldau.errors import ErrorCode
from moldau.protocol.apis import API_VERSIONS, APIS
from moldau.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from moldau.requests.session import Call

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?", re.ASCII)
_ALL = [ApiVersion(api_key=api.key, min_version=api.low, max_version=api.high) for _, api in sorted(APIS.items())]
_OWN = [ApiVersion(api_key=API_VERSIONS.key, min_version=API_VERSIONS.low, max_version=API_VERSIONS.high)]
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


def api_versions(request: ApiVersionsRequest, call: Call) -> ApiVersionsResponse:
    if not API_VERSIONS.low <= call.version <= API_VERSIONS.high:
        return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=_OWN)
    if call.version >= 3:
        for said in (request.client_software_name, request.client_software_version):
            if not _SOFTWARE.fullmatch(said):
                return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        call.session.software_name = request.client_software_name
        call.session.software_version = request.client_software_version
    return ApiVersionsResponse(
        api_keys=_ALL,
        supported_features=_SUPPORTED if call.version >= MINIMUM_MAY_BE_0 else [],
        finalized_features_epoch=FEATURES_EPOCH,
        finalized_features=_FINALIZED,
    )
