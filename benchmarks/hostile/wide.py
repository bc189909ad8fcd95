"""The widest legal requests of every API: how long one of them holds the loop, and how long everybody else waits.

Each request is sent once, on a connection of its own, while another connection asks for ApiVersions all the time. The
figures are the longest turn of the loop, in processor time of its thread, and the longest that the other waited for an
answer. Requests are made from the tables of their messages: long arrays whose elements are all different. For those
where it matters what exists, there is a topic of many partitions.
"""

import contextlib
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import frames
from benchmarks.broker_load import Case, Wire
from harness.brokers import Broker
from harness.wide_requests import request_of, wide_requests
from moldau.protocol import apis, codec
from moldau.protocol.apis import Api
from moldau.protocol.messages.api_versions import ApiVersionsRequest
from moldau.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.messages.list_groups import ListGroupsRequest
from moldau.protocol.messages.metadata import MetadataRequest
from moldau.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from moldau.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from moldau.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.records.batch import Row, encode_batch

ELEMENTS = 90_000
PARTITIONS = 1000
PRODUCERS, GROUPS = 300_000, 100_000
AT_ONCE = 500
PAUSE_S = 0.001

Asked = tuple[str, Api, int, Any]
"""A request's name, API, version and message."""


def everywhere(count: int) -> list[int]:
    """So many partitions of the topic, each many times."""
    return [number % PARTITIONS for number in range(count)]


def offsets(group: str, numbers: list[int], topic: str = "wide") -> OffsetCommitRequest:
    partitions = [OffsetCommitRequestPartition(partition_index=number, committed_offset=1) for number in numbers]
    return OffsetCommitRequest(group_id=group, topics=[OffsetCommitRequestTopic(name=topic, partitions=partitions)])


def batches(topic: str, numbers: list[int], records: list[bytes]) -> ProduceRequest:
    parts = [PartitionProduceData(index=n, records=one) for n, one in zip(numbers, records, strict=True)]
    return ProduceRequest(acks=1, timeout_ms=30_000, topic_data=[TopicProduceData(name=topic, partition_data=parts)])


def known() -> Iterator[Asked]:
    """Requests about what exists."""
    numbers = everywhere(ELEMENTS)
    yield "Produce", apis.PRODUCE, 9, batches("wide", numbers, [frames.batch(1, 10)] * ELEMENTS)
    parts = [FetchPartition(partition=number, partition_max_bytes=1) for number in numbers]
    read = FetchRequest(max_wait_ms=0, topics=[FetchTopic(topic="wide", partitions=parts)])
    yield "Fetch", apis.FETCH, 12, read
    yield "OffsetCommit", apis.OFFSET_COMMIT, 9, offsets("wide", numbers)
    group = OffsetFetchRequestGroup(group_id="wide", topics=None)
    yield "OffsetFetch of all, 90 times", apis.OFFSET_FETCH, 9, OffsetFetchRequest(groups=[group] * 90)
    yield "Metadata of all topics", apis.METADATA, 12, MetadataRequest(topics=None)


def retained() -> Iterator[Asked]:
    """Small requests whose answers are large."""
    asked = DescribeProducersRequest(topics=[TopicRequest(name="producers", partition_indexes=[0])])
    yield f"DescribeProducers of {PRODUCERS:,} ids", apis.DESCRIBE_PRODUCERS, 0, asked
    yield f"ListGroups of {GROUPS:,} groups", apis.LIST_GROUPS, 5, ListGroupsRequest()


def generated() -> Iterator[Asked]:
    for api, array in wide_requests():
        yield f"{api.name} ({array})", api, api.high, request_of(api, array, ELEMENTS)


class Cost(NamedTuple):
    """What requests cost the broker, as `probed` says it, and the longest that another client waited. `reply` is the
    last one, None if the broker closed the connection."""

    longest_ms: float
    processor_ms: float
    collection_ms: float
    waited_ms: float
    reply: bytes | None


