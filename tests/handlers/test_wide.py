"""The widest requests of every API: none holds the loop for long, whatever is in it.

A request is made for each API from its table: its arrays are long, everything in them is different. What counts is the
function calls of the loop's thread in one turn, beside those that reading the same bytes takes: a broker that reads,
handles and answers in one turn needs a multiple of that. `make long` sends three times as many elements,
with which every API could exceed the bound.
"""

import asyncio
import gc
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from harness.patience import stretched
from harness.tiers import sized
from harness.wide_requests import request_of, wide_requests
from moldau import turns
from moldau.cluster import controller_link
from moldau.cluster.controlling import change_queue
from moldau.cluster.controlling.change_queue import ChangeQueue
from moldau.coordinators.groups import coordinator
from moldau.handlers.cluster.find_coordinator import GROUP, TRANSACTION
from moldau.handlers.fetching import fetch_sessions
from moldau.handlers.fetching.fetch_sessions import HELD_MAX
from moldau.protocol import apis, codec, schema
from moldau.protocol.apis import FETCH, PRODUCE, Api
from moldau.protocol.messages.end_txn import EndTxnRequest
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.messages.init_producer_id import InitProducerIdRequest
from moldau.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponsePartition,
)
from moldau.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from moldau.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from moldau.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from moldau.requests import routes
from moldau.runtime import Runtime
from tests.handlers import longest_turn
from tests.handlers.living import Living, Wire, batch, living, outcomes, produce

SMALLER = sized(4, 1, 1)
"""In `make test`, turns, what counts as wide, requests and bounds are so many times smaller: the same ways of requests
for less work."""
SIZES = (
    (turns, "ELEMENTS"),
    (schema, "WIDE_ELEMENTS"),
    (codec, "WIDE_BYTES"),
    (routes, "WIDE_BYTES"),
    (controller_link, "WIDE_BYTES"),
    (change_queue, "DECIDED_AT_ONCE"),
    (coordinator, "OFFSETS_PER_DECISION_MAX"),
)
"""How much is done in a turn or decided at once, and from which size on a message is wide."""
ELEMENTS = sized(10_000, 10_000, 30_000) // SMALLER
LEAST_CALLS = sized(12_000, 45_000, 45_000)
"""A turn of the costliest API makes 41,000 calls here, and 11,000 if turns are smaller. With all elements in one turn,
every second API makes more."""


