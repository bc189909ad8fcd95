"""A whole broker in the loop of the test: what comes back after a kill, and what ends or changes it while it runs."""

import asyncio
import errno
from pathlib import Path

import pytest

from harness.brokers import Broker as Process
from harness.patience import within
from moldau.broker import Broker
from moldau.config import broker_config
from moldau.errors import KafkaError
from moldau.log.folders.identity import CLEAN_MARKER
from moldau.protocol.apis import (
    CREATE_TOPICS,
    FIND_COORDINATOR,
    INCREMENTAL_ALTER_CONFIGS,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    PRODUCE,
)
from moldau.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from moldau.protocol.messages.metadata import MetadataRequest
from moldau.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from moldau.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from moldau.runtime import Runtime
from tests.handlers.living import Living, Wire, batch, outcomes, produce, producer_id
from tests.handlers.living import run as alive_on

IDEMPOTENT = batch(b"x", b"y", producer_id=7, producer_epoch=0, base_sequence=0)


def test_a_lost_disk_ends_it_without_the_marker(tmp_path: Path):
    async def scenario() -> None:
        broker = Broker(
            broker_config({"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path), "node.id": "1"})[0],
            Runtime(),
        )
        await broker.start()
        await asyncio.to_thread(broker.folder.fail, OSError(errno.EIO, "a write failed"))
        await within(broker.failed.wait())
        with pytest.raises(KafkaError):
            broker.folder.checkpoint()
        await broker.stop()

    asyncio.run(scenario())
    assert not (tmp_path / CLEAN_MARKER).exists()


async def make_history(wire: Wire) -> int:
    """A topic with settings, a batch of an idempotent producer, an offset of a group; returns a producer id."""
    topic = CreatableTopic(
        name="a", num_partitions=2, replication_factor=1,
        configs=[CreatableTopicConfig(name="max.message.bytes", value="54321")],
    )  # fmt: skip
    made = await wire.ask(CREATE_TOPICS, 5, CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
    assert made.topics[0].error_code == 0
    assert outcomes(await wire.ask(PRODUCE, 9, produce(("a", 1, IDEMPOTENT)))) == [(1, 0, 0)]
    coordinator = FindCoordinatorRequest(key="g", key_type=0)
    while (await wire.ask(FIND_COORDINATOR, 2, coordinator)).error_code:
        await asyncio.sleep(0)
    part = OffsetCommitRequestPartition(partition_index=1, committed_offset=2, committed_metadata="here")
    commit = OffsetCommitRequest(group_id="g", topics=[OffsetCommitRequestTopic(name="a", partitions=[part])])
    while (await wire.ask(OFFSET_COMMIT, 7, commit)).topics[0].partitions[0].error_code:
        await asyncio.sleep(0)
    return await producer_id(wire)


async def look_back(alive: Living, given: int) -> None:
    topic = alive.broker.cluster.image.topics["a"]
    assert (len(topic.partitions), topic.overrides["max.message.bytes"]) == (2, "54321")
    assert alive.replica("a", 1).high_watermark == 2
    wire = await alive.dial()
    again = await wire.ask(PRODUCE, 9, produce(("a", 1, IDEMPOTENT)))
    assert outcomes(again) == [(1, 0, 0)], "a duplicate, known from the log"
    request = OffsetFetchRequest(group_id="g", topics=[OffsetFetchRequestTopic(name="a", partition_indexes=[1])])
    found = (await wire.ask(OFFSET_FETCH, 5, request)).topics[0].partitions[0]
    assert (found.error_code, found.committed_offset, found.metadata) == (0, 2, "here")
    assert await producer_id(wire) > given


def test_a_killed_broker_comes_back_with_everything(tmp_path: Path):
    process = Process(tmp_path, {"node.id": "1", "offsets.topic.num.partitions": "3"})
    process.start()

    async def before() -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(process.address.rpartition(":")[2]))
        try:
            return await make_history(Wire(reader, writer))
        finally:
            writer.close()

    try:
        given = asyncio.run(within(before()))
    finally:
        process.kill()
    alive_on(lambda alive: look_back(alive, given), process.data)


def test_how_many_connections_there_may_be_is_changed_while_it_runs(tmp_path: Path):
    """The connection above the maximum waits until there may be more."""

    async def scenario(alive: Living) -> None:
        wire = await alive.dial()

        async def limit(connections: str) -> None:
            setting = AlterableConfig(name="max.connections", config_operation=0, value=connections)
            resource = AlterConfigsResource(resource_type=4, resource_name="1", configs=[setting])
            request = IncrementalAlterConfigsRequest(resources=[resource])
            answer = await wire.ask(INCREMENTAL_ALTER_CONFIGS, 1, request)
            assert answer.responses[0].error_code == 0

        await limit("1")
        another = await alive.dial()
        asked = asyncio.ensure_future(another.ask(METADATA, 1, MetadataRequest(topics=[])))
        for _ in range(3):
            await wire.ask(METADATA, 1, MetadataRequest(topics=[]))
        assert not asked.done()
        assert len(alive.broker.server.connections) == 1
        await limit("2")
        assert (await asked).controller_id == 1

    alive_on(scenario, tmp_path)
