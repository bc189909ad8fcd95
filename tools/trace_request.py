"""Shows the way of one request through a broker: which functions of which files run, in order, and how often the way
changes the file.

usage: trace_request.py [--totals] [Produce] [Fetch] [OffsetCommit]      by default all three

A broker runs in this process and is asked over a socket. Each request (one partition, one record) is sent once so that
everything it needs is imported and open, and then again, traced: every call and return on the thread of the event loop
whose code is in src/moldau. Not followed are the functions that read and write one field, the compiled module and the
threads of the executor.

A stop is a stay in one file. "Changes of file" counts the calls (and resumed generators) whose file is another than
that of the call before; "with returns" counts the changes from stop to stop.
"""

import argparse
import asyncio
import socket
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

from moldau.broker import Broker
from moldau.config import broker_config
from moldau.protocol import codec
from moldau.protocol.apis import CREATE_TOPICS, FETCH, FIND_COORDINATOR, METADATA, OFFSET_COMMIT, PRODUCE, Api
from moldau.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from moldau.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from moldau.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.records.batch import encode_batch
from moldau.runtime import Runtime

SOURCE = f"{Path(__file__).resolve().parents[1] / 'src' / 'moldau'}/"
NOT_FOLLOWED = tuple(f"{SOURCE}{path}" for path in ("protocol/primitives.py", "records/columns/", "records/untyped.py"))
TOPIC, GROUP = "traced", "readers"
VERSIONS = {PRODUCE: 12, FETCH: 12, OFFSET_COMMIT: 9, CREATE_TOPICS: 7, FIND_COORDINATOR: 4, METADATA: 12}
"""The newest ones that name topics by name."""
TRACED = (PRODUCE, FETCH, OFFSET_COMMIT)
SETTINGS = {"listeners": "PLAINTEXT://127.0.0.1:0", "offsets.topic.num.partitions": "1"}
APART_S = 0.05
"""Between two requests, so that the loop no longer polls for the next one."""
TIMEOUT_S = 60.0
TRIES = 12
"""The shortest of as many traces is shown: a timer of the broker's may run during one of them."""


@dataclass
class Stop:
    """A stay in one file: the functions that begin or go on meanwhile, in order; none if a call only returns here."""

    file: str
    functions: list[str] = field(default_factory=list)


class Trace:
    """Records the stops of the thread it is switched on in."""

    def __init__(self) -> None:
        self.stops: list[Stop] = []

    def begin(self) -> None:
        sys.setprofile(self._event)

    def end(self) -> None:
        sys.setprofile(None)

    def _event(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and _is_followed(frame):
            self._arrive(frame).functions.append(frame.f_code.co_qualname.replace(".<locals>", ""))
        elif event == "return":
            caller = frame.f_back
            while caller is not None and not _is_followed(caller):
                caller = caller.f_back
            if caller is not None:
                self._arrive(caller)

    def _arrive(self, frame: FrameType) -> Stop:
        file = frame.f_code.co_filename.removeprefix(SOURCE)
        if not self.stops or self.stops[-1].file != file:
            self.stops.append(Stop(file))
        return self.stops[-1]

    @property
    def files(self) -> list[str]:
        return list(dict.fromkeys(stop.file for stop in self.stops))

    @property
    def functions(self) -> list[tuple[str, str]]:
        return list(dict.fromkeys((stop.file, name) for stop in self.stops for name in stop.functions))

    @property
    def changes(self) -> int:
        """By calls alone."""
        called = [stop.file for stop in self.stops if stop.functions]
        return sum(file != before for before, file in pairwise(called))


def _is_followed(frame: FrameType) -> bool:
    path = frame.f_code.co_filename
    return path.startswith(SOURCE) and not path.startswith(NOT_FOLLOWED)


def message(api: Api) -> Any:
    """The request of an API, for one partition."""
    if api is PRODUCE:
        records = bytes(encode_batch([(None, b"value", int(time.time() * 1000), [])]))
        data = TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(index=0, records=records)])
        return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[data])
    if api is FETCH:
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        return FetchRequest(max_wait_ms=500, min_bytes=1, topics=[FetchTopic(topic=TOPIC, partitions=[partition])])
    if api is OFFSET_COMMIT:
        offset = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
        return OffsetCommitRequest(group_id=GROUP, topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=[offset])])
    if api is CREATE_TOPICS:
        return CreateTopicsRequest(topics=[CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)])
    if api is FIND_COORDINATOR:
        return FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP])
    return MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])


