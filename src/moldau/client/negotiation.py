"""Which version of each API two ends speak: the highest that both have (KIP-35, KIP-511).

Topics go by name in this client, so the APIs whose newest versions know topic ids only are held at the last with names.
"""

from typing import Any

from moldau import __version__
from moldau.errors import ErrorCode, KafkaError, ProtocolViolation
from moldau.protocol import schema
from moldau.protocol.apis import API_VERSIONS, FETCH, OFFSET_COMMIT, OFFSET_FETCH, PRODUCE, Api
from moldau.protocol.codec import read_reply, write_request
from moldau.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from moldau.protocol.primitives import Buffer, read_int16

NAMED_UNTIL = {PRODUCE.key: 12, FETCH.key: 12, OFFSET_COMMIT.key: 9, OFFSET_FETCH.key: 9}


class Versions:
    """What one broker offers."""

    def __init__(self, offered: dict[int, tuple[int, int]]):
        self._offered = offered
        self._chosen: dict[int, int] = {}

    def of(self, api: Api) -> int:
        """The version to send. Raises `KafkaError(UNSUPPORTED_VERSION)` if there is none in common."""
        version = self._chosen.get(api.key)
        if version is None:
            version = self._chosen[api.key] = self._choose(api)
        return version

    def _choose(self, api: Api) -> int:
        low, high = self._offered.get(api.key, (0, -1))
        highest = min(high, api.high, NAMED_UNTIL.get(api.key, api.high))
        if highest < max(low, api.lowest):
            offer = f"{low} to {high}" if high >= low else "none"
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"the broker has no version of {api.name} that this client speaks (it offers {offer})",
            )
        return highest


def hello(version: int, correlation_id: int, client_id: str) -> bytes:
    """The first request on every connection."""
    request = ApiVersionsRequest(client_software_name="moldau", client_software_version=__version__)
    return write_request(API_VERSIONS, version, correlation_id, client_id, request)


def understand(version: int, frame: Buffer) -> Versions | int:
    """What the broker offers; or the version to say hello in again, when it does not know this one."""
    error = read_int16(frame, 4)[0]
    response: Any
    if error == ErrorCode.UNSUPPORTED_VERSION:
        response = schema.read(ApiVersionsResponse, 0, False, frame, 4)[0]
        theirs = max((k.max_version for k in response.api_keys if k.api_key == API_VERSIONS.key), default=0)
        if min(theirs, API_VERSIONS.high) >= version:
            raise ProtocolViolation("a broker that refuses the version it offers")
        return min(theirs, API_VERSIONS.high)
    if error:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the broker refused to say what it speaks: error {error}")
    response = read_reply(API_VERSIONS, version, frame)
    return Versions({k.api_key: (k.min_version, k.max_version) for k in response.api_keys})
