"""Brokers that exist only to be asked by one consumer: a leader and a follower of partition `t-0`, whose log, leader
epoch and answers the test changes while the consumer runs. They speak the real protocol over TCP."""

import asyncio
import struct
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from moldau.errors import ErrorCode
from moldau.protocol.apis import API_VERSIONS, APIS, FETCH, LIST_OFFSETS, METADATA, OFFSET_FOR_LEADER_EPOCH
from moldau.protocol.codec import read_header, read_request, write_reply
from moldau.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from moldau.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from moldau.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from moldau.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from moldau.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from moldau.records.batch import encode_batch

TOPIC = "t"
OFFERED = (METADATA, FETCH, LIST_OFFSETS, OFFSET_FOR_LEADER_EPOCH)


class ScriptedCluster:
    """`log` has the epoch of each offset, of which those in `gone` were compacted away; broker 0 leads, broker 1
    follows in rack "near" with the first `follower_end` offsets. `fetched` lists (broker, offset) of each Fetch that
    was answered with a log, `compared` (epoch, epoch of the leader) of each OffsetForLeaderEpoch, of which the first
    `left_out` are answered with nothing. The metadata has the follower, unless `is_shown` is false: then only once the
    leader has sent a reader to it. The brokers know the `cluster_id`, if there is one, and their `ids`, and check which
    one a client means (KIP-1242): `meant`. `api_versions_max` is the newest version of ApiVersions that they know."""

    offered = OFFERED

    def __init__(self) -> None:
        self.log: list[int] = []
        self.leader_epoch = 0
        self.topic_id = uuid.UUID(int=0)
        self.gone: set[int] = set()
        self.follower_end = 0
        self.knows_epochs = True
        self.is_shown = True
        self.fetched: list[tuple[int, int]] = []
        self.compared: list[tuple[int, int]] = []
        self.left_out = 0
        self.racks: set[str] = set()
        self.cluster_id: str | None = None
        self.ids = [0, 1]
        self.meant: list[tuple[str | None, int]] = []
        self.api_versions_max = API_VERSIONS.high
        self._ports: list[int] = []

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self._ports[0]}"

    async def serve(self, broker: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                frame = await reader.readexactly(size)
                header = read_header(frame)
                api = APIS[header.key]
                if api is API_VERSIONS and header.version > self.api_versions_max:
                    own = ApiVersion(api_key=api.key, max_version=self.api_versions_max)
                    refused = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[own])
                    writer.write(write_reply(api, 0, header.correlation_id, refused))
                    continue
                request = read_request(api, header.version, frame, header.body)
                reply = await self._answer(broker, api.key, request)
                writer.write(write_reply(api, header.version, header.correlation_id, reply))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _answer(self, broker: int, key: int, request: Any) -> Any:
        if key == API_VERSIONS.key:
            self.meant.append((request.cluster_id, request.node_id))
            if request.cluster_id is not None and self.meant[-1] != (self.cluster_id, self.ids[broker]):
                return ApiVersionsResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
            offered = [ApiVersion(api_key=a.key, min_version=a.low, max_version=a.high) for a in self.offered]
            return ApiVersionsResponse(api_keys=offered)
        if key == METADATA.key:
            return self._metadata()
        if key == LIST_OFFSETS.key:
            offset = 0 if request.topics[0].partitions[0].timestamp == -2 else len(self.log)
            found = ListOffsetsPartitionResponse(partition_index=0, offset=offset)
            return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name=TOPIC, partitions=[found])])
        if key == OFFSET_FOR_LEADER_EPOCH.key:
            return self._epoch_end(request.topics[0].partitions[0])
        return await self._fetch(broker, request)

    def _metadata(self) -> MetadataResponse:
        partition = MetadataResponsePartition(
            partition_index=0,
            leader_id=self.ids[0],
            leader_epoch=self.leader_epoch,
            replica_nodes=self.ids,
            isr_nodes=self.ids,
        )
        brokers = [
            MetadataResponseBroker(node_id=self.ids[number], host="127.0.0.1", port=port, rack=rack)
            for number, (port, rack) in enumerate(zip(self._ports, ("far", "near"), strict=True))
            if self.is_shown or number == 0
        ]
        topic = MetadataResponseTopic(name=TOPIC, topic_id=self.topic_id, partitions=[partition])
        return MetadataResponse(brokers=brokers, topics=[topic], controller_id=self.ids[0], cluster_id=self.cluster_id)

    def _epoch_end(self, asked: OffsetForLeaderPartition) -> OffsetForLeaderEpochResponse:
        self.compared.append((asked.leader_epoch, asked.current_leader_epoch))
        if len(self.compared) <= self.left_out:
            return OffsetForLeaderEpochResponse()
        answer, epoch = EpochEndOffset(partition=0), asked.leader_epoch
        if code := self._leader_error(asked.current_leader_epoch):
            answer.error_code = code
        elif self.knows_epochs and epoch <= self.leader_epoch:
            end = sum(1 for one in self.log if one <= epoch)
            answer = EpochEndOffset(partition=0, leader_epoch=self.log[end - 1] if end else epoch, end_offset=end)
        return OffsetForLeaderEpochResponse(topics=[OffsetForLeaderTopicResult(topic=TOPIC, partitions=[answer])])

    def _leader_error(self, epoch: int) -> ErrorCode:
        """The answer to a request whose client believes that the leader leads in this epoch."""
        if epoch in (-1, self.leader_epoch):
            return ErrorCode.NONE
        return ErrorCode.FENCED_LEADER_EPOCH if epoch < self.leader_epoch else ErrorCode.UNKNOWN_LEADER_EPOCH

    async def _fetch(self, broker: int, request: FetchRequest) -> FetchResponse:
        self.racks.add(request.rack_id)
        asked = request.topics[0].partitions[0]
        end = len(self.log) if broker == 0 else self.follower_end
        data = PartitionData(partition_index=0, high_watermark=end, last_stable_offset=end)
        if code := self._leader_error(asked.current_leader_epoch):
            data.error_code = code
        elif broker == 0 and request.rack_id == "near" and asked.fetch_offset < self.follower_end:
            data.preferred_read_replica = 1
            self.is_shown = True
        elif asked.fetch_offset > end:
            data.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
        else:
            self.fetched.append((broker, asked.fetch_offset))
            records = bytearray()
            for offset in sorted(set(range(asked.fetch_offset, end)) - self.gone):
                row = (None, b"%d" % offset, 0, ())
                records += encode_batch([row], base_offset=offset, leader_epoch=self.log[offset])
            data.records = bytes(records)
            if not records:
                await asyncio.sleep(0.02)
        return FetchResponse(responses=[FetchableTopicResponse(topic=TOPIC, partitions=[data])])

    @asynccontextmanager
    async def running(self) -> "AsyncIterator[ScriptedCluster]":
        servers = [
            await asyncio.start_server(lambda r, w, number=number: self.serve(number, r, w), "127.0.0.1", 0)
            for number in range(2)
        ]
        self._ports = [server.sockets[0].getsockname()[1] for server in servers]
        try:
            yield self
        finally:
            for server in servers:
                server.close()
