"""The gate: its rules refuse requests and throttle clients, whatever the API."""

import asyncio
import struct
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from moldau.errors import ErrorCode, ProtocolViolation
from moldau.net.server import Peer
from moldau.protocol import codec
from moldau.protocol.apis import API_VERSIONS, APIS, FETCH, HEARTBEAT, METADATA, PRODUCE, Api
from moldau.protocol.hot_fetch import FetchReply, FetchResult
from moldau.protocol.messages.api_versions import ApiVersionsRequest
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from moldau.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from moldau.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.replies import Muting, Unanswered, awaited
from moldau.requests.dispatch import Dispatch
from moldau.requests.gate import Accounting, Charge, Gate, HandlerTime, Pending, Rule, Verdict
from moldau.requests.session import ANONYMOUS, Call
from moldau.runtime import Runtime
from moldau.turns import Turns

TOPIC = "t"
REFUSED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
PRODUCED = ProduceRequest(
    acks=1, topic_data=[TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(index=0, records=b"")])]
)
FETCHED = FetchRequest(topics=[FetchTopic(topic=TOPIC, partitions=[FetchPartition(partition=0)])])


class Later:
    """A response that is not a future; it is there in the next turn of the loop. `cancelled`: nobody waits for it."""

    def __init__(self, response: Any = None) -> None:
        self.is_there = self.cancelled = False
        self._response = response or [(0, 0, 5, -1, 0)]

    def done(self) -> bool:
        return self.is_there

    def result(self) -> Any:
        assert self.is_there
        return self._response

    def cancel(self) -> None:
        self.cancelled = True

    def add_done_callback(self, call: Callable[[Any], object], /) -> None:
        def there() -> None:
            self.is_there = True
            call(self)

        asyncio.get_running_loop().call_soon(there)


class Broker:
    """Handlers that answer at once, behind a gate; `calls` are those that reached one."""

    def __init__(self, *rules: Rule, accounting: Accounting | None = None, noted: list[float] | None = None):
        self.calls: list[Call] = []
        self.gate = Gate(rules, accounting)
        answers = self.answers = dict[Api, Callable[[Any], Any]](
            {
                PRODUCE: lambda request: [(0, 0, 5, -1, 0)],
                FETCH: lambda request: FetchReply(0, 0, (), ()),
            }
        )

        def answer(api: Api) -> Callable[[Any, Call], Any]:
            def handle(request: Any, call: Call) -> Any:
                self.calls.append(call)
                return answers[api](request) if api in answers else api.response()

            return handle

        self._dispatch = Dispatch({key: answer(api) for key, api in APIS.items()}, self.gate, Turns(Runtime()))
        self._dispatch.noted = noted
        self.connected = self._dispatch.connected
        self.handle = self.connected(Peer("10.0.0.7", 50_000), "PUBLIC")

    def ask(
        self, api: Api, version: int, request: Any, client_id: str = "asker", timeout_s: float | None = None
    ) -> Any:
        """The answer to one frame: a reply, or a `Muting`."""
        frame = codec.write_request(api, version, 7, client_id, request)[4:]

        async def answered() -> Any:
            answer = self.handle(memoryview(bytearray(frame)))
            async with asyncio.timeout(timeout_s):
                if isinstance(answer, Awaitable):
                    answer = await answer
                while isinstance(answer, Unanswered):
                    answer = answer.pack(await awaited(answer.response))
            return answer

        return asyncio.run(answered())


def read(api: Api, version: int, reply: Any) -> Any:
    frame = b"".join(reply)
    assert struct.unpack_from(">ii", frame) == (len(frame) - 4, 7)
    return codec.read_reply(api, version, frame[4:])


def test_every_request_is_noted_where_somebody_counts_them() -> None:
    noted: list[float] = []
    broker = Broker(noted=noted)
    for api, version, request in ((PRODUCE, 8, PRODUCED), (PRODUCE, 9, PRODUCED), (FETCH, 12, FETCHED)):
        broker.ask(api, version, request)
    broker.ask(METADATA, 12, MetadataRequest())
    broker.ask(API_VERSIONS, API_VERSIONS.high + 1, ApiVersionsRequest())
    keys = [PRODUCE.key, PRODUCE.key, FETCH.key, METADATA.key, API_VERSIONS.key]
    assert noted == [~key for key in keys]
    with pytest.raises(ProtocolViolation):
        broker.handle(memoryview(bytearray(struct.pack(">hhih", 0x7FFF, 0, 7, -1))))
    assert len(noted) == 5


def test_the_principal_of_a_connection_is_what_its_certificate_proves() -> None:
    broker = Broker()
    broker.ask(PRODUCE, 9, PRODUCED)
    broker.handle = broker.connected(Peer("10.0.0.7", 50_000, "User:CN=alice"), "PUBLIC")
    broker.ask(PRODUCE, 9, PRODUCED)
    assert [call.session.principal for call in broker.calls] == [ANONYMOUS, "User:CN=alice"]


