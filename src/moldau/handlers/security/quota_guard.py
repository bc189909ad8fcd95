"""The quotas of one broker in force: the gate's rules and accounting, and the rates of new connections.

It is made with the first quota that the cluster has, which may be set while the broker runs, and then stays. The quotas
come with the cluster's image.
"""

from collections.abc import Callable
from typing import TypeAlias

from moldau.cluster.cluster import Cluster
from moldau.cluster.state.image import Image
from moldau.protocol.apis import FETCH
from moldau.rates import RateWindow
from moldau.requests.gate import Gate, Rule
from moldau.runtime import Runtime
from moldau.security.quotas.client_use import ClientUse
from moldau.security.quotas.entities import QuotaTable
from moldau.security.quotas.mutations import STRICT_SINCE, Mutations

IpRate: TypeAlias = Callable[[str], float | None]


class QuotaGuard:
    """Adds itself to the gate."""

    def __init__(self, gate: Gate, cluster: Cluster, runtime: Runtime):
        config, now = cluster.metadata.config, runtime.stopwatch
        window = RateWindow(config.quota_window_num, config.quota_window_size_seconds * 1000)
        burst = RateWindow(config.controller_quota_window_num, config.controller_quota_window_size_seconds * 1000)
        self._use = ClientUse(window, now)
        self._mutations = Mutations(burst, now, lambda: cluster.decided_on, lambda: config.num_partitions)
        self._image: Image | None = None
        self._table = QuotaTable({})
        rules: dict[int, Rule] = {FETCH.key: self._use.cap}
        gate.guard(rules | dict.fromkeys(STRICT_SINCE, self._mutations), self._use)

    def follow(self, image: Image) -> IpRate | None:
        """The quotas of this image hold from now on. Returns how many connections a second may come from an address;
        None if no address has a quota."""
        if self._image is None or image.quotas is not self._image.quotas:
            self._table = QuotaTable(image.quotas)
            self._use.follow(self._table)
            self._mutations.follow(self._table)
        self._image = image
        return self._table.connection_rate if self._table.limits_addresses else None
