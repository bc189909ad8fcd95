"""Every version is read as the newest structure, and the answer goes back to where that version has it."""

import pytest

from moldau.errors import ErrorCode
from moldau.protocol import upgrades
from moldau.protocol.apis import FIND_COORDINATOR, LEAVE_GROUP, OFFSET_FETCH, Api
from moldau.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from moldau.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse
from moldau.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)


def versions(api: Api) -> range:
    return range(api.low, api.high + 1)


@pytest.mark.parametrize("version", versions(FIND_COORDINATOR))
def test_one_coordinator_key_is_a_list_of_one(version: int) -> None:
    single = version < 4
    request = FindCoordinatorRequest(key="g" if single else "", coordinator_keys=[] if single else ["g", "h"])
    upgrades.upgrade_find_coordinator(request, version)
    assert request.coordinator_keys == (["g"] if single else ["g", "h"])
    found = Coordinator(key="g", node_id=1, host="here", port=9092, error_code=15, error_message="soon")
    response = FindCoordinatorResponse(coordinators=[found])
    upgrades.downgrade_find_coordinator(response, version)
    lowered = (response.node_id, response.host, response.port, response.error_code, response.error_message)
    assert lowered == ((1, "here", 9092, 15, "soon") if single else (0, "", 0, 0, ""))


@pytest.mark.parametrize("version", versions(LEAVE_GROUP))
def test_one_leaver_is_a_list_of_one_and_its_error_that_of_the_whole(version: int) -> None:
    single = version < 3
    request = LeaveGroupRequest(
        member_id="m" if single else "", members=[] if single else [MemberIdentity(member_id="n")]
    )
    upgrades.upgrade_leave_group(request, version)
    assert [member.member_id for member in request.members] == ["m" if single else "n"]
    response = LeaveGroupResponse(members=[MemberResponse(member_id="m", error_code=25)])
    upgrades.downgrade_leave_group(response, version)
    assert response.error_code == (25 if single else 0)
    response = LeaveGroupResponse(error_code=16)
    upgrades.downgrade_leave_group(response, version)
    assert response.error_code == 16


@pytest.mark.parametrize("version", versions(OFFSET_FETCH))
@pytest.mark.parametrize("everything", [False, True])
def test_one_group_is_a_list_of_one_and_its_error_that_of_the_whole(version: int, everything: bool) -> None:
    single = version < 8
    older = None if everything else [OffsetFetchRequestTopic(name="t", partition_indexes=[0, 1])]
    newer = None if everything else [OffsetFetchRequestTopics(name="t", partition_indexes=[0, 1])]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=newer)])
    if single:
        request = OffsetFetchRequest(group_id="g", topics=older)
    upgrades.upgrade_offset_fetch(request, version)
    assert request.groups == [OffsetFetchRequestGroup(group_id="g", topics=newer)]

    part = OffsetFetchResponsePartitions(partition_index=1, committed_offset=5, metadata="note")
    topic = OffsetFetchResponseTopics(name="t", partitions=[part])
    response = OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="g", topics=[topic])])
    upgrades.downgrade_offset_fetch(request, response, version)
    lowered = [
        (t.name, p.partition_index, p.committed_offset, p.metadata) for t in response.topics for p in t.partitions
    ]
    assert lowered == ([("t", 1, 5, "note")] if single else [])

    failed = OffsetFetchResponseGroup(group_id="g", error_code=ErrorCode.NOT_COORDINATOR)
    response = OffsetFetchResponse(groups=[failed])
    upgrades.downgrade_offset_fetch(request, response, version)
    assert response.error_code == (ErrorCode.NOT_COORDINATOR if single else 0)
    in_parts = [(p.partition_index, p.error_code) for t in response.topics for p in t.partitions]
    assert in_parts == ([(0, 16), (1, 16)] if version < 2 and not everything else [])
