"""DescribeWaiting (key 30003, ours), versions 0-1: how far groups are behind in partitions here, for coordinators.
Version 1 says where each log begins.

Answered on connections between brokers only, at most 1,000 partitions at once. NOT_LEADER_OR_FOLLOWER for a partition
of which no replica here is in sync.
"""

from collections.abc import Awaitable, Callable, Iterable

from moldau.cluster.state.image import Image
from moldau.protocol.messages.describe_waiting import DescribeWaitingRequest, DescribeWaitingResponse
from moldau.replication.lag.asking import Committed, answer_with, wanted_in
from moldau.replication.lag.reading import UNKNOWN_LAG, PartitionLag
from moldau.requests.session import Call

ReadLags = Callable[[Iterable[Committed]], Awaitable[list[PartitionLag]]]


class DescribeWaiting:
    def __init__(self, image: Callable[[], Image], read: ReadLags):
        self._image = image
        self._read = read

    async def __call__(self, request: DescribeWaitingRequest, call: Call) -> DescribeWaitingResponse:
        wanted = wanted_in(self._image(), request)
        lags = iter(await self._read([one for one in wanted if one is not None]))
        return answer_with([UNKNOWN_LAG if one is None else next(lags) for one in wanted])
