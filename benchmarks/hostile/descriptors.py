"""What a Fetch of 1,200 partitions costs a broker that may open 1,024 files and sockets, and what it costs others when
five clients ask for that and read nothing of it."""

import contextlib
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from benchmarks import frames
from benchmarks.broker_load import Case, Wire, new_topic
from harness.brokers import Broker
from moldau.protocol import codec
from moldau.protocol.apis import FETCH, PRODUCE
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

PARTITIONS = 1200
DESCRIPTORS = 1024
UNREAD = 5
ROUNDS = 200


def fill(wire: Wire, topic: str) -> None:
    """A batch of 8 KB into each partition."""
    records = frames.batch(40, 200)
    data = [PartitionProduceData(index=number, records=records) for number in range(PARTITIONS)]
    topics = [TopicProduceData(name=topic, partition_data=data)]
    request = ProduceRequest(acks=1, timeout_ms=30_000, topic_data=topics)
    answer = wire.ask(PRODUCE, 9, codec.write_request(PRODUCE, 9, 1, "bench", request))
    errors = {part.error_code for part in answer.responses[0].partition_responses}
    assert errors == {0}, f"Produce answers {errors}"


def asking(topic: str, partitions: list[int]) -> bytes:
    parts = [FetchPartition(partition=one, fetch_offset=0, partition_max_bytes=1 << 20) for one in partitions]
    topics = [FetchTopic(topic=topic, partitions=parts)]
    request = FetchRequest(max_wait_ms=10_000, min_bytes=1, max_bytes=1 << 30, topics=topics)
    return codec.write_request(FETCH, 12, 1, "bench", request)


def sweep(wire: Wire, topic: str) -> int:
    """Read the batch of every partition; returns how many requests it took."""
    left, requests = list(range(PARTITIONS)), 0
    while left:
        requests += 1
        parts = wire.ask(FETCH, 12, asking(topic, left)).responses[0].partitions
        errors = {part.error_code for part in parts}
        assert errors == {0}, f"Fetch answers {errors}"
        left = [part.partition_index for part in parts if not part.records]
    return requests


def cases(start: Callable[..., AbstractContextManager[Broker]]) -> Iterator[Case]:
    with start(descriptors=DESCRIPTORS) as broker, contextlib.ExitStack() as stack:
        port = int(broker.address.rpartition(":")[2])
        wire = stack.enter_context(Wire(port))
        topic = new_topic(port, PARTITIONS)
        fill(wire, topic)
        began = time.perf_counter()
        requests = sweep(wire, topic)
        yield Case("to read 1,200 partitions once", (time.perf_counter() - began) * 1000, "ms")
        yield Case("requests for that", requests, "requests")
        for _ in range(UNREAD):
            stack.enter_context(Wire(port)).send(asking(topic, list(range(PARTITIONS))))
        took_ms = []
        for number in range(ROUNDS):
            began = time.perf_counter()
            wire.ask(FETCH, 12, asking(topic, [number]))
            took_ms.append((time.perf_counter() - began) * 1000)
        yield Case("p50 of one partition beside 5 answers nobody reads", statistics.median(took_ms), "ms")
        yield Case("descriptors in use meanwhile", len(os.listdir(f"/proc/{broker.pid}/fd")), "descriptors")
