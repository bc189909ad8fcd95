"""Who answers which API: one line each. Produce and Fetch are not here, `dispatch` hands them their frames."""

from collections.abc import Mapping

from moldau.cluster.cluster import Cluster
from moldau.cluster.controller import Refusal
from moldau.coordinators.coordinator import GroupCoordinator
from moldau.errors import KafkaError
from moldau.handlers.admin import admin_handlers
from moldau.handlers.delete_records import DeleteRecordsHandler
from moldau.handlers.dispatch import Handler
from moldau.handlers.find_coordinator import FindCoordinatorHandler
from moldau.handlers.group_admin import GroupAdminHandlers
from moldau.handlers.groups import GroupHandlers
from moldau.handlers.list_offsets import ListOffsetsHandler
from moldau.handlers.offsets import OffsetHandlers
from moldau.protocol import apis
from moldau.replication.partitions import Partitions


def handlers(cluster: Cluster, partitions: Partitions, groups: GroupCoordinator) -> Mapping[int, Handler]:
    """By API key; each is called with the request's message and its `Context`."""

    async def make_offsets_topic() -> None:
        made = await cluster.ensure_offsets_topic()
        if isinstance(made, Refusal):
            raise KafkaError(made.code, made.message)

    group, offsets, group_admin = (
        GroupHandlers(groups),
        OffsetHandlers(groups, lambda: cluster.image),
        GroupAdminHandlers(groups),
    )
    return {
        **admin_handlers(cluster),
        apis.LIST_OFFSETS.key: ListOffsetsHandler(partitions),
        apis.DELETE_RECORDS.key: DeleteRecordsHandler(partitions),
        apis.FIND_COORDINATOR.key: FindCoordinatorHandler(groups, lambda: cluster.image, make_offsets_topic),
        apis.JOIN_GROUP.key: group.join,
        apis.SYNC_GROUP.key: group.sync,
        apis.HEARTBEAT.key: group.heartbeat,
        apis.LEAVE_GROUP.key: group.leave,
        apis.OFFSET_COMMIT.key: offsets.commit,
        apis.OFFSET_FETCH.key: offsets.fetch,
        apis.OFFSET_DELETE.key: offsets.delete,
        apis.LIST_GROUPS.key: group_admin.list_groups,
        apis.DESCRIBE_GROUPS.key: group_admin.describe_groups,
        apis.DELETE_GROUPS.key: group_admin.delete_groups,
    }
