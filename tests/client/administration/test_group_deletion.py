"""What an admin client raises when a group cannot be deleted: the coordinator's words, if there are any (version 3)."""

import asyncio
from typing import Any

import pytest

from harness.patience import within
from moldau.aio import Admin
from moldau.errors import ErrorCode, GroupDeletionFailed, KafkaError, NonEmptyGroup
from moldau.protocol import apis
from moldau.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsResponse
from moldau.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from tests.client.scripted_cluster import OFFERED, ScriptedCluster


class Refusing(ScriptedCluster):
    """Broker 0 coordinates all groups and deletes none; `newest` is its newest DeleteGroups."""

    offered = (*OFFERED, apis.FIND_COORDINATOR, apis.DELETE_GROUPS)
    newest = apis.DELETE_GROUPS.high

    async def _answer(self, broker: int, key: int, request: Any) -> Any:
        if key == apis.FIND_COORDINATOR.key:
            found = Coordinator(key=request.coordinator_keys[0], node_id=0, host="127.0.0.1", port=self._ports[0])
            return FindCoordinatorResponse(coordinators=[found])
        if key == apis.DELETE_GROUPS.key:
            [name] = request.groups_names
            full = DeletableGroupResult(group_id=name, error_code=ErrorCode.NON_EMPTY_GROUP)
            failed = DeletableGroupResult(
                group_id=name, error_code=ErrorCode.GROUP_DELETION_FAILED, error_message="the plugin said no"
            )
            return DeleteGroupsResponse(results=[full if name == "full" else failed])
        answer = await super()._answer(broker, key, request)
        if key == apis.API_VERSIONS.key:
            for offer in answer.api_keys:
                if offer.api_key == apis.DELETE_GROUPS.key:
                    offer.max_version = self.newest
        return answer


@pytest.mark.parametrize("newest", range(apis.DELETE_GROUPS.high + 1))
def test_a_group_that_is_not_deleted_is_explained_by_the_coordinator_or_by_the_code(
    newest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Refusing, "newest", newest)

    async def scenario() -> None:
        async with Refusing().running() as cluster, Admin(cluster.bootstrap) as admin:
            with pytest.raises(NonEmptyGroup, match=r"^group full: non empty group$"):
                await within(admin.delete_group("full"))
            said = "the plugin said no" if newest >= 3 else "group deletion failed"
            with pytest.raises(GroupDeletionFailed, match=f"^group odd: {said}$"):
                await within(admin.delete_group("odd"))
            outcomes = await within(admin.delete_groups(["full", "odd"]))
            assert isinstance(outcomes["odd"], KafkaError) and said in str(outcomes["odd"])

    asyncio.run(scenario())