class Bench:
    """A broker, and the socket that tells its longest turn."""

    def __init__(self, port: int, probe: Path):
        self._port = port
        self._probe = probe

    def held_ms(self) -> tuple[float, ...]:
        """The longest turn since the last call, the processor time of all work, and the longest collection."""
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(str(self._probe))
            return tuple(map(float, probe.makefile().readline().split()))

    def prepare(self) -> None:
        self.all([(apis.CREATE_TOPICS, frames.CREATE_VERSION, frames.create("wide", PARTITIONS))])
        self.all([(apis.CREATE_TOPICS, frames.CREATE_VERSION, frames.create("producers", 1))])
        for kind in (0, 1):
            asked = FindCoordinatorRequest(key_type=kind, coordinator_keys=["wide"])
            self.all([written(apis.FIND_COORDINATOR, 6, asked)])

    def fill(self) -> None:
        now_ms = int(time.time() * 1000)
        one = [Row(None, b"x", now_ms)]
        for first in range(0, PRODUCERS, AT_ONCE):
            ids = range(first, first + AT_ONCE)
            made = [bytes(encode_batch(one, producer_id=n, producer_epoch=0, base_sequence=0)) for n in ids]
            self.all([written(apis.PRODUCE, 9, batches("producers", [0] * AT_ONCE, made))])
        for first in range(0, GROUPS, AT_ONCE):
            groups = range(first, first + AT_ONCE)
            self.all([written(apis.OFFSET_COMMIT, 9, offsets(f"group-{n}", [0])) for n in groups])

    def all(self, requests: list[tuple[Api, int, bytes]]) -> None:
        """Send all of them, and read all replies."""
        with Wire(self._port) as wire:
            wire.send(b"".join(frame for _, _, frame in requests))
            for _ in requests:
                wire.reply()

    def measured(self, asked: Asked) -> Iterator[Case]:
        name, api, version, message = asked
        cost = self.cost([codec.write_request(api, version, 1, frames.CLIENT, message)])
        yield Case(f"{name}: longest turn", cost.longest_ms, "ms")
        yield Case(f"{name}: longest wait of others", cost.waited_ms, "ms")

    def cost(self, requests: list[bytes]) -> Cost:
        """Send these requests, each when the one before is answered, while another client asks all the time."""
        waited: list[float] = []
        over = threading.Event()
        other = threading.Thread(target=_ask_all_the_time, args=(self._port, waited, over))
        reply = None
        self.held_ms()
        other.start()
        try:
            with Wire(self._port) as wire, contextlib.suppress(EOFError):
                for frame in requests:
                    wire.send(frame)
                    reply = bytes(wire.reply())
            longest_ms, processor_ms, collection_ms = self.held_ms()
        finally:
            over.set()
            other.join()
        return Cost(longest_ms, processor_ms, collection_ms, max(waited) * 1000, reply)


def written(api: Api, version: int, message: Any) -> tuple[Api, int, bytes]:
    return api, version, codec.write_request(api, version, 1, frames.CLIENT, message)


def _ask_all_the_time(port: int, waited: list[float], over: threading.Event) -> None:
    frame = codec.write_request(apis.API_VERSIONS, 0, 1, frames.CLIENT, ApiVersionsRequest())
    with Wire(port) as wire:
        while not over.is_set():
            began = time.perf_counter()
            wire.send(frame)
            wire.reply()
            waited.append(time.perf_counter() - began)
            time.sleep(PAUSE_S)


def cases(start: Callable[..., AbstractContextManager[Broker]]) -> Iterator[Case]:
    with tempfile.TemporaryDirectory() as folder:
        probe = Path(folder) / "probe"
        program, environment = ("benchmarks.hostile.probed",), {"MOLDAU_PROBE": str(probe)}
        with start(program=program, environment=environment) as broker:
            bench = Bench(int(broker.address.rpartition(":")[2]), probe)
            bench.prepare()
            for asked in (*known(), *generated()):
                yield from bench.measured(asked)
            bench.fill()
            for asked in retained():
                yield from bench.measured(asked)
