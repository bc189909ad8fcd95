"""What a transaction costs: with 1 and with 100 records in it, by one producer and by several at once.

usage: python -m benchmarks.transactions [--quick] [--alone]

Both brokers run on this machine and are measured in turns, window by window. A producer asks as a client does: in the
first version of the protocol it adds the partition, writes and ends; in the second (KIP-890) it writes and ends. A
transaction's time is from its first request to the answer to its end; that a partition still waits for the marker of
the transaction before is part of it, and asked again at once. Every error code is read, and all records must be there
for a reader of committed ones.
"""

import argparse
import contextlib
import shutil
import statistics
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks import frames
from benchmarks.broker_load import Case, Wire, drop, new_topic
from benchmarks.side_by_side import AS_SHIPPED, KAFKA_SETTINGS, moldau, ratio
from harness import apache_kafka
from harness.apache_kafka import FOR_KAFKA
from moldau.error_codes import error_of
from moldau.errors import ErrorCode
from moldau.protocol import codec
from moldau.protocol.apis import (
    ADD_PARTITIONS_TO_TXN,
    END_TXN,
    FIND_COORDINATOR,
    INIT_PRODUCER_ID,
    LIST_OFFSETS,
    PRODUCE,
    Api,
)
from moldau.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from moldau.protocol.messages.end_txn import EndTxnRequest
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.messages.init_producer_id import InitProducerIdRequest
from moldau.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.records.batch import TRANSACTIONAL_BIT, encode_batch

VALUE_BYTES = 200
WINDOW_S = 1.0
ROUNDS = 7
TIMEOUT_MS = 60_000
ADD_VERSION = 3
TRANSACTION = 1
"""A kind of coordinator."""
NOT_YET = (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_ENOUGH_REPLICAS)
SETTLED_S_MAX = 30.0


class Shape(NamedTuple):
    """`version` is that of the transaction protocol."""

    version: int
    records: int
    producers: int

    def __str__(self) -> str:
        many = f", {self.producers} producers at once" if self.producers > 1 else ""
        return f"{self.records} record{'s'[: self.records > 1]}, version {self.version}{many}"


SHAPES = [Shape(version, records, producers) for producers in (1, 8) for version in (1, 2) for records in (1, 100)]


class Producer:
    """One transactional producer on a connection of its own; each has a partition."""

    def __init__(self, port: int, topic: str, partition: int, shape: Shape):
        self.wire = Wire(port)
        self._topic, self._partition, self._shape = topic, partition, shape
        self._transactional_id = f"bench-{uuid.uuid4().hex[:8]}"
        self._produce_version, self._end_version = (12, 5) if shape.version == 2 else (9, 3)
        self._next_sequence = 0
        init = InitProducerIdRequest(transactional_id=self._transactional_id, transaction_timeout_ms=TIMEOUT_MS)
        find = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=[self._transactional_id])
        until = time.monotonic() + SETTLED_S_MAX
        while (answer := self._ask(INIT_PRODUCER_ID, 4, init)).error_code:
            assert time.monotonic() < until, answer
            self._ask(FIND_COORDINATOR, 4, find)
            time.sleep(0.05)
        self._id, self._epoch = answer.producer_id, answer.producer_epoch

    def prepare(self) -> list[tuple[Api, int, bytes]]:
        """The requests of the next transaction, ready to be sent."""
        asked: list[tuple[Api, int, Any]] = []
        if self._shape.version == 1:
            added = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self._transactional_id,
                v3_and_below_producer_id=self._id,
                v3_and_below_producer_epoch=self._epoch,
                v3_and_below_topics=[AddPartitionsToTxnTopic(name=self._topic, partitions=[self._partition])],
            )
            asked.append((ADD_PARTITIONS_TO_TXN, ADD_VERSION, added))
        batch = encode_batch(
            [(None, b"x" * VALUE_BYTES, int(time.time() * 1000), [])] * self._shape.records,
            attributes=TRANSACTIONAL_BIT,
            producer_id=self._id,
            producer_epoch=self._epoch,
            base_sequence=self._next_sequence,
        )
        data = [PartitionProduceData(index=self._partition, records=bytes(batch))]
        produced = ProduceRequest(
            transactional_id=self._transactional_id,
            acks=-1,
            timeout_ms=TIMEOUT_MS,
            topic_data=[TopicProduceData(name=self._topic, partition_data=data)],
        )
        asked.append((PRODUCE, self._produce_version, produced))
        ended = EndTxnRequest(
            transactional_id=self._transactional_id, producer_id=self._id, producer_epoch=self._epoch, committed=True
        )
        asked.append((END_TXN, self._end_version, ended))
        return [
            (api, version, codec.write_request(api, version, 1, frames.CLIENT, request))
            for api, version, request in asked
        ]

    def took(self, answer: Any) -> None:
        """Go on from the answer to EndTxn."""
        if self._shape.version == 2:
            self._id, self._epoch, self._next_sequence = answer.producer_id, answer.producer_epoch, 0
        else:
            self._next_sequence += self._shape.records

    def _ask(self, api: Api, version: int, request: Any) -> Any:
        return self.wire.ask(api, version, codec.write_request(api, version, 1, frames.CLIENT, request))