def test_a_call_says_who_asks_and_what() -> None:
    broker = Broker()
    for client_id in ("one", "one", "another", ""):
        broker.ask(PRODUCE, 9, PRODUCED, client_id)
    assert [call.client_id for call in broker.calls] == ["one", "one", "another", ""]
    call = broker.calls[0]
    assert (call.key, call.version, call.correlation_id, call.client_host) == (PRODUCE.key, 9, 7, "10.0.0.7")
    assert (call.session.listener, call.session.principal) == ("PUBLIC", ANONYMOUS)
    assert all(other.session is call.session for other in broker.calls)


@pytest.mark.parametrize("version", [PRODUCE.lowest, 8, 9, 12])
def test_a_throttled_produce_says_so_and_mutes_its_connection(version: int) -> None:
    muting = Broker(lambda request, call: Verdict(throttle_ms=250)).ask(PRODUCE, version, PRODUCED)
    assert isinstance(muting, Muting) and muting.ms == 250
    response = read(PRODUCE, version, muting.reply)
    assert response.throttle_time_ms == 250
    assert response.responses[0].partition_responses[0].base_offset == 5


def test_a_throttled_produce_that_waits_for_replicas_is_answered_after_its_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker, later = Broker(lambda request, call: Verdict(throttle_ms=250)), Later()
    broker.answers[PRODUCE] = lambda request: Pending(request, later)
    muting = broker.ask(PRODUCE, 9, PRODUCED)
    assert isinstance(muting, Muting) and muting.ms == 250
    assert read(PRODUCE, 9, muting.reply).responses[0].partition_responses[0].base_offset == 5
    later.is_there = False
    monkeypatch.setattr(Later, "add_done_callback", lambda *_: None)  # it never comes, and the connection ends
    with pytest.raises(TimeoutError):
        broker.ask(PRODUCE, 9, PRODUCED, timeout_s=0.01)
    assert later.cancelled


@pytest.mark.parametrize(("api", "request_"), [(FETCH, FETCHED), (METADATA, MetadataRequest())])
def test_a_throttled_client_is_told_for_how_long(api: Api, request_: Any) -> None:
    muting = Broker(lambda request, call: Verdict(throttle_ms=9)).ask(api, 12, request_)
    assert isinstance(muting, Muting) and muting.ms == 9
    assert read(api, 12, muting.reply).throttle_time_ms == 9


def test_the_longest_throttling_counts_and_the_first_error() -> None:
    verdicts = (Verdict(throttle_ms=5), None, Verdict(REFUSED, 20), Verdict(ErrorCode.UNKNOWN_SERVER_ERROR, 10))
    broker = Broker(*(lambda request, call, verdict=verdict: verdict for verdict in verdicts))
    muting = broker.ask(HEARTBEAT, 4, HeartbeatRequest(group_id="g"))
    assert read(HEARTBEAT, 4, muting.reply) == HeartbeatResponse(error_code=REFUSED, throttle_time_ms=20)
    assert muting.ms == 20
    assert not broker.calls


def test_a_refused_request_reaches_no_handler_and_its_reply_says_why() -> None:
    broker = Broker(lambda request, call: Verdict(REFUSED))
    produced = read(PRODUCE, 9, broker.ask(PRODUCE, 9, PRODUCED))
    assert [part.error_code for part in produced.responses[0].partition_responses] == [REFUSED]
    fetched = read(FETCH, 12, broker.ask(FETCH, 12, FETCHED))
    assert (fetched.error_code, fetched.responses[0].partitions[0].error_code) == (REFUSED, REFUSED)
    assert read(HEARTBEAT, 4, broker.ask(HEARTBEAT, 4, HeartbeatRequest())).error_code == REFUSED
    assert read(API_VERSIONS, 3, broker.ask(API_VERSIONS, 3, ApiVersionsRequest())).error_code == REFUSED
    assert not broker.calls


def test_a_refused_request_without_a_place_for_the_error_closes_the_connection() -> None:
    broker = Broker(lambda request, call: Verdict(REFUSED))
    with pytest.raises(ProtocolViolation, match="Produce is refused"):
        broker.ask(PRODUCE, 9, ProduceRequest(acks=0, topic_data=PRODUCED.topic_data))


def in_steps(response: Any) -> Any:
    """Work of two turns."""
    for _ in range(1500):
        yield
    return response


class Quota:
    """Accounting with a clock that its test moves: `charged` are the API, the size of the request, the seconds of the
    handler and the bytes of each reply."""

    def __init__(self, charge: Charge | None = None):
        self.time_s = 100.0
        self.charged: list[tuple[int, int, float, int]] = []
        self._charge = charge

    def now(self) -> float:
        return self.time_s

    def charge_produce(self, call: Call, worked_s: float, now_s: float) -> int:
        charge = self.charge(None, call, HandlerTime(worked_s), None, 0)
        return 0 if charge is None else charge.throttle_ms

    def charges_fetch(self, call: Call) -> bool:
        return True

    def charge(self, request: Any, call: Call, handled: HandlerTime, response: Any, reply_bytes: int) -> Charge | None:
        self.charged.append((call.key, call.size, handled.seconds, reply_bytes))
        return self._charge


