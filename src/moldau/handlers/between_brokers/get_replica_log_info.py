"""GetReplicaLogInfo (key 30002, ours), version 0: the ends of this broker's logs, for the election of last resort.

Answered on connections between brokers only, at most 1,000 logs at once. A log that is not here, or not online, has
NOT_LEADER_OR_FOLLOWER (KIP-966).
"""

from collections.abc import Callable, Mapping, Sequence

from moldau.cluster.controlling.log_ends import AT_ONCE, WantedLog, answer_with, wanted_in
from moldau.cluster.state.eligibility import LogEnd
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.protocol.messages.get_replica_log_info import GetReplicaLogInfoRequest, GetReplicaLogInfoResponse
from moldau.requests.session import Call

EndsHere = Callable[[Sequence[WantedLog]], Mapping[WantedLog, LogEnd]]


class GetReplicaLogInfo:
    def __init__(self, metadata: MetadataCache, ends: EndsHere):
        self._metadata = metadata
        self._ends = ends

    def __call__(self, request: GetReplicaLogInfoRequest, call: Call) -> GetReplicaLogInfoResponse:
        image, wanted = self._metadata.image, wanted_in(request)
        me = image.brokers.get(self._metadata.broker_id)
        return answer_with(-1 if me is None else me.epoch, image, wanted, self._ends(wanted[:AT_ONCE]))
