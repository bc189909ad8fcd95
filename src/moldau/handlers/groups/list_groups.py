"""ListGroups (key 16), all versions. Filters by state and type ignore case; unknown names match nothing."""

from moldau.coordinators.groups.coordinator import GroupCoordinator
from moldau.errors import KafkaError
from moldau.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from moldau.requests.session import Call
from moldau.turns import Steps


class ListGroups:
    def __init__(self, coordinator: GroupCoordinator):
        self._coordinator = coordinator

    def __call__(self, request: ListGroupsRequest, call: Call) -> Steps[ListGroupsResponse]:
        states = {state.lower() for state in request.states_filter}
        types = {group_type.lower() for group_type in request.types_filter}
        response = ListGroupsResponse()
        try:
            for g in self._coordinator.listed():
                if (not states or g.state.lower() in states) and (not types or g.group_type in types):
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
