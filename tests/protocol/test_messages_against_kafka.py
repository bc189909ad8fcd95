"""Messages in the versions that Apache Kafka 4.4.0 added, which kio does not have yet, against bytes that Kafka's own
classes wrote: `java -cp "$HOME/.cache/apache-kafka/4.4.0/*" tests/protocol/Written.java`, 2026-11-27."""

import uuid
from typing import Any

import pytest

from moldau.errors import ProtocolViolation
from moldau.protocol import schema
from moldau.protocol.apis import API_VERSIONS, DELETE_GROUPS, TXN_OFFSET_COMMIT, Api
from moldau.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
)
from moldau.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from moldau.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from tests.protocol.kio_reference import KIO_LACKS

CLUSTER = "gZW1xyrxToKXBiAjZfFIVg"
TOPIC = uuid.UUID("8195b5c7-2af1-4e82-9706-202365f14856")
"""`CLUSTER` as a uuid."""
WRITTEN: list[tuple[Api, int, Any, str]] = [
    (
        API_VERSIONS,
        5,
        ApiVersionsRequest(client_software_name="moldau", client_software_version="1.2.3"),
        "076d6f6c64617506312e322e3300ffffffff00",
    ),
    (
        API_VERSIONS,
        5,
        ApiVersionsRequest(
            client_software_name="moldau", client_software_version="1.2.3", cluster_id=CLUSTER, node_id=7
        ),
        "076d6f6c64617506312e322e3317675a573178797278546f4b584269416a5a66464956670000000700",
    ),
    (
        API_VERSIONS,
        5,
        ApiVersionsResponse(
            api_keys=[ApiVersion(api_key=18, max_version=5)],
            throttle_time_ms=9,
            finalized_features_epoch=3,
            finalized_features=[FinalizedFeatureKey(name="group.version", max_version_level=1, min_version_level=1)],
        ),
        "000002001200000005000000000902010800000000000000030214020e67726f75702e76657273696f6e0001000100",
    ),
    (API_VERSIONS, 5, ApiVersionsResponse(error_code=129), "0081010000000000"),
    (
        TXN_OFFSET_COMMIT,
        6,
        TxnOffsetCommitRequest(
            transactional_id="t",
            group_id="g",
            producer_id=1000,
            producer_epoch=2,
            generation_id_or_member_epoch=3,
            member_id="m",
            group_instance_id="i",
            topics=[
                TxnOffsetCommitRequestTopic(
                    topic_id=TOPIC,
                    partitions=[
                        TxnOffsetCommitRequestPartition(
                            partition_index=4, committed_offset=5, committed_leader_epoch=6, committed_metadata="note"
                        ),
                        TxnOffsetCommitRequestPartition(partition_index=7, committed_offset=8, committed_metadata=None),
                    ],
                )
            ],
        ),
        (
            "0274026700000000000003e8000200000003026d0269028195b5c72af14e829706202365f1485603000000040000000000000005"
            "00000006056e6f746500000000070000000000000008ffffffff00000000"
        ),
    ),
    (
        TXN_OFFSET_COMMIT,
        6,
        TxnOffsetCommitResponse(
            throttle_time_ms=9,
            topics=[
                TxnOffsetCommitResponseTopic(
                    topic_id=TOPIC,
                    partitions=[TxnOffsetCommitResponsePartition(partition_index=4, error_code=113)],
                )
            ],
        ),
        "00000009028195b5c72af14e829706202365f1485602000000040071000000",
    ),
    (DELETE_GROUPS, 3, DeleteGroupsRequest(groups_names=["a", "b"]), "030261026200"),
    (
        DELETE_GROUPS,
        3,
        DeleteGroupsResponse(
            throttle_time_ms=9,
            results=[
                DeletableGroupResult(group_id="a"),
                DeletableGroupResult(group_id="b", error_code=134, error_message="no"),
            ],
        ),
        "000000090302610000000002620086036e6f0000",
    ),
]
every_message = pytest.mark.parametrize(
    ("api", "version", "message", "written"),
    [pytest.param(*row, id=f"{type(row[2]).__name__}-v{row[1]}-{number}") for number, row in enumerate(WRITTEN)],
)


def test_requests_and_responses_of_all_versions_that_kio_lacks_are_here() -> None:
    assert {(api, version, type(message)) for api, version, message, _ in WRITTEN} == {
        (api, version, kind) for api, version in KIO_LACKS for kind in (api.request, api.response)
    }


@every_message
def test_we_read_what_kafka_wrote(api: Api, version: int, message: Any, written: str) -> None:
    data = bytes.fromhex(written)
    assert schema.read(type(message), version, api.is_flexible(version), data) == (message, len(data))


@every_message
def test_we_write_the_bytes_that_kafka_wrote(api: Api, version: int, message: Any, written: str) -> None:
    assert bytes(schema.write(message, version, api.is_flexible(version))).hex() == written


@every_message
def test_what_kafka_wrote_is_a_violation_when_it_is_cut_short(
    api: Api, version: int, message: Any, written: str
) -> None:
    data = bytes.fromhex(written)
    for end in range(len(data)):
        with pytest.raises(ProtocolViolation):
            schema.read(type(message), version, api.is_flexible(version), data[:end])
