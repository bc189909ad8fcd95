"""The accounting of what clients use, with clocks that the test moves: request time, exemptions, several quotas."""

from typing import Any

from moldau.cluster.state.quotas import FETCH, PRODUCE, REQUEST, QuotaOwner, Quotas
from moldau.protocol import apis
from moldau.protocol.hot_fetch import Fetch, FetchReply
from moldau.rates import RateWindow
from moldau.requests.gate import Charge, HandlerTime, Verdict
from moldau.requests.routes import PackedReply
from moldau.requests.session import Call, Introduction
from moldau.security.quotas.client_use import THROTTLE_MS_MAX, ClientUse
from moldau.security.quotas.entities import QuotaTable
from tests.requests.calling import session

ANN = QuotaOwner("ann")
EMPTY = FetchReply(0, 0, (), ())


class Use:
    def __init__(self, quotas: Quotas):
        self.now_ms = 5_000_000
        self.use = ClientUse(RateWindow(), lambda: self.now_ms / 1000)
        self.use.follow(QuotaTable(quotas))
        self.session = session()
        self.session.principal = "User:ann"

    def call(self, api: apis.Api, size: int = 0, client_id: str | None = "app") -> Call:
        return Call(self.session, api.key, 12, 1, client_id, size)

    def charge(self, api: apis.Api, seconds: float = 0.0, size: int = 0, reply: int = 0, response: Any = None) -> Any:
        request = Fetch(-1, 0, 0, 0, 0, 0, -1, [], []) if api is apis.FETCH else None
        return self.use.charge(request, self.call(api, size), HandlerTime(seconds), response or EMPTY, reply)


def test_a_share_of_the_processor_is_ten_seconds_long_and_throttles_for_a_second_at_most() -> None:
    of = Use({ANN: {REQUEST: 10.0}})
    assert of.charge(apis.METADATA, seconds=1.0) is None
    assert of.charge(apis.METADATA, seconds=0.05) == Charge(500)
    assert of.charge(apis.HEARTBEAT, seconds=100.0) == Charge(1000)
    of.now_ms += 11_000
    assert of.charge(apis.HEARTBEAT, seconds=1.0) is None


def test_a_fetch_of_a_client_that_takes_too_much_time_is_empty_and_its_bytes_do_not_count() -> None:
    of = Use({ANN: {REQUEST: 10.0, FETCH: 1000.0}})
    assert of.charge(apis.FETCH, seconds=1.01, reply=9000) == Charge(100, EMPTY)
    of.now_ms += 11_000
    assert of.charge(apis.FETCH, reply=10_000) is None
    assert of.charge(apis.FETCH, reply=1000) == Charge(1000, EMPTY)
    assert of.charge(apis.FETCH, reply=1000) == Charge(1000, EMPTY)


def test_the_longer_of_two_throttlings_is_told() -> None:
    of = Use({ANN: {REQUEST: 10.0, PRODUCE: 1000.0}})
    assert of.charge(apis.PRODUCE, seconds=1.01, size=10_000) == Charge(100)
    assert of.charge(apis.PRODUCE, size=10_000) == Charge(10_000)


def test_an_error_of_a_throttled_fetch_is_told() -> None:
    of = Use({ANN: {FETCH: 1.0}})
    of.charge(apis.FETCH, reply=10)
    assert of.charge(apis.FETCH, reply=90, response=FetchReply(71, 0, (), ())) == Charge(90_000)


def test_a_throttled_fetch_stays_in_its_session() -> None:
    of = Use({ANN: {FETCH: 1.0}})
    of.charge(apis.FETCH, reply=10)
    for epoch, session_id in ((3, 77), (0, 0)):
        request = Fetch(-1, 0, 0, 0, 0, 77, epoch, [], [])
        charge = of.use.charge(request, of.call(apis.FETCH), HandlerTime(0), FetchReply(0, 78, (), ()), 100)
        assert charge is not None and charge.instead == FetchReply(0, session_id, (), ())


def test_other_brokers_and_what_they_forward_are_not_charged() -> None:
    of = Use({QuotaOwner(client_id=""): {FETCH: 1.0, PRODUCE: 1.0, REQUEST: 1.0}})
    of.session.become_broker(Introduction(2, 5))
    assert of.charge(apis.FETCH, seconds=100, reply=10_000) is None
    assert of.use.cap(Fetch(2, 0, 0, 10_000, 0, 0, -1, [], []), of.call(apis.FETCH)) is None
    of.session.introduction, of.session.is_forwarded = None, True
    assert of.charge(apis.CREATE_TOPICS, seconds=100) is None


