"""What every client must be able to do with the broker: one behaviour kit, for all of them.

A test class of a client takes these as bases and gives the fixtures `client` (a `Client`) and `broker`.
"""

import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from harness.brokers import Broker
from harness.patience import Deadline
from moldau.client.administration.admin import Admin
from moldau.records.batch import batches
from moldau.records.compression import NONE
from tests.clients.client import Client, Message

HEADERS = {"trace": "5f3a", "origin": "Vltava – Moldau"}
CODECS = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
PARTITIONS = 3


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    return f"events-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def group() -> str:
    return f"readers-{uuid.uuid4().hex[:12]}"


def numbered(first: int, count: int) -> list[Message]:
    """Messages whose values are numbers, with ten keys in turn."""
    return [Message(f"key-{n % 10}", f"value-{n:06}", HEADERS) for n in range(first, first + count)]


def values(messages: Sequence[Message]) -> list[str | None]:
    return sorted(message.value or "" for message in messages)


def assert_same(taken: Sequence[Message], sent: Sequence[Message]) -> None:
    """Each message is there once with its key and headers, each key's messages in order, offsets without gaps."""
    came, due = Counter(values(taken)), Counter(values(sent))
    assert came == due, f"{len(taken)} of {len(sent)}; missing {sorted(due - came)}, too many {sorted(came - due)}"
    assert {(m.key, m.value, tuple(m.headers.items())) for m in taken} == {
        (m.key, m.value, tuple(m.headers.items())) for m in sent
    }
    by_partition: dict[int, list[int]] = defaultdict(list)
    by_key: dict[str | None, list[str | None]] = defaultdict(list)
    for message in taken:
        by_partition[message.partition].append(message.offset)
        by_key[message.key].append(message.value)
    for offsets in by_partition.values():
        assert offsets == list(range(offsets[0], offsets[0] + len(offsets)))
    for in_key in by_key.values():
        assert in_key == sorted(in_key, key=str)


def soon(holds: Callable[[], bool], seconds: float = 60) -> bool:
    """Ask until it holds: what one request changed, the next may not see yet."""
    until = Deadline(seconds)
    while not (held := holds()) and not until.passed:
        pass
    return held


def codecs_on_disk(broker: Broker, topic: str) -> set[int]:
    """The compression of all batches of the topic."""
    logs = [log.read_bytes() for log in Path(broker.data).glob(f"{topic}-*/*.log")]
    return {header.codec for log in logs for _, header in batches(log)}


class Exchanges:
    """Produce, consume in a group, commit, go on."""

    def test_messages_come_back_with_their_keys_and_headers(self, client: Client, topic: str, group: str) -> None:
        client.create_topic(topic, PARTITIONS)
        sent = numbered(0, 100)
        client.produce(topic, sent)
        client.subscribe(topic, group)
        assert_same(client.take(100), sent)
        client.unsubscribe()

    def test_a_restarted_consumer_goes_on_from_its_commit(self, client: Client, topic: str, group: str) -> None:
        client.create_topic(topic, PARTITIONS)
        first, second = numbered(0, 60), numbered(60, 40)
        client.produce(topic, first)
        client.subscribe(topic, group)
        assert_same(client.take(60), first)
        client.commit()
        client.unsubscribe()
        client.produce(topic, second)
        client.subscribe(topic, group)
        assert_same(client.take(40), second)
        client.unsubscribe()

    @pytest.mark.restarts
    @pytest.mark.parametrize("end", ["stop", "kill"])
    def test_producer_and_consumer_go_on_after_a_broker_restart(
        self, client: Client, broker: Broker, topic: str, group: str, end: str
    ) -> None:
        client.create_topic(topic, PARTITIONS)
        first, second, third = numbered(0, 60), numbered(60, 40), numbered(100, 20)
        client.produce(topic, first)
        client.subscribe(topic, group)
        assert_same(client.take(60), first)
        client.commit()
        broker.stop() if end == "stop" else broker.kill()
        broker.start()
        client.produce(topic, second)
        assert_same(client.take(40), second)
        client.commit()
        client.unsubscribe()
        client.produce(topic, third)
        client.subscribe(topic, group)
        assert_same(client.take(20), third)
        client.unsubscribe()


class Compresses:
    """All four compressions: what was compressed by the client stays so on disk, and comes back. Clients send a batch
    that compression does not make smaller as it is."""

    @pytest.mark.parametrize("codec", sorted(CODECS))
    def test_compressed_messages_come_back(
        self, client: Client, broker: Broker, topic: str, group: str, codec: str
    ) -> None:
        client.create_topic(topic, 1)
        sent = numbered(0, 500)
        client.produce(topic, sent, codec)
        client.subscribe(topic, group)
        assert_same(client.take(500), sent)
        client.unsubscribe()
        if isinstance(broker, Broker):
            found = codecs_on_disk(broker, topic)
            assert CODECS[codec] in found, f"not compressed: {found}"
            assert found <= {CODECS[codec], NONE}, f"compressed otherwise: {found}"


class Administers:
    """Topics and groups, created, listed, described, deleted."""

    def test_a_topic_is_created_listed_described_and_deleted(self, client: Client, topic: str) -> None:
        client.create_topic(topic, 4)
        assert soon(lambda: topic in client.topics())
        assert client.partitions(topic) == 4
        client.delete_topic(topic)
        assert soon(lambda: topic not in client.topics())

    def test_a_topic_is_configured(self, client: Client, broker: Broker, topic: str) -> None:
        client.create_topic(topic, 1)
        client.configure(topic, {"retention.ms": "86400000", "cleanup.policy": "compact"})
        with Admin(broker.address) as admin:
            changed = {one.name: one.value for one in admin.topic_configs(topic) if not one.is_default}
        assert changed == {"retention.ms": "86400000", "cleanup.policy": "compact"}

    def test_a_group_is_listed_and_described_with_its_offsets(self, client: Client, topic: str, group: str) -> None:
        client.create_topic(topic, PARTITIONS)
        client.produce(topic, numbered(0, 30))
        client.subscribe(topic, group)
        client.take(30)
        client.commit()
        assert group in client.groups()
        assert client.members(group) == 1
        assert client.committed(group, topic) == 30
        assert client.end_offsets(topic) == 30
        client.unsubscribe()
        assert soon(lambda: client.members(group) == 0)
