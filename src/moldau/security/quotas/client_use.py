"""Quotas on what clients produce, fetch and have the broker work for: the gate's accounting, and a rule for Fetch.

Everything is charged when its reply is ready, as by Kafka: first counted, then compared. A Produce counts with its
whole request, a Fetch with its whole reply, and any request with the time its handler worked. The largest throttling
holds. A throttled Fetch is answered without records, which then do not count. What may be fetched at once is bounded by
what the window allows; a larger first batch passes while nothing else counts, or its reader would never get further.

Other brokers of the cluster have no quotas. A request that a broker forwards is charged where the client is connected,
except for what it changes (`mutations`). Pure: the clock is given.
"""

import math
from collections.abc import Callable
from typing import Any

from moldau.cluster.state import quotas
from moldau.protocol.apis import APIS, FETCH, PRODUCE
from moldau.protocol.fetch_request import Fetch
from moldau.protocol.hot_fetch import FetchReply
from moldau.rates import RateWindow, SampledRate
from moldau.requests.gate import Charge, Handler, HandlerTime, Verdict
from moldau.requests.routes import PackedReply
from moldau.requests.session import Call
from moldau.security.quotas.entities import QuotaTable
from moldau.security.quotas.sensors import Sensors

CHECKED_MS = 60_000
"""How long a session's client is remembered."""
THROTTLE_MS_MAX = (1 << 31) - 1
"""The longest time that a reply can tell."""


class Quota:
    """A limit that holds for a client, what has been used of it, and `free`: below that sum it does not matter when."""

    __slots__ = ("free", "limit", "rate")

    def __init__(self, limit: float, rate: SampledRate, free: float):
        self.limit = limit
        self.rate = rate
        self.free = free

    def charge(self, value: float, now_ms: int) -> int:
        return self.rate.charge(value, self.limit, now_ms)


class Client:
    """The client of one session, with the quotas that hold for it by this table: None where it has none. It is looked
    up again after `CHECKED_MS`, so that a sensor that was idle meanwhile is the one of all its sessions.

    For `charge_produce`: until `plain_until_ms` what is used belongs to the current samples of both rates, `produced`
    and `worked`, and needs no comparison as long as their sums are at most `produced_free` and `worked_free`."""

    __slots__ = (
        "client_id",
        "fetch",
        "is_free",
        "plain_until_ms",
        "produce",
        "produced",
        "produced_free",
        "request",
        "table",
        "until_ms",
        "worked",
        "worked_free",
    )

    def __init__(self, table: QuotaTable, call: Call, until_ms: int, quota: Callable[[str], Quota | None]):
        session = call.session
        self.table = table
        self.client_id = call.client_id
        self.until_ms = until_ms
        self.is_free = session.introduction is not None or session.is_forwarded
        """It is a broker, or its request is charged by another one."""
        self.produce = None if self.is_free else quota(quotas.PRODUCE)
        self.fetch = None if self.is_free else quota(quotas.FETCH)
        self.request = None if self.is_free else quota(quotas.REQUEST)
        self.plain_until_ms = 0
        unlimited = Quota(math.inf, SampledRate(RateWindow()), math.inf)
        self.produced, self.produced_free = (one := self.produce or unlimited).rate, one.free
        self.worked, self.worked_free = (one := self.request or unlimited).rate, one.free

    def expect_plain(self) -> None:
        """Both rates have just been recorded: their samples go on until they are full, whoever else uses them."""
        full = [quota.rate.full_ms for quota in (self.produce, self.request) if quota is not None]
        self.plain_until_ms = min([self.until_ms, *full])


def client_of(call: Call) -> tuple[str, str]:
    """The user and the client id that a request counts for."""
    return call.session.principal.partition(":")[2], call.client_id or ""


