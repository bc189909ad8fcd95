"""DeleteGroups (key 42), all versions. Each group has its own answer; many groups take several decisions.

Groups that the client may not delete come last in answers, whether they exist or not.

Version 3 has a message for each group. Kafka 4.4 sends one with GROUP_DELETION_FAILED only (a plugin of streams groups
failed), and null with all errors that a group has here: NON_EMPTY_GROUP and GROUP_ID_NOT_FOUND say everything.
"""

from collections.abc import Awaitable, Mapping
from inspect import isawaitable

from moldau.coordinators.groups.coordinator import GroupCoordinator
from moldau.errors import ErrorCode
from moldau.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from moldau.requests.access import DELETE_GROUP
from moldau.requests.session import Call
from moldau.turns import Steps, in_turns

GROUPS_PER_DECISION_MAX = 500
"""The most groups deleted in one decision."""


class DeleteGroups:
    def __init__(self, coordinator: GroupCoordinator):
        self._coordinator = coordinator

    def __call__(
        self, request: DeleteGroupsRequest, call: Call
    ) -> DeleteGroupsResponse | Awaitable[Steps[DeleteGroupsResponse]]:
        return self._delete(request.groups_names, call)

    async def _delete(self, group_ids: list[str], call: Call) -> Steps[DeleteGroupsResponse]:
        allowed: list[str] = []
        refused: list[str] = []
        async for group_id in in_turns(dict.fromkeys(group_ids)):
            (allowed if call.may(DELETE_GROUP, group_id) else refused).append(group_id)
        errors_of = dict.fromkeys(refused, DELETE_GROUP.denied)
        async for first in in_turns(range(0, len(allowed), GROUPS_PER_DECISION_MAX), 1):
            for lot, errors in self._coordinator.delete_groups(allowed[first : first + GROUPS_PER_DECISION_MAX]):
                errors_of.update(zip(lot, await errors if isawaitable(errors) else errors, strict=True))
        return _deleted(allowed + refused, errors_of)


def _deleted(group_ids: list[str], errors: Mapping[str, ErrorCode]) -> Steps[DeleteGroupsResponse]:
    response = DeleteGroupsResponse()
    for group_id in group_ids:
        response.results.append(DeletableGroupResult(group_id=group_id, error_code=errors[group_id]))
        yield
    return response
