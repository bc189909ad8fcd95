"""Quotas on what clients produce, fetch and have the broker work for: the gate's accounting, and a rule for Fetch.

Everything is charged when its reply is ready, as by Kafka: first counted, then compared. A Produce counts with its
whole request, a Fetch with its whole reply, and any request with the time its handler worked. The largest throttling
holds. A throttled Fetch is answered without records, which then do not count. What may be fetched at once is bounded by
what the window allows; a larger first batch passes while nothing else counts, or its reader would never get further.

Other brokers of the cluster have no quotas. A request that a broker forwards is charged where the client is connected,
except for what it changes (`mutations`). Pure: the clocks are given.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from moldau.cluster.state import quotas
from moldau.protocol.apis import APIS, FETCH, PRODUCE
from moldau.protocol.fetch_request import Fetch
from moldau.protocol.hot_fetch import FetchReply
from moldau.rates import RateWindow, SampledRate
from moldau.requests.gate import Charge, Handler, HandlerTime, Verdict
from moldau.requests.routes import PackedReply
from moldau.requests.session import Call
from moldau.security.quotas.entities import Limit, QuotaTable
from moldau.security.quotas.sensors import Sensors

CLIENTS_MAX = 10_000
"""The limits of this many clients are remembered."""
THROTTLE_MS_MAX = (1 << 31) - 1
"""The longest time that a reply can tell."""


class ClientLimits(NamedTuple):
    """The quotas that hold for one client, None for those that it does not have."""

    produce: Limit | None
    fetch: Limit | None
    request: Limit | None


def client_of(call: Call) -> tuple[str, str]:
    """The user and the client id that a request counts for."""
    return call.session.principal.partition(":")[2], call.client_id or ""


class ClientUse:
    """`now_ms` are milliseconds and `now` seconds of clocks that never go backwards."""

    def __init__(self, window: RateWindow, now_ms: Callable[[], int], now: Callable[[], float]):
        self.now = now
        self._now_ms = now_ms
        self._window = window
        self._table = QuotaTable({})
        self._limits: dict[tuple[str, str], ClientLimits] = {}
        self._sensors: Sensors[SampledRate] = Sensors(lambda: SampledRate(window))

    def follow(self, table: QuotaTable) -> None:
        """These quotas hold from now on."""
        self._table = table
        self._limits.clear()

    def _limits_of(self, call: Call) -> ClientLimits:
        client = client_of(call)
        limits = self._limits.get(client)
        if limits is None:
            if len(self._limits) >= CLIENTS_MAX:
                self._limits.clear()
            keys = (quotas.PRODUCE, quotas.FETCH, quotas.REQUEST)
            limits = self._limits[client] = ClientLimits(*(self._table.limit(key, *client) for key in keys))
        return limits

    def cap(self, request: Any, call: Call) -> Verdict | None:
        """A rule: one Fetch brings at most what its client may fetch in a window."""
        if call.key != FETCH.key or call.session.introduction is not None:
            return None
        limit = self._limits_of(call).fetch
        most = None if limit is None else int(self._window.most(limit.value))
        if most is None or request.max_bytes <= most:
            return None

        def capped(handler: Handler, asked: Fetch, call: Call) -> Any:
            return handler(asked._replace(max_bytes=most, min_bytes=min(asked.min_bytes, most)), call)

        return Verdict(around=capped)

    def charge(self, request: Any, call: Call, handled: HandlerTime, response: Any, reply_bytes: int) -> Charge | None:
        session = call.session
        if session.introduction is not None or session.is_forwarded:
            return None
        limits, now_ms = self._limits_of(call), self._now_ms()
        throttle_ms = _throttle_ms_in(response, call) if type(response) is PackedReply else 0
        if limits.request is not None:
            rate = self._rate(quotas.REQUEST, limits.request, now_ms)
            rate.record(handled.seconds * 100, now_ms)
            throttle_ms = max(throttle_ms, min(rate.throttle_ms(limits.request.value, now_ms), self._window.sample_ms))
        if call.key == PRODUCE.key and limits.produce is not None:
            rate = self._rate(quotas.PRODUCE, limits.produce, now_ms)
            rate.record(call.size, now_ms)
            throttle_ms = max(throttle_ms, rate.throttle_ms(limits.produce.value, now_ms))
        elif call.key == FETCH.key:
            return self._charge_fetch(request, limits.fetch, response, reply_bytes, throttle_ms, now_ms)
        return Charge(min(throttle_ms, THROTTLE_MS_MAX)) if throttle_ms else None

    def _charge_fetch(
        self, request: Fetch, limit: Limit | None, response: Any, reply_bytes: int, throttle_ms: int, now_ms: int
    ) -> Charge | None:
        """`throttle_ms`: for another quota."""
        passes = False
        if limit is not None:
            rate = self._rate(quotas.FETCH, limit, now_ms)
            passes = not throttle_ms and rate.is_empty(now_ms)
            rate.record(reply_bytes, now_ms)
            throttle_ms = max(throttle_ms, rate.throttle_ms(limit.value, now_ms))
            if throttle_ms and not passes:
                rate.record(-reply_bytes, now_ms)
        if not throttle_ms:
            return None
        is_error = response.error if isinstance(response, FetchReply) else response.error_code
        if is_error or passes:
            return Charge(min(throttle_ms, THROTTLE_MS_MAX))
        session_id = request.session_id if request.session_epoch > 0 else 0
        return Charge(min(throttle_ms, THROTTLE_MS_MAX), FetchReply(0, session_id, (), ()))

    def _rate(self, key: str, limit: Limit, now_ms: int) -> SampledRate:
        return self._sensors.of((key, limit.user, limit.client_id), now_ms)


def _throttle_ms_in(reply: PackedReply, call: Call) -> int:
    """The time for which the controller throttles the client of a request that was forwarded to it: the first field of
    every such reply, behind the size, the correlation id and, in flexible versions, no tags."""
    at = 9 if APIS[call.key].is_flexible(call.version) else 8
    return int.from_bytes(reply.frame[at : at + 4], "big")