def test_the_accounting_hears_of_every_reply_its_size_and_its_handlers_time() -> None:
    quota = Quota()
    broker = Broker(accounting=quota)

    def works(response: Any) -> Callable[[Any], Any]:
        def answer(request: Any) -> Any:
            quota.time_s += 0.25
            return response

        return answer

    def in_many_steps(request: Any) -> Any:
        def steps(left: int) -> Any:
            for _ in range(2000):  # more than one turn
                quota.time_s += 0.5
                yield
            return steps(left - 1) if left else HEARTBEAT.response()

        return steps(1)

    broker.answers |= {
        PRODUCE: works([(0, 0, 5, -1, 0)]),
        METADATA: works(METADATA.response()),
        HEARTBEAT: in_many_steps,
    }
    for api, version, request in (
        (PRODUCE, 9, PRODUCED),
        (METADATA, 12, MetadataRequest()),
        (HEARTBEAT, 4, HeartbeatRequest()),
    ):
        reply = broker.ask(api, version, request)
        size = len(codec.write_request(api, version, 7, "asker", request)) - 4
        assert quota.charged.pop() == (
            api.key, size, 2000.0 if api is HEARTBEAT else 0.25, 0 if api is PRODUCE else sum(map(len, reply)),
        )  # fmt: skip


def test_the_time_in_which_a_request_waits_is_nobodys_work() -> None:
    quota, later = Quota(), Later()
    broker = Broker(accounting=quota)

    async def waits() -> Any:
        quota.time_s += 60
        return HEARTBEAT.response()

    def pends(request: Any) -> Pending:
        quota.time_s += 0.25
        return Pending(request, later)

    broker.answers |= {HEARTBEAT: lambda request: waits(), PRODUCE: pends}
    broker.ask(HEARTBEAT, 4, HeartbeatRequest())
    assert quota.charged.pop()[2] == 0
    assert read(PRODUCE, 9, broker.ask(PRODUCE, 9, PRODUCED)).responses[0].partition_responses[0].base_offset == 5
    assert quota.charged.pop()[2] == 0.25


@pytest.mark.parametrize("waits", [False, True])
def test_a_client_above_its_quota_is_told_and_muted(waits: bool) -> None:
    broker = Broker(lambda request, call: Verdict(throttle_ms=20), accounting=Quota(Charge(300)))
    if waits:
        broker.answers[PRODUCE] = lambda request: Pending(request, Later())
    muting = broker.ask(PRODUCE, 9, PRODUCED)
    assert isinstance(muting, Muting) and muting.ms == 300
    response = read(PRODUCE, 9, muting.reply)
    assert (response.throttle_time_ms, response.responses[0].partition_responses[0].base_offset) == (300, 5)


def test_a_reply_above_the_quota_is_replaced() -> None:
    broker = Broker(accounting=Quota(Charge(300, FetchReply(0, 0, (), ()))))
    broker.answers[FETCH] = lambda request: FetchReply(0, 9, request.topics, [FetchResult(0, 0, 5, 5, 0)])
    muting = broker.ask(FETCH, 12, FETCHED)
    assert isinstance(muting, Muting) and muting.ms == 300
    response = read(FETCH, 12, muting.reply)
    assert (response.throttle_time_ms, response.session_id, response.responses) == (300, 0, [])


def test_a_wide_request_is_judged_and_accounted_for() -> None:
    quota = Quota(Charge(300))
    broker = Broker(accounting=quota)
    topics = [MetadataRequestTopic(name=f"topic-{number}") for number in range(3000)]
    muting = broker.ask(METADATA, 12, MetadataRequest(topics=topics))
    assert isinstance(muting, Muting) and muting.ms == 300
    assert quota.charged[0][1] > 30_000
    assert read(METADATA, 12, muting.reply).throttle_time_ms == 300


def test_a_wide_reply_is_packed_in_the_executor_and_charged_on_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = dict[str, set[threading.Thread]](pack=set(), charge=set())

    class Watched(Quota):
        def charge(self, *args: Any) -> Charge | None:
            threads["charge"].add(threading.current_thread())
            return super().charge(*args)

    def pack(*args: Any) -> Any:
        threads["pack"].add(threading.current_thread())
        return write_reply(*args)

    write_reply = codec.write_reply
    monkeypatch.setattr(codec, "write_reply", pack)
    broker = Broker(accounting=Watched(Charge(300)))
    topics = [MetadataResponseTopic(name=f"topic-{number}") for number in range(3000)]
    for later in (False, True):
        if later:
            broker.answers[METADATA] = lambda request: Pending(request, Later(MetadataResponse(topics=topics)))
        else:
            broker.answers[METADATA] = lambda request: in_steps(MetadataResponse(topics=topics))
        muting = broker.ask(METADATA, 12, MetadataRequest())
        assert isinstance(muting, Muting) and muting.ms == 300
        assert len(read(METADATA, 12, muting.reply).topics) == 3000
    assert threads["charge"] == {threading.main_thread()}
    assert threading.main_thread() not in threads["pack"]