def test_what_the_controller_throttles_is_throttled_where_the_client_is_connected() -> None:
    of = Use({ANN: {REQUEST: 10.0}})
    frame = bytes([0, 0, 0, 9]) + bytes(5) + (1234).to_bytes(4, "big")
    assert of.charge(apis.CREATE_TOPICS, response=PackedReply(frame)) == Charge(1234)


def test_the_cap_of_a_fetch_is_what_the_window_allows() -> None:
    of = Use({ANN: {FETCH: 1000.0}})
    verdict = of.use.cap(Fetch(-1, 0, 20_000, 20_000, 0, 0, -1, [], []), of.call(apis.FETCH))
    assert isinstance(verdict, Verdict) and verdict.around is not None
    asked = verdict.around(lambda request, call: request, Fetch(-1, 0, 20_000, 20_000, 0, 0, -1, [], []), None)  # type: ignore[arg-type]
    assert (asked.max_bytes, asked.min_bytes) == (10_000, 10_000)
    assert of.use.cap(Fetch(-1, 0, 0, 10_000, 0, 0, -1, [], []), of.call(apis.FETCH)) is None


def test_no_throttling_is_longer_than_a_reply_can_tell() -> None:
    of = Use({ANN: {PRODUCE: 1.0}})
    assert of.charge(apis.PRODUCE, size=100_000_000) == Charge(THROTTLE_MS_MAX)


def test_a_produce_is_charged_before_its_reply_is_packed_and_a_fetch_with_a_quota_is_not() -> None:
    of = Use({ANN: {PRODUCE: 1000.0, REQUEST: 10.0}})
    of.session.client_id = "app"
    assert of.use.charge_produce(of.call(apis.PRODUCE, 4000), 0.0, 5000.0) == 0
    assert of.use.charge_produce(of.call(apis.PRODUCE, 6000), 0.0, 5000.0) == 0
    assert of.use.charge_produce(of.call(apis.PRODUCE, 10_000), 0.0, 5000.0) == 10_000
    assert of.use.charge_produce(of.call(apis.PRODUCE, 10**12), 0.0, 5000.0) == THROTTLE_MS_MAX
    assert of.use.charges_fetch(of.call(apis.FETCH))
    of.session.become_broker(Introduction(2, 5))
    assert not of.use.charges_fetch(of.call(apis.FETCH))
    assert of.use.charge_produce(of.call(apis.PRODUCE, 10**12), 99.0, 5000.0) == 0
    assert not Use({ANN: {PRODUCE: 1000.0}}).use.charges_fetch(of.call(apis.FETCH))


def test_a_produce_is_charged_for_its_bytes_and_its_time_together_whatever_way_it_is_charged() -> None:
    """`charge_produce` has the common case written out; it adds up to what `charge` finds afterwards."""
    of = Use({ANN: {PRODUCE: 1000.0, REQUEST: 10.0}})
    of.session.client_id = "app"
    for step in range(30):
        of.now_ms += 300
        call = of.call(apis.PRODUCE, 300)
        told = of.use.charge_produce(call, 0.03, of.now_ms / 1000) if step % 3 else of.charge(apis.PRODUCE, 0.03, 300)
        assert not told
    # 9,000 bytes and 0.9 s so far, in samples that make the window 10.7 s long.
    assert of.charge(apis.PRODUCE, 0.0, 1700) is None
    assert of.charge(apis.PRODUCE, 0.2, 0) == Charge(300)
    assert of.charge(apis.PRODUCE, 0.0, 800) == Charge(800)


def test_other_quotas_another_client_id_and_another_user_hold_at_once() -> None:
    of = Use({ANN: {PRODUCE: 1000.0}})
    assert of.charge(apis.PRODUCE, size=20_000) == Charge(10_000)
    of.use.follow(QuotaTable({ANN: {PRODUCE: 10_000.0}}))
    assert of.charge(apis.PRODUCE, size=20_000) is None
    of.use.follow(QuotaTable({QuotaOwner("ann", "other"): {PRODUCE: 1.0}}))
    assert of.charge(apis.PRODUCE, size=20_000) is None
    other = of.use.charge(None, of.call(apis.PRODUCE, 20, "other"), HandlerTime(0), EMPTY, 0)
    assert other == Charge(10_000)
    of.session.become("User:bob")
    assert of.use.charge(None, of.call(apis.PRODUCE, 20, "other"), HandlerTime(0), EMPTY, 0) is None


def test_all_sessions_of_a_client_share_its_quota_also_after_hours() -> None:
    of, other = Use({ANN: {PRODUCE: 1000.0}}), session()
    other.principal = "User:ann"
    for _ in range(3):
        of.now_ms += 2 * 3_600_000
        assert of.charge(apis.PRODUCE, size=10_000) is None
        of.session, other = other, of.session
        assert of.charge(apis.PRODUCE, size=10_000) == Charge(10_000)