class ClientUse:
    """`now` returns the seconds of a clock that never goes backwards."""

    def __init__(self, window: RateWindow, now: Callable[[], float]):
        self.now = self._seconds = now
        self._window = window
        self._table = QuotaTable({})
        self._sensors: Sensors[SampledRate] = Sensors(lambda: SampledRate(window))

    def follow(self, table: QuotaTable) -> None:
        """These quotas hold from now on."""
        self._table = table

    def _client(self, call: Call, now_ms: int) -> Client:
        session, _, _, _, client_id, _ = call
        client: Client | None = session.use
        if (
            client is not None
            and client.client_id is client_id
            and client.table is self._table
            and now_ms < client.until_ms
        ):
            return client
        who = client_of(call)

        def quota(key: str) -> Quota | None:
            limit = self._table.limit(key, *who)
            if limit is None:
                return None
            rate = self._sensors.of((key, limit.user, limit.client_id), now_ms)
            return Quota(limit.value, rate, self._window.most(limit.value))

        made = session.use = Client(self._table, call, now_ms + CHECKED_MS, quota)
        return made

    def cap(self, request: Any, call: Call) -> Verdict | None:
        """A rule for Fetch: one brings at most what its client may fetch in a window."""
        quota = self._client(call, int(self._seconds() * 1000)).fetch
        most = None if quota is None else int(self._window.most(quota.limit))
        if most is None or request.max_bytes <= most:
            return None

        def capped(handler: Handler, asked: Fetch, call: Call) -> Any:
            return handler(asked._replace(max_bytes=most, min_bytes=min(asked.min_bytes, most)), call)

        return Verdict(around=capped)

    def charges_fetch(self, call: Call) -> bool:
        client = self._client(call, int(self._seconds() * 1000))
        return client.fetch is not None or client.request is not None

    def charge_produce(self, call: Call, worked_s: float, now_s: float) -> int:
        session, _, _, _, _, size = call
        client, now_ms = session.use, now_s * 1000
        # By far the commonest: the sums stay so small that it does not matter when they were used. What is below is
        # `SampledRate.record` for both rates.
        if (
            client is not None
            and now_ms < client.plain_until_ms
            and client.client_id is session.client_id
            and client.table is self._table
        ):
            produced, worked = client.produced, client.worked
            total, total_work = produced.total + size, worked.total + worked_s * 100
            if total <= client.produced_free and total_work <= client.worked_free:
                produced.total, worked.total = total, total_work
                produced.last_ms = worked.last_ms = now_ms
                return 0
        return self._compare_produce(call, worked_s, int(now_ms))

    def _compare_produce(self, call: Call, worked_s: float, now_ms: int) -> int:
        client, throttle_ms = self._client(call, now_ms), 0
        if client.produce is not None:
            throttle_ms = client.produce.charge(call.size, now_ms)
        if client.request is not None:
            ms = client.request.charge(worked_s * 100, now_ms)
            throttle_ms = max(throttle_ms, min(ms, self._window.sample_ms))
        client.expect_plain()
        return min(throttle_ms, THROTTLE_MS_MAX)

    def charge(self, request: Any, call: Call, handled: HandlerTime, response: Any, reply_bytes: int) -> Charge | None:
        now_ms = int(self._seconds() * 1000)
        client = self._client(call, now_ms)
        if client.is_free:
            return None
        throttle_ms = response.throttle_ms(APIS[call.key], call.version) if type(response) is PackedReply else 0
        if client.request is not None:
            of_time = client.request.charge(handled.seconds * 100, now_ms)
            throttle_ms = max(throttle_ms, min(of_time, self._window.sample_ms))
        if call.key == PRODUCE.key and client.produce is not None:
            throttle_ms = max(throttle_ms, client.produce.charge(call.size, now_ms))
        elif call.key == FETCH.key:
            return self._charge_fetch(request, client.fetch, response, reply_bytes, throttle_ms, now_ms)
        return Charge(min(throttle_ms, THROTTLE_MS_MAX)) if throttle_ms else None

    def _charge_fetch(
        self, request: Fetch, quota: Quota | None, response: Any, reply_bytes: int, throttle_ms: int, now_ms: int
    ) -> Charge | None:
        """`throttle_ms`: for another quota."""
        passes = False
        if quota is not None:
            passes = not throttle_ms and quota.rate.is_empty(now_ms)
            throttle_ms = max(throttle_ms, quota.charge(reply_bytes, now_ms))
            if throttle_ms and not passes:
                quota.rate.record(-reply_bytes, now_ms)
        if not throttle_ms:
            return None
        is_error = response.error if isinstance(response, FetchReply) else response.error_code
        if is_error or passes:
            return Charge(min(throttle_ms, THROTTLE_MS_MAX))
        session_id = request.session_id if request.session_epoch > 0 else 0
        return Charge(min(throttle_ms, THROTTLE_MS_MAX), FetchReply(0, session_id, (), ()))
