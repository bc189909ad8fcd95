"""Requests whose older versions have one item where newer versions have a list.

A handler reads every version as the newest structure: `upgrade_*` moves the fields of an older request into the list of
the newest version, and `downgrade_*` moves the answers back to the fields of the older response. Both change the
message in place.
"""

from moldau.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTransaction,
)
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from moldau.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from moldau.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)

FIND_COORDINATOR_BATCHES = 4
LEAVE_GROUP_BATCHES = 3
OFFSET_FETCH_GROUPS = 8
OFFSET_FETCH_ERROR = 2
ADD_PARTITIONS_BATCHES = 4


def upgrade_find_coordinator(request: FindCoordinatorRequest, version: int) -> None:
    if version < FIND_COORDINATOR_BATCHES:
        request.coordinator_keys = [request.key]


def downgrade_find_coordinator(response: FindCoordinatorResponse, version: int) -> None:
    if version < FIND_COORDINATOR_BATCHES:
        only = response.coordinators[0]
        response.error_code, response.error_message = only.error_code, only.error_message
        response.node_id, response.host, response.port = only.node_id, only.host, only.port


def upgrade_leave_group(request: LeaveGroupRequest, version: int) -> None:
    if version < LEAVE_GROUP_BATCHES:
        request.members = [MemberIdentity(member_id=request.member_id)]


def downgrade_leave_group(response: LeaveGroupResponse, version: int) -> None:
    """The member's error becomes the response's error."""
    if version < LEAVE_GROUP_BATCHES and not response.error_code and response.members:
        response.error_code = response.members[0].error_code


def upgrade_offset_fetch(request: OffsetFetchRequest, version: int) -> None:
    if version < OFFSET_FETCH_GROUPS:
        topics = request.topics
        lifted = (
            None
            if topics is None
            else [OffsetFetchRequestTopics(name=t.name, partition_indexes=t.partition_indexes) for t in topics]
        )
        request.groups = [OffsetFetchRequestGroup(group_id=request.group_id, topics=lifted)]


def downgrade_offset_fetch(request: OffsetFetchRequest, response: OffsetFetchResponse, version: int) -> None:
    """The group's error becomes the response's error, or before version 2 the error of each requested partition."""
    if version >= OFFSET_FETCH_GROUPS:
        return
    only = response.groups[0]
    response.error_code = only.error_code
    if only.error_code and version < OFFSET_FETCH_ERROR:
        response.topics = [
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=p, committed_offset=-1, metadata="", error_code=only.error_code
                    )
                    for p in topic.partition_indexes
                ],
            )
            for topic in request.topics or []
        ]
        return
    response.topics = [
        OffsetFetchResponseTopic(
            name=topic.name,
            partitions=[
                OffsetFetchResponsePartition(
                    partition_index=p.partition_index,
                    committed_offset=p.committed_offset,
                    committed_leader_epoch=p.committed_leader_epoch,
                    metadata=p.metadata,
                    error_code=p.error_code,
                )
                for p in topic.partitions
            ],
        )
        for topic in only.topics
    ]


def upgrade_add_partitions(request: AddPartitionsToTxnRequest, version: int) -> None:
    if version < ADD_PARTITIONS_BATCHES:
        only = AddPartitionsToTxnTransaction(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
        request.transactions = [only]


def downgrade_add_partitions(response: AddPartitionsToTxnResponse, version: int) -> None:
    if version < ADD_PARTITIONS_BATCHES:
        response.results_by_topic_v3_and_below = response.results_by_transaction[0].topic_results
