"""A blocking connection that sends requests of our tables, or any bytes at all."""

import socket
import ssl
import struct
from typing import Any

from harness.patience import stretched
from moldau.protocol import codec
from moldau.protocol.apis import CREATE_TOPICS, FETCH, LIST_OFFSETS, PRODUCE, Api
from moldau.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from moldau.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData


class Raw:
    """`context`: over TLS."""

    def __init__(self, address: str, timeout_s: float = 30, context: ssl.SSLContext | None = None):
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), stretched(timeout_s))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_hostname=host)

    def __enter__(self) -> "Raw":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def ask(self, api: Api, version: int, request: Any) -> Any:
        self.socket.sendall(codec.write_request(api, version, 1, "raw", request))
        return codec.read_reply(api, version, self.receive())

    def receive(self) -> bytes:
        """One frame. Raises `EOFError` when the broker closes."""
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        data = bytearray(size)
        view, got = memoryview(data), 0
        while got < size:
            count = self.socket.recv_into(view[got:])
            if not count:
                raise EOFError("the broker closed the connection")
            got += count
        return bytes(data)

    def is_closed(self) -> bool:
        """Whether the broker closes the connection, waited for."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def create_topic(self, name: str, partitions: int = 1, **configs: str) -> None:
        settings = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=settings)
        reply = self.ask(CREATE_TOPICS, 5, CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
        assert reply.topics[0].error_code == 0, reply

    def produce(self, topic: str, records: bytes, partition: int = 0, acks: int = 1) -> tuple[int, int]:
        """(error code, base offset)."""
        data = [PartitionProduceData(index=partition, records=records)]
        request = ProduceRequest(
            acks=acks, timeout_ms=10_000, topic_data=[TopicProduceData(name=topic, partition_data=data)]
        )
        answer = self.ask(PRODUCE, 9, request).responses[0].partition_responses[0]
        return answer.error_code, answer.base_offset

    def fetch(self, topic: str, offset: int, max_bytes: int = 1 << 20, max_wait_ms: int = 500) -> Any:
        """The answer for partition 0: error_code, high_watermark, records."""
        part = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
        request = FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=max_bytes,
            topics=[FetchTopic(topic=topic, partitions=[part])],
        )
        return self.ask(FETCH, 12, request).responses[0].partitions[0]

    def offset_at(self, topic: str, timestamp: int) -> int:
        part = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[part])])
        answer = self.ask(LIST_OFFSETS, 7, request).topics[0].partitions[0]
        assert answer.error_code == 0, answer
        offset: int = answer.offset
        return offset