class Client:
    """One connection, on the loop of the broker."""

    def __init__(self, port: int):
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setblocking(False)
        self._loop = asyncio.get_running_loop()

    async def ask(self, api: Api, around: Trace | None = None) -> Any:
        """The response; what the broker does meanwhile goes into the trace."""
        version = VERSIONS[api]
        frame = codec.write_request(api, version, 1, "tracer", message(api))
        await asyncio.sleep(APART_S)
        if around is not None:
            around.begin()
        try:
            await self._loop.sock_sendall(self._socket, frame)
            reply = await self._receive(4)
            reply = await self._receive(int.from_bytes(reply, "big"))
            await asyncio.sleep(0)
        finally:
            if around is not None:
                around.end()
        return codec.read_reply(api, version, reply)

    async def _receive(self, size: int) -> bytes:
        got = b""
        while len(got) < size:
            got += await self._loop.sock_recv(self._socket, size - len(got))
        return got

    def close(self) -> None:
        self._socket.close()


def error_of(api: Api, response: Any) -> int:
    """The error code of the one partition, topic or group of a response."""
    if api is PRODUCE:
        return int(response.responses[0].partition_responses[0].error_code)
    if api is FETCH:
        return int(response.responses[0].partitions[0].error_code)
    if api is OFFSET_COMMIT:
        return int(response.topics[0].partitions[0].error_code)
    return int((response.coordinators if api is FIND_COORDINATOR else response.topics)[0].error_code)


async def ask_until_fine(client: Client, api: Api) -> None:
    """Ask until the answer has no error: what was just created may still be loading."""
    async with asyncio.timeout(TIMEOUT_S):
        while error_of(api, await client.ask(api)):
            await asyncio.sleep(APART_S)


async def ask_traced(client: Client, api: Api) -> Trace:
    trace = Trace()
    if error := error_of(api, await client.ask(api, trace)):
        raise AssertionError(f"{api.name} was answered with error {error}")
    return trace


async def traced(apis: Sequence[Api] = TRACED) -> dict[Api, Trace]:
    """The trace of each request, in a broker that ends with this call."""
    traces: dict[Api, Trace] = {}
    with tempfile.TemporaryDirectory() as folder:
        config, _ = broker_config({**SETTINGS, "log.dirs": folder})
        broker = Broker(config, Runtime())
        await broker.start()
        client = Client(broker.port)
        try:
            for api in (CREATE_TOPICS, METADATA, FIND_COORDINATOR, PRODUCE):
                await ask_until_fine(client, api)
            for api in apis:
                await ask_until_fine(client, api)
                tries = [await ask_traced(client, api) for _ in range(TRIES)]
                traces[api] = min(tries, key=lambda trace: len(trace.stops))
        finally:
            client.close()
            await broker.stop()
    return traces


def shown(api: Api, trace: Trace, *, totals: bool) -> str:
    """The totals in one line, then a line for each stop."""
    counts = f"{len(trace.files)} files, {len(trace.functions)} functions, {trace.changes} changes of file"
    lines = [f"{api.name} version {VERSIONS[api]}: {counts}, {len(trace.stops) - 1} with returns"]
    if not totals:
        width = max(map(len, trace.files))
        lines += [
            f"{number:4} {stop.file:{width}} {', '.join(stop.functions) or '<-'}"
            for number, stop in enumerate(trace.stops)
        ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="trace a request's way through a broker")
    parser.add_argument("--totals", action="store_true", help="only files, functions and changes of each request")
    parser.add_argument("requests", nargs="*", metavar="REQUEST", help="Produce, Fetch or OffsetCommit (all three)")
    asked = parser.parse_args(arguments)
    by_name = {api.name.lower(): api for api in TRACED}
    if unknown := [name for name in asked.requests if name.lower() not in by_name]:
        parser.error(f"no request of that name is traced: {', '.join(unknown)}")
    apis = [by_name[name.lower()] for name in asked.requests] or TRACED
    for api, trace in asyncio.run(traced(apis)).items():
        print(shown(api, trace, totals=asked.totals))
    return 0


if __name__ == "__main__":
    sys.exit(main())
