"""Rights that a whole request needs: the gate refuses it, and the handler never sees it."""

from collections.abc import Callable
from typing import Any

import pytest

from moldau.errors import ErrorCode
from moldau.handlers.rights import RIGHTS
from moldau.handlers.table import TABLE
from moldau.protocol.apis import (
    ADD_OFFSETS_TO_TXN,
    CREATE_ACLS,
    HEARTBEAT,
    OFFSET_COMMIT,
    SUPPORTED,
    WRITE_TXN_MARKERS,
    Api,
)
from moldau.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from moldau.protocol.messages.heartbeat import HeartbeatRequest
from moldau.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from moldau.requests.access import (
    ALTER_CLUSTER,
    CLUSTER_ACTION,
    CLUSTER_NAME,
    READ_GROUP,
    WRITE_TRANSACTIONAL_ID,
    ResourceType,
)
from moldau.requests.gate import Gate
from moldau.requests.requirements import Requirements
from tests.requests.calling import Denying, call

REQUIREMENTS = Requirements(RIGHTS)


def asked(api: Api, version: int, request: Any, authorizer: Denying) -> Any:
    """What the gate answers; None if the handler is reached."""
    return Gate([REQUIREMENTS])(request, call(api, version, authorizer=authorizer), lambda *_: None)


def test_every_api_has_its_line() -> None:
    assert {*RIGHTS} == {*SUPPORTED.values()}
    assert {*TABLE} <= {*RIGHTS}


@pytest.mark.parametrize("api", RIGHTS, ids=lambda api: api.name)
def test_what_a_requirement_is_named_by_is_a_field_of_the_request(api: Api) -> None:
    for any_of, named_by in RIGHTS[api].whole:
        assert named_by is None or getattr(api.request(), named_by) == ""
        assert {right.resource_type is ResourceType.CLUSTER for right in any_of} == {named_by is None}


def test_a_member_without_the_right_is_refused_and_one_with_it_reaches_the_handler() -> None:
    beat, nobody = HeartbeatRequest(group_id="g"), Denying((READ_GROUP, "g"))
    assert asked(HEARTBEAT, 4, beat, nobody).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert nobody.logged == [(READ_GROUP, "g")]
    assert asked(HEARTBEAT, 4, beat, Denying((READ_GROUP, "h"))) is None


def test_a_refusal_stands_in_each_partition_where_the_reply_has_no_other_place() -> None:
    topic = OffsetCommitRequestTopic(name="t", partitions=[OffsetCommitRequestPartition(partition_index=3)])
    response = asked(OFFSET_COMMIT, 9, OffsetCommitRequest(group_id="g", topics=[topic]), Denying((READ_GROUP, "g")))
    (part,) = response.topics[0].partitions
    assert (part.partition_index, part.error_code) == (3, ErrorCode.GROUP_AUTHORIZATION_FAILED)


def test_the_first_requirement_that_is_not_met_decides() -> None:
    request = AddOffsetsToTxnRequest(transactional_id="x", group_id="g")
    for denied, error in (
        ([(WRITE_TRANSACTIONAL_ID, "x")], ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        ([(READ_GROUP, "g")], ErrorCode.GROUP_AUTHORIZATION_FAILED),
        ([(WRITE_TRANSACTIONAL_ID, "x"), (READ_GROUP, "g")], ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    ):
        assert asked(ADD_OFFSETS_TO_TXN, 4, request, Denying(*denied)).error_code == error


def test_one_of_several_rights_is_enough_and_only_the_last_denial_is_logged() -> None:
    ask: Callable[[Denying], Any] = lambda denied: asked(WRITE_TXN_MARKERS, 1, WRITE_TXN_MARKERS.request(), denied)  # noqa: E731
    for right in (ALTER_CLUSTER, CLUSTER_ACTION):
        one = Denying((right, CLUSTER_NAME))
        assert ask(one) is None and one.logged == []
    neither = Denying((ALTER_CLUSTER, CLUSTER_NAME), (CLUSTER_ACTION, CLUSTER_NAME))
    assert ask(neither) is not None
    assert neither.logged == [(CLUSTER_ACTION, CLUSTER_NAME)]


def test_a_right_on_the_cluster_is_asked_by_the_clusters_name() -> None:
    recorded = Denying()
    assert asked(CREATE_ACLS, 3, CREATE_ACLS.request(), recorded) is None
    assert recorded.asked == [(ALTER_CLUSTER, CLUSTER_NAME)]
