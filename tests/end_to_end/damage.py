"""Two topics that a broker has served, and what may happen to the files that say whose they are."""

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.brokers import Broker, NotReady
from moldau.client.administration.admin import Admin
from moldau.client.producing.producer import Producer
from moldau.metadata_store.embedded import EmbeddedStore
from moldau.metadata_store.store import Set

TOPICS = {"t": 3, "u": 1}
STORE = "metadata.sqlite"
Damage = Callable[[Path], None]


def written(broker: Broker, end: Callable[[Broker], None] = Broker.stop) -> None:
    """A life in which every partition got a record and one topic a setting."""
    broker.start()
    with Admin(broker.address) as admin:
        for name, count in TOPICS.items():
            admin.create_topic(name, partitions=count)
        admin.alter_topic_configs("u", {"retention.ms": "-1"})
    append(broker)
    end(broker)


def stopped_cleanly(folder: Path) -> Path:
    """The files that a broker with such a life leaves behind."""
    broker = Broker(folder)
    try:
        written(broker)
    finally:
        broker.kill()
    return broker.data


def copied(original: Path, broker: Broker) -> Broker:
    """The broker, with a copy of the data that `stopped_cleanly` made."""
    shutil.copytree(original, broker.data)
    return broker


def append(broker: Broker) -> None:
    with Producer(broker.address, delivery_timeout_ms=20_000) as producer:
        for name, count in TOPICS.items():
            for partition in range(count):
                producer.send(name, b"value", partition=partition)
        producer.flush()


def ends(broker: Broker) -> dict[str, list[int]]:
    """The end of every partition."""
    with Admin(broker.address) as admin:
        return {name: [end for _, (_, end) in sorted(admin.watermarks(name).items())] for name in admin.list_topics()}


def refused(broker: Broker) -> str:
    """The sentence a start is refused with."""
    with pytest.raises(NotReady) as caught:
        broker.start()
    assert caught.value.code == 1
    said = [line for line in broker.log().splitlines() if line.startswith("error: ")]
    assert not broker.traceback()
    return said[-1]


def serves_everything(broker: Broker) -> None:
    assert ends(broker) == {name: [1] * count for name, count in TOPICS.items()}
    append(broker)
    assert ends(broker) == {name: [2] * count for name, count in TOPICS.items()}


def without_copies(data: Path) -> None:
    for path in data.glob(f"{STORE}.*"):
        path.unlink()


def rewritten(name: str, change: Callable[[bytes], bytes]) -> Damage:
    def damage(data: Path) -> None:
        (data / name).write_bytes(change((data / name).read_bytes()))

    return damage


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def line_lost(key: str) -> Callable[[bytes], bytes]:
    return lambda text: b"\n".join(line for line in text.split(b"\n") if not line.startswith(key.encode()))


def without(*names: str) -> Damage:
    def damage(data: Path) -> None:
        for name in names:
            (data / name).unlink(missing_ok=True)

    return damage


def changed_by(statement: str) -> Damage:
    def damage(data: Path) -> None:
        database = sqlite3.connect(data / STORE)
        database.execute(statement)
        database.commit()
        database.close()

    return damage


def malformed(data: Path) -> None:
    """A document that we would have written like this, if we had written nonsense."""
    store = EmbeddedStore(data)
    store.multi([Set("/brokers/topics/t", b'{"partitions": {"0": 7}}')])
    store.close()


METADATA_DAMAGE: dict[str, Damage] = {
    "missing": without(STORE),
    "empty": rewritten(STORE, lambda data: b""),
    "truncated": rewritten(STORE, lambda data: data[: len(data) // 2]),
    "a header of garbage": rewritten(STORE, lambda data: b"garbage!" * 16 + data[128:]),
    "a bit in a topic": rewritten(STORE, lambda data: flipped(data, data.rindex(b'"topic_id":"') + 14)),
    "a bit in a path": rewritten(
        STORE, lambda data: flipped(data, data.rindex(b"/brokers/topics/t/partitions/1") + 16)
    ),
    "not JSON": changed_by("UPDATE node SET data = x'7b7b' WHERE path = '/brokers/topics/t'"),
    "a node that is gone": changed_by("DELETE FROM node WHERE path = '/cluster/id'"),
    "malformed": malformed,
}

META_DAMAGE: dict[str, Damage] = {
    "missing": lambda data: (data / "meta.properties").unlink(),
    "empty": rewritten("meta.properties", lambda text: b""),
    "garbage": rewritten("meta.properties", lambda text: b"\x00\xff" * 50),
    "without its cluster": rewritten("meta.properties", line_lost("cluster.id")),
    "without its node": rewritten("meta.properties", line_lost("node.id")),
    "of another cluster": rewritten("meta.properties", lambda text: text.replace(b"cluster.id=", b"cluster.id=x")),
    "of another node": rewritten("meta.properties", lambda text: text.replace(b"node.id=1", b"node.id=2")),
}
