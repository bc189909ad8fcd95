"""Requests built once and sent many times, so that the broker is what is measured and not the loader."""

import time
from collections.abc import Sequence

from moldau.protocol import codec
from moldau.protocol.apis import CREATE_TOPICS, DELETE_TOPICS, FETCH, LIST_OFFSETS, PRODUCE
from moldau.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from moldau.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.records.batch import encode_batch

CLIENT = "benchmark"
TIMEOUT_MS = 30_000
PRODUCE_VERSION, FETCH_VERSION, LIST_VERSION, CREATE_VERSION, DELETE_VERSION = 7, 11, 3, 4, 3
LATEST = -1


def batch(records: int, value_bytes: int) -> bytes:
    now_ms = int(time.time() * 1000)
    value = b"x" * value_bytes
    return bytes(encode_batch([(None, value, now_ms, [])] * records))


def produce(topic: str, partition: int, records: bytes, acks: int = 1) -> bytes:
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=records)])
    request = ProduceRequest(acks=acks, timeout_ms=TIMEOUT_MS, topic_data=[data])
    return codec.write_request(PRODUCE, PRODUCE_VERSION, 1, CLIENT, request)


def fetch(topic: str, offset: int, max_bytes: int) -> bytes:
    part = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
    request = FetchRequest(
        max_wait_ms=500, min_bytes=1, max_bytes=max_bytes, topics=[FetchTopic(topic=topic, partitions=[part])]
    )
    return codec.write_request(FETCH, FETCH_VERSION, 1, CLIENT, request)


def create(topic: str, partitions: int, replicas: int = 1) -> bytes:
    wanted = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=replicas)
    return codec.write_request(
        CREATE_TOPICS, CREATE_VERSION, 1, CLIENT, CreateTopicsRequest(topics=[wanted], timeout_ms=TIMEOUT_MS)
    )


def delete(topic: str) -> bytes:
    request = DeleteTopicsRequest(topic_names=[topic], timeout_ms=TIMEOUT_MS)
    return codec.write_request(DELETE_TOPICS, DELETE_VERSION, 1, CLIENT, request)


def ends(topic: str, partitions: Sequence[int]) -> bytes:
    parts = [ListOffsetsPartition(partition_index=number, timestamp=LATEST) for number in partitions]
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=parts)])
    return codec.write_request(LIST_OFFSETS, LIST_VERSION, 1, CLIENT, request)
