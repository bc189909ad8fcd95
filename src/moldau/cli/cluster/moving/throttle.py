"""The throttle of a plan: rates on the brokers that take part in it, which cover only what its moves add.

The cluster takes the rates away when no move has been under way for 30 s (`cluster/state/move_throttles.py`), so
they are set before the first partitions move, and again before later ones; and once more when these move, since the
cluster may have taken the rates of an earlier plan away in between. Only brokers that run get a rate: one that
is down sends nothing, and would be waited for.
"""

from collections.abc import Collection
from math import inf

from moldau.client.administration.admin import Admin
from moldau.client.administration.configs import Resource
from moldau.errors import InvalidRequest

SETTINGS = ("leader.reassignment.throttled.rate", "follower.reassignment.throttled.rate")
AGAIN_S = 10.0


class PlanThrottle:
    """`rate`: the most bytes a second that each of these brokers sends, and fetches, for the plan."""

    def __init__(self, admin: Admin, brokers: Collection[int], rate: int):
        self._admin = admin
        self._brokers = brokers
        self._rate = rate
        self._set_s = -inf

    def is_due(self, now_s: float) -> bool:
        """Whether to set the rates before more partitions move. `now_s` is of a clock that only goes forward."""
        if now_s - self._set_s < AGAIN_S:
            return False
        self._set_s = now_s
        return True

    def apply(self) -> None:
        """Raises `KafkaError`."""
        for broker in sorted(self._running()):
            try:
                self._admin.configs.alter(Resource.BROKER, str(broker), dict.fromkeys(SETTINGS, self._rate))
            except InvalidRequest:
                if broker in self._running():  # else it has just gone down
                    raise

    def _running(self) -> set[int]:
        return self._admin.describe_cluster().racks.keys() & {*self._brokers}
