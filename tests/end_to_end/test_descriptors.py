"""Fetches of more partitions than the broker may open files: nothing fails, and all records come."""

import contextlib
import os
import time
from collections.abc import Iterator
from typing import Any

import pytest

from harness.brokers import Broker
from moldau.protocol import codec
from moldau.protocol.apis import FETCH, PRODUCE
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.records.batch import encode_batch
from tests.end_to_end.raw import Raw

PARTITIONS = 1200
DESCRIPTORS = 1024
RECORD_BYTES = 8 << 10


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """With 1,200 partitions of one record each, and a limit of 1,024 descriptors."""
    broker = Broker(tmp_path_factory.mktemp("wide"), descriptors=DESCRIPTORS)
    broker.start()
    try:
        with Raw(broker.address, timeout_s=100) as raw:
            raw.create_topic("wide", PARTITIONS)
            fill(raw, range(PARTITIONS))
        yield broker
        broker.stop()
    finally:
        broker.kill()


def a_batch() -> bytes:
    return bytes(encode_batch([(b"k", os.urandom(RECORD_BYTES), int(time.time() * 1000), [])]))


def fill(raw: Raw, partitions: range) -> None:
    data = [PartitionProduceData(index=number, records=a_batch()) for number in partitions]
    topics = [TopicProduceData(name="wide", partition_data=data)]
    answer = raw.ask(PRODUCE, 9, ProduceRequest(acks=1, timeout_ms=30_000, topic_data=topics))
    assert {part.error_code for part in answer.responses[0].partition_responses} == {0}


def asking(offsets: dict[int, int], **fields: Any) -> FetchRequest:
    """A Fetch of these partitions at these offsets, in this order."""
    parts = [
        FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=1 << 20)
        for number, offset in offsets.items()
    ]
    limits = {"max_wait_ms": 10_000, "min_bytes": 1, "max_bytes": 1 << 30, **fields}
    return FetchRequest(topics=[FetchTopic(topic="wide", partitions=parts)] if parts else [], **limits)


def parts_of(answer: Any) -> list[Any]:
    return [part for topic in answer.responses for part in topic.partitions]


def descriptors_of(broker: Broker) -> int:
    """The number of its open files and sockets; 0 if the system does not report it."""
    return 0 if not os.path.exists("/proc/self/fd") else len(os.listdir(f"/proc/{broker.pid}/fd"))


def read_all(raw: Raw, offsets: dict[int, int]) -> int:
    """Read a record of each partition as clients do: those that had some go behind the others. Returns the rounds."""
    rounds = 0
    wanted = len(offsets)
    got: set[int] = set()
    while len(got) < wanted:
        rounds += 1
        with_records = 0
        for part in parts_of(raw.ask(FETCH, 12, asking(offsets))):
            assert part.error_code == 0, part
            if part.records:
                with_records += 1
                got.add(part.partition_index)
                offsets[part.partition_index] = offsets.pop(part.partition_index) + 1
        assert with_records, "an answer without any record, though there are some"
    return rounds


def unread(broker: Broker, opened: contextlib.ExitStack, count: int) -> None:
    """Let clients ask for all partitions and not read what they get."""
    for _ in range(count):
        raw = opened.enter_context(Raw(broker.address))
        request = asking(dict.fromkeys(range(PARTITIONS), 0))
        raw.socket.sendall(codec.write_request(FETCH, 12, 1, "raw", request))
        raw.socket.recv(4)  # the answer has begun


def test_one_fetch_of_more_partitions_than_descriptors_is_answered_in_parts(broker: Broker) -> None:
    with Raw(broker.address) as raw:
        rounds = read_all(raw, dict.fromkeys(range(PARTITIONS), 0))
        assert 1 < rounds < 100
        fill(raw, range(1))
    assert "offline" not in broker.log()


def test_a_session_gives_every_partition_its_turn(broker: Broker) -> None:
    got: set[int] = set()
    with Raw(broker.address) as raw:
        answer = raw.ask(FETCH, 12, asking(dict.fromkeys(range(PARTITIONS), 0), session_id=0, session_epoch=0))
        assert answer.session_id
        for epoch in range(1, 100):
            got.update(part.partition_index for part in parts_of(answer) if part.records)
            if len(got) == PARTITIONS:
                break
            answer = raw.ask(FETCH, 12, asking({}, session_id=answer.session_id, session_epoch=epoch))
    assert len(got) == PARTITIONS


def test_answers_that_nobody_reads_leave_descriptors_for_all_others(broker: Broker) -> None:
    with contextlib.ExitStack() as opened:
        unread(broker, opened, 20)
        assert descriptors_of(broker) < DESCRIPTORS - 200
        with Raw(broker.address) as raw:
            offsets = dict.fromkeys(range(0, PARTITIONS, 20), 0)
            read_all(raw, offsets)
            fill(raw, range(PARTITIONS))
            raw.create_topic("beside", 50)
            assert raw.produce("beside", a_batch(), partition=49)[0] == 0
        assert descriptors_of(broker) < DESCRIPTORS - 200
    assert "offline" not in broker.log()


def test_a_client_that_leaves_without_reading_gives_its_descriptors_back(broker: Broker) -> None:
    for _ in range(20):
        with contextlib.ExitStack() as opened:
            unread(broker, opened, 3)
    with Raw(broker.address) as raw:
        assert read_all(raw, dict.fromkeys(range(PARTITIONS), 0)) < 100
    assert "offline" not in broker.log()
