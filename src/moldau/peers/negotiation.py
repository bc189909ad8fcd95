"""Chooses the version of each API for one connection: the highest that both ends support (KIP-35, KIP-511).

The request that asks for them may also say which broker the connection is meant for (KIP-1242, from version 5 on)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from moldau.errors import ErrorCode, KafkaError, ProtocolViolation
from moldau.protocol import schema
from moldau.protocol.apis import API_VERSIONS, END_TXN, PRODUCE, TXN_OFFSET_COMMIT, Api
from moldau.protocol.codec import read_reply, write_request
from moldau.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from moldau.protocol.primitives import Buffer, read_int16
from moldau.version import VERSION

NO_LIMITS: Mapping[int, int] = MappingProxyType({})
NO_FEATURES: Mapping[str, int] = MappingProxyType({})
TRANSACTIONS = "transaction.version"
BEFORE_TRANSACTIONS_2 = {PRODUCE.key: 11, END_TXN.key: 4, TXN_OFFSET_COMMIT.key: 4}
"""API key -> the newest version that does not mean version 2 of transactions."""


class IntendedBroker(NamedTuple):
    """The broker that a connection is meant for, as the cluster's metadata names it."""

    cluster_id: str
    broker_id: int

    def __str__(self) -> str:
        return f"broker {self.broker_id} of cluster {self.cluster_id}"


class Versions:
    """The versions to use with one broker.

    `offered`: API key -> (lowest, highest) version that the broker supports. `highest`: API key -> an upper limit set
    by this end; APIs without one have no limit. `features`: the finalized features of the cluster and their levels; if
    `transaction.version` is below 2, the versions that go with 2 are not used, whatever the broker offers (KIP-890).
    """

    def __init__(
        self,
        offered: Mapping[int, tuple[int, int]],
        highest: Mapping[int, int] = NO_LIMITS,
        features: Mapping[str, int] = NO_FEATURES,
    ):
        self._offered = offered
        self._highest = highest if features.get(TRANSACTIONS, 0) >= 2 else _lower(highest, BEFORE_TRANSACTIONS_2)
        self._chosen: dict[int, int] = {}

    def of(self, api: Api) -> int:
        """The version to use for an API. Raises `KafkaError(UNSUPPORTED_VERSION)` if the two ends share no version."""
        version = self._chosen.get(api.key)
        if version is None:
            version = self._chosen[api.key] = self._choose(api)
        return version

    def has(self, api: Api) -> bool:
        """Whether the two ends share a version of an API."""
        low, high = self._range(api)
        return low <= high

    def add(self, offered: Mapping[int, tuple[int, int]]) -> None:
        """The broker supports these too."""
        self._offered = {**self._offered, **offered}

    def _range(self, api: Api) -> tuple[int, int]:
        low, high = self._offered.get(api.key, (0, -1))
        return max(low, api.lowest), min(high, api.high, self._highest.get(api.key, api.high))

    def _choose(self, api: Api) -> int:
        lowest, version = self._range(api)
        if version < lowest:
            low, high = self._offered.get(api.key, (0, -1))
            offer = f"{low} to {high}" if high >= low else "none"
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"the broker has no version of {api.name} that this client supports (it offers {offer})",
            )
        return version


def versions_request(
    version: int, correlation_id: int, client_id: str, intended: IntendedBroker | None = None
) -> bytes:
    """The frame of an ApiVersions request, the first on every connection."""
    request = ApiVersionsRequest(client_software_name="moldau", client_software_version=VERSION)
    if intended is not None:
        request.cluster_id, request.node_id = intended
    return write_request(API_VERSIONS, version, correlation_id, client_id, request)


def read_versions(version: int, frame: Buffer, highest: Mapping[int, int] = NO_LIMITS) -> Versions | int:
    """Read the reply to an ApiVersions request of that version. Returns the broker's versions; or, if the broker does
    not know that version, the version for a second attempt. Raises `KafkaError`, `ProtocolViolation`; the first is
    `RebootstrapRequired` if the broker is not the intended one."""
    error = read_int16(frame, 4)[0]
    response: Any
    if error == ErrorCode.UNSUPPORTED_VERSION:
        response = schema.read(ApiVersionsResponse, 0, False, frame, 4)[0]
        offered = max((k.max_version for k in response.api_keys if k.api_key == API_VERSIONS.key), default=0)
        offered = min(offered, API_VERSIONS.high)
        if not 0 <= offered < version:  # each attempt is in an older version, so there are few
            raise ProtocolViolation("the broker refuses a version of ApiVersions that it advertises, or has none")
        return offered
    if error == ErrorCode.REBOOTSTRAP_REQUIRED:
        raise KafkaError(ErrorCode.REBOOTSTRAP_REQUIRED, "this is the address of another broker or cluster")
    if error:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the broker answered ApiVersions with error {error}")
    response = read_reply(API_VERSIONS, version, frame)
    return Versions(
        {k.api_key: (k.min_version, k.max_version) for k in response.api_keys},
        highest,
        {feature.name: feature.max_version_level for feature in response.finalized_features},
    )


def _lower(highest: Mapping[int, int], limits: Mapping[int, int]) -> Mapping[int, int]:
    return {**highest, **{key: min(limit, highest.get(key, limit)) for key, limit in limits.items()}}
