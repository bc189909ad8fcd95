"""ListGroups (key 16), all versions. Filters by state and type ignore case; unknown names match nothing.

A client that may not describe the cluster sees the groups that it may describe.
"""

from moldau.coordinators.groups.coordinator import GroupCoordinator
from moldau.errors import KafkaError
from moldau.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from moldau.requests.access import DESCRIBE_CLUSTER, DESCRIBE_GROUP
from moldau.requests.session import Call
from moldau.turns import Steps


class ListGroups:
    def __init__(self, coordinator: GroupCoordinator):
        self._coordinator = coordinator

    def __call__(self, request: ListGroupsRequest, call: Call) -> Steps[ListGroupsResponse]:
        states = {state.lower() for state in request.states_filter}
        types = {group_type.lower() for group_type in request.types_filter}
        sees_all = call.may(DESCRIBE_CLUSTER, logged=False)
        response = ListGroupsResponse()
        try:
            for g in self._coordinator.listed():
                if (
                    (not states or g.state.lower() in states)
                    and (not types or g.group_type in types)
                    and (sees_all or call.may(DESCRIBE_GROUP, g.group_id, logged=False))
                ):
                    response.groups.append(
                        ListedGroup(
                            group_id=g.group_id,
                            protocol_type=g.protocol_type,
                            group_state=g.state,
                            group_type=g.group_type,
                        )
                    )
                yield
        except KafkaError as error:
            return ListGroupsResponse(error_code=error.code)
        return response