def error_in(api: Api, answer: Any) -> ErrorCode:
    if api is PRODUCE:
        return error_of(answer.responses[0].partition_responses[0].error_code)
    if api is ADD_PARTITIONS_TO_TXN:
        return error_of(answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)
    return error_of(answer.error_code)


class Load:
    """Producers at work on one broker, window after window."""

    def __init__(self, port: int, shape: Shape):
        self._port, self._shape = port, shape
        self._topic = new_topic(port, shape.producers)
        self._producers = [Producer(port, self._topic, number, shape) for number in range(shape.producers)]
        self._committed = 0
        self.times_s: list[float] = []
        self.rates: list[float] = []

    def window(self, seconds: float, counts: bool) -> None:
        """Transactions for so long, by all producers side by side."""
        times_s: list[float] = []
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            waiting = [producer.prepare() for producer in self._producers]
            began = time.perf_counter()
            for step in range(len(waiting[0])):
                self._step([requests[step] for requests in waiting])
            times_s.append(time.perf_counter() - began)
            self._committed += len(waiting)
        if counts:
            self.times_s += times_s
            self.rates.append(len(times_s) * len(self._producers) / sum(times_s))

    def _step(self, requests: list[tuple[Api, int, bytes]]) -> None:
        """The same request of every producer, each again until its partition is ready for it."""
        for producer, (_, _, frame) in zip(self._producers, requests, strict=True):
            producer.wire.send(frame)
        for producer, (api, version, frame) in zip(self._producers, requests, strict=True):
            answer = codec.read_reply(api, version, bytes(producer.wire.reply()))
            while (error := error_in(api, answer)) in NOT_YET:
                answer = producer.wire.ask(api, version, frame)
            assert not error, f"{api.name}: {error.name}"
            if api is END_TXN:
                producer.took(answer)

    def close(self) -> None:
        """All that was committed can be read."""
        markers = self._committed
        wanted = self._shape.producers + self._committed * self._shape.records + markers
        request = frames.ends(self._topic, range(self._shape.producers))
        until = time.monotonic() + SETTLED_S_MAX
        with Wire(self._port) as wire:
            while True:
                answer = wire.ask(LIST_OFFSETS, frames.LIST_VERSION, request)
                there = sum(part.offset for part in answer.topics[0].partitions)
                if there == wanted:
                    break
                assert time.monotonic() < until, f"{there} records and markers are there, not {wanted}"
        for producer in self._producers:
            producer.wire.__exit__()
        drop(self._port, self._topic)


def cases_of(load: Load, shape: Shape) -> Iterator[Case]:
    times_ms = sorted(1e3 * seconds for seconds in load.times_s)
    if shape.producers == 1:
        yield Case(f"{shape}, median", statistics.median(times_ms), "ms")
        yield Case(f"{shape}, p99", times_ms[int(len(times_ms) * 0.99)], "ms")
    yield Case(f"{shape}, rate", statistics.median(load.rates), "/s")


def compared(ports: Sequence[int], shape: Shape, rounds: int) -> list[tuple[Case, ...]]:
    """The cases of one shape, each with every broker's figure."""
    loads = [Load(port, shape) for port in ports]
    for number in range(rounds + 1):
        for load in loads:
            load.window(WINDOW_S, counts=number > 0)
    for load in loads:
        load.close()
    return list(zip(*(cases_of(load, shape) for load in loads), strict=True))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.transactions", description="What a transaction costs.")
    parser.add_argument("--quick", action="store_true", help="short: to see that it runs")
    parser.add_argument("--alone", action="store_true", help="do not compare with Apache Kafka")
    asked = parser.parse_args(arguments)
    table = Table("case", "Moldau", "Apache Kafka", "times better", title="Transactions")
    for number in range(1, 4):
        table.columns[number].justify = "right"
    with contextlib.ExitStack() as stack:
        ports = [stack.enter_context(moldau())]
        if not asked.alone and shutil.which("mvn") and shutil.which("java"):
            kafka = apache_kafka.running({**KAFKA_SETTINGS, **FOR_KAFKA}, AS_SHIPPED)
            ports.append(stack.enter_context(kafka).port)
        for shape in SHAPES:
            for ours, *others in compared(ports, shape, 1 if asked.quick else ROUNDS):
                theirs = others[0] if others else None
                shown = [f"{case.value:,.3g} {case.unit}" for case in (ours, theirs) if case]
                table.add_row(ours.name, *shown, *[""] * (2 - len(shown)), ratio(ours, theirs))
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
