"""DeleteGroups (key 42), all versions. Each group has its own answer; many groups take several decisions.

Groups that the client may not delete come last in answers, whether they exist or not.

Version 3 has a message for each group. Kafka 4.4 sends one with GROUP_DELETION_FAILED only (a plugin of streams groups
failed), and null with all errors that a group has here: NON_EMPTY_GROUP and GROUP_ID_NOT_FOUND say everything.
"""

from collections.abc import Awaitable, Iterable, Iterator, Mapping
from inspect import isawaitable

from moldau.coordinators.groups.coordinator import GroupCoordinator
from moldau.errors import ErrorCode
from moldau.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from moldau.requests.access import DELETE_GROUP
from moldau.requests.session import Call
from moldau.turns import Steps, in_turns

GROUPS_PER_DECISION_MAX, CHARS_PER_DECISION_MAX = 500, 100_000
"""The most groups deleted in one decision, and the most characters that their ids have, unless one id has more."""


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
        async for some in in_turns(_portions(allowed), 1):
            for lot, errors in self._coordinator.delete_groups(some):
                errors_of.update(zip(lot, await errors if isawaitable(errors) else errors, strict=True))
        return _deleted(allowed + refused, errors_of)


def _portions(group_ids: Iterable[str]) -> Iterator[list[str]]:
    """The groups of one decision after the other."""
    some: list[str] = []
    chars = 0
    for group_id in group_ids:
        chars += len(group_id)
        if some and (len(some) == GROUPS_PER_DECISION_MAX or chars > CHARS_PER_DECISION_MAX):
            yield some
            some, chars = [], len(group_id)
        some.append(group_id)
    if some:
        yield some


def _deleted(group_ids: list[str], errors: Mapping[str, ErrorCode]) -> Steps[DeleteGroupsResponse]:
    response = DeleteGroupsResponse()
    for group_id in group_ids:
        response.results.append(DeletableGroupResult(group_id=group_id, error_code=errors[group_id]))
        yield
    return response
