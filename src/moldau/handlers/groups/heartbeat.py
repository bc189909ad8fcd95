"""Heartbeat (key 12), all versions: a member of the classic protocol says that it is alive."""

from moldau.coordinators.groups.coordinator import GroupCoordinator
from moldau.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from moldau.requests.session import Call


class Heartbeat:
    def __init__(self, coordinator: GroupCoordinator):
        self._coordinator = coordinator

    def __call__(self, request: HeartbeatRequest, call: Call) -> HeartbeatResponse:
        error = self._coordinator.heartbeat(
            request.group_id, request.generation_id, request.member_id, request.group_instance_id
        )
        return HeartbeatResponse(error_code=error)