@pytest.fixture(autouse=True)
def smaller_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in SIZES:
        monkeypatch.setattr(module, name, getattr(module, name) // SMALLER)
    monkeypatch.setattr(turns.in_turns, "__defaults__", (turns.ELEMENTS,))


CHEAP = {
    (apis.JOIN_GROUP, "protocols"),
    (apis.SYNC_GROUP, "assignments"),
    (apis.LIST_GROUPS, "states_filter"),
    (apis.LIST_GROUPS, "types_filter"),
    (apis.DELETE_ACLS, "filters"),
    (apis.DESCRIBE_LOG_DIRS, "topics"),
    (apis.DESCRIBE_DELEGATION_TOKEN, "owners"),
    (apis.DESCRIBE_CLIENT_QUOTAS, "components"),
    (apis.LIST_TRANSACTIONS, "state_filters"),
    (apis.LIST_TRANSACTIONS, "producer_id_filters"),
    (apis.CONSUMER_GROUP_HEARTBEAT, "subscribed_topic_names"),
    (apis.CONSUMER_GROUP_HEARTBEAT, "topic_partitions"),
    (apis.LIST_CONFIG_RESOURCES, "resource_types"),
}
"""All calls of the whole answer are fewer than those allowed in a turn: only the elements of the long tier can show a
fault."""
WIDE = [pytest.param(*one, marks=[pytest.mark.long] * (one in CHEAP)) for one in wide_requests()]


@pytest.mark.parametrize(("api", "array"), WIDE, ids=lambda value: getattr(value, "name", value))
def test_no_wide_request_holds_the_loop(api: Api, array: str, tmp_path: Path) -> None:
    async def scene(alive: Living, _: Wire) -> None:
        await longest_turn.answered_in_turns(alive, api, request_of(api, array, ELEMENTS), least_calls=LEAST_CALLS)

    on_a_broker(scene, tmp_path)


answered_in_turns = partial(longest_turn.answered_in_turns, least_calls=longest_turn.LEAST_CALLS // SMALLER)
PARTITIONS = 100
NUMBERS = [number % PARTITIONS for number in range(ELEMENTS)]


def on_a_broker(scene: Callable[[Living, Wire], Awaitable[None]], folder: Path) -> None:
    """A new broker that coordinates groups and transactions."""

    async def whole() -> None:
        async with asyncio.timeout(stretched(120)), living(folder, offsets_topic_num_partitions=2) as alive:
            wire = await alive.dial()
            for kind in (GROUP, TRANSACTION):
                asked = FindCoordinatorRequest(key_type=kind, coordinator_keys=["wide"])
                await wire.ask(apis.FIND_COORDINATOR, 6, asked)
            await scene(alive, wire)

    asyncio.run(whole())


def on_a_topic(scene: Callable[[Living, Wire], Awaitable[None]], folder: Path) -> None:
    """The same with a topic of that many partitions."""

    async def with_topic(alive: Living, wire: Wire) -> None:
        await alive.make("t", PARTITIONS)
        await scene(alive, wire)

    on_a_broker(with_topic, folder)


def commit_of(offset: int) -> OffsetCommitRequest:
    """Very many offsets; the last one of each partition counts."""
    partitions = [
        OffsetCommitRequestPartition(partition_index=number, committed_offset=offset + at)
        for at, number in enumerate(NUMBERS)
    ]
    return OffsetCommitRequest(group_id="wide", topics=[OffsetCommitRequestTopic(name="t", partitions=partitions)])


async def committed(wire: Wire) -> list[int]:
    group = OffsetFetchRequestGroup(group_id="wide", topics=None)
    answer = await wire.ask(apis.OFFSET_FETCH, 9, OffsetFetchRequest(groups=[group]))
    return [part.committed_offset for topic in answer.groups[0].topics for part in topic.partitions]


def last_of_each(offset: int) -> list[int]:
    return [offset + at for at in range(ELEMENTS - PARTITIONS, ELEMENTS)]


def test_very_many_offsets_are_committed_and_deleted_in_turns(tmp_path: Path) -> None:
    async def scene(alive: Living, wire: Wire) -> None:
        answer = await answered_in_turns(alive, apis.OFFSET_COMMIT, commit_of(5), 9)
        assert [(part.partition_index, part.error_code) for part in answer.topics[0].partitions] == [
            (number, 0) for number in NUMBERS
        ]
        assert await committed(wire) == last_of_each(5)

        partitions = [OffsetDeleteRequestPartition(partition_index=number) for number in NUMBERS]
        deletion = OffsetDeleteRequest(
            group_id="wide", topics=[OffsetDeleteRequestTopic(name="t", partitions=partitions)]
        )
        deleted = await answered_in_turns(alive, apis.OFFSET_DELETE, deletion)
        assert {part.error_code for part in deleted.topics[0].partitions} == {0}
        assert await committed(wire) == []

    on_a_topic(scene, tmp_path)


def test_messages_of_a_wide_request_are_freed_before_the_collector_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alive_then: list[int] = []
    go_on = turns._no_collections.end

    def end() -> None:
        alive_then.append(sum(type(one) is OffsetCommitResponsePartition for one in gc.get_objects()))
        go_on()

    async def scene(_: Living, wire: Wire) -> None:
        monkeypatch.setattr(turns._no_collections, "end", end)
        answer = await wire.ask(apis.OFFSET_COMMIT, 9, commit_of(5))
        assert len(answer.topics[0].partitions) == ELEMENTS

    on_a_topic(scene, tmp_path)
    assert alive_then[-1] == 0


def test_a_commit_whose_connection_is_closed_meanwhile_is_whole(tmp_path: Path) -> None:
    async def scene(alive: Living, wire: Wire) -> None:
        hasty = await alive.dial()
        hasty.send(apis.OFFSET_COMMIT, 9, commit_of(7))
        await hasty.writer.drain()
        while not await committed(wire):
            await asyncio.sleep(0)
        hasty.writer.transport.abort()
        while await committed(wire) != last_of_each(7):
            await asyncio.sleep(0.01)

    on_a_topic(scene, tmp_path)


def test_very_many_offsets_join_a_transaction_in_turns(tmp_path: Path) -> None:
    async def scene(alive: Living, wire: Wire) -> None:
        asked = InitProducerIdRequest(transactional_id="wide", transaction_timeout_ms=60_000)
        while (producer := await wire.ask(apis.INIT_PRODUCER_ID, 5, asked)).error_code:
            await asyncio.sleep(0.01)
        partitions = [
            TxnOffsetCommitRequestPartition(partition_index=number, committed_offset=at)
            for at, number in enumerate(NUMBERS)
        ]
        request = TxnOffsetCommitRequest(
            transactional_id="wide",
            group_id="wide",
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            topics=[
                TxnOffsetCommitRequestTopic(topic_id=alive.broker.cluster.image.topics["t"].id, partitions=partitions)
            ],
        )
        answer = await answered_in_turns(alive, apis.TXN_OFFSET_COMMIT, request)
        assert [part.error_code for part in answer.topics[0].partitions] == [0] * ELEMENTS
        end = EndTxnRequest(
            transactional_id="wide",
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            committed=True,
        )
        assert not (await wire.ask(apis.END_TXN, 5, end)).error_code
        while await committed(wire) != last_of_each(0):
            await asyncio.sleep(0.01)

    on_a_topic(scene, tmp_path)


def test_very_many_batches_are_appended_in_turns_and_in_order(tmp_path: Path) -> None:
    async def scene(alive: Living, wire: Wire) -> None:
        one = batch(b"x")
        request = produce(*(("t", number, one) for number in NUMBERS))
        answer = await answered_in_turns(alive, PRODUCE, request, 12)
        assert outcomes(answer) == [(number, 0, at // PARTITIONS) for at, number in enumerate(NUMBERS)]

    on_a_topic(scene, tmp_path)


def test_very_many_partitions_are_read_in_turns(tmp_path: Path) -> None:
    async def scene(alive: Living, wire: Wire) -> None:
        await wire.ask(PRODUCE, 12, produce(("t", 7, batch(b"x"))))
        partitions = [FetchPartition(partition=number, partition_max_bytes=1000) for number in NUMBERS]
        request = FetchRequest(max_wait_ms=0, topics=[FetchTopic(topic="t", partitions=partitions)])
        answer = await answered_in_turns(alive, FETCH, request, 12)
        read = answer.responses[0].partitions
        assert [(part.partition_index, part.error_code) for part in read] == [(number, 0) for number in NUMBERS]
        assert all(part.records for part in read if part.partition_index == 7)

    on_a_topic(scene, tmp_path)


def test_a_session_of_very_many_partitions_is_begun_and_gone_on_with_in_turns(tmp_path: Path) -> None:
    async def scene(alive: Living, wire: Wire) -> None:
        partitions = [FetchPartition(partition=number, partition_max_bytes=1000) for number in range(ELEMENTS)]
        topics = [FetchTopic(topic="t", partitions=partitions)]
        first = await answered_in_turns(alive, FETCH, FetchRequest(session_epoch=0, topics=topics), 12)
        told = first.responses[0].partitions
        assert [part.partition_index for part in told if not part.error_code] == list(range(PARTITIONS))
        assert len(told) == ELEMENTS

        await wire.ask(PRODUCE, 12, produce(("t", 7, batch(b"x"))))
        request = FetchRequest(session_id=first.session_id, session_epoch=1)
        news = await answered_in_turns(alive, FETCH, request, 12)
        assert [part.partition_index for part in news.responses[0].partitions if part.records] == [7]

        changed = FetchRequest(session_id=first.session_id, session_epoch=2, topics=topics)
        again = await answered_in_turns(alive, FETCH, changed, 12)
        assert again.session_id == first.session_id

    on_a_topic(scene, tmp_path)


@pytest.mark.parametrize("timeout_ms", [0, 30_000])
@pytest.mark.parametrize("api", [apis.CREATE_TOPICS, apis.DELETE_TOPICS, apis.CREATE_PARTITIONS])
def test_a_decision_about_very_many_topics_is_not_made_on_the_loop(
    api: Api, timeout_ms: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deciding: list[threading.Thread] = []
    decided = ChangeQueue.decided

    def noted(queue: ChangeQueue, elements: int, decide: Callable[[], object]) -> Awaitable[object]:
        def decide_here() -> object:
            deciding.append(threading.current_thread())
            return decide()

        return decided(queue, elements, decide_here)

    async def scene() -> None:
        async with asyncio.timeout(stretched(120)), living(tmp_path) as alive:
            monkeypatch.setattr(ChangeQueue, "decided", noted)
            request = request_of(api, "topics", sized(8_000, 20_000, 90_000))
            request.timeout_ms = timeout_ms
            await answered_in_turns(alive, api, request)

    asyncio.run(scene())
    assert deciding[0] is not threading.main_thread(), "the first decision is about all topics"


def test_waiting_frames_of_all_wide_requests_share_one_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[turns.Turns] = []

    def make(runtime: Runtime) -> turns.Turns:
        made.append(turns.Turns(runtime))
        return made[-1]

    monkeypatch.setattr("moldau.broker.Turns", make)
    monkeypatch.setattr(turns, "HELD_BYTES_MAX", 1)

    one, numbers = batch(b"x"), NUMBERS[:2000]
    partitions = [FetchPartition(partition=number, partition_max_bytes=1000) for number in numbers]
    requests: list[tuple[Api, int, Any]] = [
        (PRODUCE, 12, produce(*(("t", number, one) for number in numbers))),
        (FETCH, 12, FetchRequest(max_wait_ms=0, topics=[FetchTopic(topic="t", partitions=partitions)])),
        (apis.OFFSET_FETCH, 9, request_of(apis.OFFSET_FETCH, "groups", len(numbers))),
    ]

    async def scene(alive: Living, wire: Wire) -> None:
        for api, version, request in requests:
            (queue,) = made
            async with queue:  # whatever is wide waits
                first, others = await alive.dial(), [await alive.dial() for _ in requests]
                first.send(api, version, request)
                while not queue.held_bytes:
                    await asyncio.sleep(0)
                for other, (its_api, its_version, its_request) in zip(others, requests, strict=True):
                    other.send(its_api, its_version, its_request)
                for other in others:
                    assert await other.is_closed()
            await first.receive(api, version)
            assert not queue.held_bytes

    on_a_topic(scene, tmp_path)


def test_fetch_sessions_of_a_broker_hold_no_more_partitions_than_their_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    share = sized(10, 5, 1)
    monkeypatch.setattr(fetch_sessions, "HELD_MAX", HELD_MAX // share)
    each = 9_000 // share
    partitions = [FetchPartition(partition=number, partition_max_bytes=1000) for number in range(each)]
    full = FetchRequest(max_wait_ms=0, session_epoch=0, topics=[FetchTopic(topic="t", partitions=partitions)])

    async def scene(alive: Living, _: Wire) -> None:
        wires = [await alive.dial() for _ in range(20)]
        ids = [(await wire.ask(FETCH, 12, full)).session_id for wire in wires]
        going_on = 0
        for wire, session_id in zip(wires, ids, strict=True):
            if session_id:
                more = FetchRequest(max_wait_ms=0, session_id=session_id, session_epoch=1)
                going_on += (await wire.ask(FETCH, 12, more)).error_code == 0
        assert going_on == HELD_MAX // 9_000

    on_a_broker(scene, tmp_path)
