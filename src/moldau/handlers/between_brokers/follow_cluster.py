"""FollowCluster (key 30001, ours), version 0: what comes after a broker's position in the controller's stream.

The answer waits for up to two seconds if nothing does. NOT_CONTROLLER if this broker is not the controller;
STALE_BROKER_EPOCH if the one that asks has registered again since. A broker whose session is over (epoch -1) is
answered too, so that its clients hear who leads; it is not noted that it asked.
"""

from collections.abc import Callable

from moldau.cluster.controlling.change_stream import POLL_S, ChangeStream, Followed
from moldau.cluster.state.change_messages import to_message
from moldau.errors import ErrorCode, KafkaError
from moldau.protocol.messages.follow_cluster import FollowClusterRequest, FollowClusterResponse
from moldau.requests.session import Call
from moldau.runtime import Runtime

NOBODY = -1


class FollowCluster:
    def __init__(self, stream: Callable[[], ChangeStream | None], runtime: Runtime):
        self._stream = stream
        self._runtime = runtime

    async def __call__(self, request: FollowClusterRequest, call: Call) -> FollowClusterResponse:
        introduction, stream = call.session.introduction, self._stream()
        if introduction is None or introduction.broker_id != request.broker_id:
            return FollowClusterResponse(error_code=ErrorCode.INVALID_REQUEST)
        if stream is None:
            return FollowClusterResponse(error_code=ErrorCode.NOT_CONTROLLER)
        try:
            followed = await stream.follow(
                request.broker_id if request.broker_epoch >= 0 else NOBODY,
                request.broker_epoch,
                request.controller_epoch,
                request.position,
                request.applied,
                min(max(request.max_wait_ms, 0) / 1000, POLL_S),
                leaving=request.leaving,
            )
        except KafkaError as refused:
            return FollowClusterResponse(error_code=refused.code)
        return await self._runtime.run(lambda: _response(followed)) if followed.is_large else _response(followed)


def _response(followed: Followed) -> FollowClusterResponse:
    messages = [to_message(change) for change in followed.changes]
    return FollowClusterResponse(
        controller_epoch=followed.controller_epoch,
        position=followed.position,
        may_leave=followed.may_leave,
        whole=messages[0] if followed.is_whole else None,
        changes=[] if followed.is_whole else messages,
    )
