"""What a batch read and a stream do where records are missing: transactions, compaction, retention, topics that are
deleted, created again, or grow. The ranges are planned and read as Spark does it, against a broker."""

import json
from collections.abc import Callable
from typing import Any

import pytest

import moldau
from harness.patience import wait_until
from moldau.client.administration.admin import Admin
from moldau.names import TopicPartition
from moldau.pipeline.data_source import MoldauSource
from moldau.pipeline.options import OptionError
from moldau.pipeline.positions import DataLost
from moldau.pipeline.source.schema import SCHEMA
from moldau.pipeline.source.stream import StreamReader

NewTopic = Callable[..., str]
Produce = Callable[..., None]


def numbered(first: int, count: int) -> list[tuple[bytes | None, bytes | None, int]]:
    return [(b"k%d" % n, b"v%d" % n, 1_000 + n) for n in range(first, first + count)]


def expected(numbers: Any) -> list[str]:
    return [f"v{n}" for n in numbers]


def values_of(reader: Any, planned: list[Any]) -> list[str]:
    batches = [batch for one in planned for batch in reader.read(one)]
    found = [value.decode() for batch in batches for value in batch.column("value").to_pylist()]
    return sorted(found, key=lambda v: int(v[1:]))


def batch(bootstrap: str, topic: str, **options: str) -> list[str]:
    """The values that a batch read returns."""
    source = MoldauSource({"bootstrapServers": bootstrap, "subscribe": topic, **options})
    reader = source.reader(source.schema())
    return values_of(reader, reader.partitions())


def stream(bootstrap: str, topic: str, **options: str) -> StreamReader:
    given = {"bootstrapServers": bootstrap, "subscribe": topic, "startingOffsets": "earliest", **options}
    return MoldauSource(given).streamReader(SCHEMA)


def next_batch(reader: StreamReader, start: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """The values of the next micro-batch, and where it ends."""
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    return values_of(reader, reader.partitions(start, end)), end


def test_aborted_transactions_are_left_out_and_open_ones_end_a_read(bootstrap: str, half_open: tuple[str, Any]) -> None:
    topic, transaction = half_open
    assert batch(bootstrap, topic) == expected(range(10))
    reader = stream(bootstrap, topic)
    found, at = next_batch(reader, reader.initialOffset())
    assert (found, at) == (expected(range(10)), {topic: {"0": 14}})
    assert next_batch(reader, at) == ([], at)
    transaction.end(commits=True)
    assert wait_until(lambda: next_batch(reader, at)[0] == expected([20]))


def test_gaps_that_compaction_left_are_no_loss(bootstrap: str) -> None:
    settings = {"cleanup.policy": "compact", "segment.bytes": "1048576", "min.cleanable.dirty.ratio": "0.01"}
    with Admin(bootstrap) as admin, moldau.Producer(bootstrap) as producer:
        admin.create_topic("compacted", partitions=1, replication_factor=1, configs=settings)
        for n in range(6):
            producer.send("compacted", f"v{n}", "same")
        for key in ("large", "larger"):
            producer.send("compacted", bytes(600_000), key).result()  # the second one begins another segment
        producer.send("compacted", "last", "last").result()
        assert wait_until(lambda: len(moldau.read_table("compacted", bootstrap)) == 4, 60)
    names = {"columns": "offset", "startingOffsets": json.dumps({"compacted": {"0": 2}})}
    source = MoldauSource({"bootstrapServers": bootstrap, "subscribe": "compacted", **names})
    reader = source.reader(source.schema())
    found = [row for one in reader.partitions() for part in reader.read(one) for row in part.column(0).to_pylist()]
    assert found == [5, 6, 7, 8], "the start is a gap, and the read goes on behind it"


def test_records_that_retention_deleted_fail_a_read_unless_it_may_skip_them(
    bootstrap: str, new_topic: NewTopic, produce: Produce
) -> None:
    topic = new_topic()
    produce(topic, numbered(0, 10))
    at = {topic: {"0": 2}}
    with Admin(bootstrap) as admin:
        admin.delete_records({TopicPartition(topic, 0): 6})
    with pytest.raises(DataLost, match="Offsets 2 to 5"):
        batch(bootstrap, topic, startingOffsets=json.dumps(at))
    assert batch(bootstrap, topic, startingOffsets=json.dumps(at), failOnDataLoss="false") == expected(range(6, 10))
    with pytest.raises(DataLost, match="Offsets 2 to 5"):
        next_batch(stream(bootstrap, topic), at)
    assert next_batch(stream(bootstrap, topic, failOnDataLoss="false"), at)[0] == expected(range(6, 10))


def test_a_topic_that_is_deleted_ends_a_stream_unless_it_may_lose_data(
    bootstrap: str, new_topic: NewTopic, produce: Produce
) -> None:
    gone, kept = new_topic(), new_topic()
    produce(gone, numbered(0, 3))
    produce(kept, numbered(0, 3))
    strict, lenient = (stream(bootstrap, f"{gone},{kept}", failOnDataLoss=fail) for fail in ("true", "false"))
    ((_, at), _) = [next_batch(reader, reader.initialOffset()) for reader in (strict, lenient)]
    with Admin(bootstrap) as admin:
        admin.delete_topic(gone)
    produce(kept, numbered(3, 2))
    with pytest.raises((DataLost, OptionError), match=gone):
        next_batch(strict, at)
    found, at = next_batch(lenient, at)
    assert found == expected([3, 4]) and at[kept] == {"0": 5}
    with pytest.raises(OptionError, match="No topic has this name"):
        batch(bootstrap, gone)


def test_a_topic_that_is_created_again_with_fewer_records_ends_a_stream(
    bootstrap: str, new_topic: NewTopic, produce: Produce
) -> None:
    topic = new_topic()
    produce(topic, numbered(0, 5))
    strict, lenient = (stream(bootstrap, topic, failOnDataLoss=fail) for fail in ("true", "false"))
    ((_, at), _) = [next_batch(reader, reader.initialOffset()) for reader in (strict, lenient)]
    with Admin(bootstrap) as admin:
        admin.delete_topic(topic)
        assert wait_until(lambda: topic not in admin.list_topics())
        admin.create_topic(topic, partitions=1, replication_factor=1)
    produce(topic, numbered(0, 2))
    with pytest.raises(DataLost, match="ends at offset 2, before 5 which was already read"):
        next_batch(strict, at)
    assert batch(bootstrap, topic) == expected(range(2))
    assert next_batch(lenient, at) == ([], at)
    produce(topic, numbered(2, 5))
    assert next_batch(lenient, at)[0] == expected([5, 6])


def test_partitions_that_are_added_are_read_from_their_first_record(
    bootstrap: str, new_topic: NewTopic, produce: Produce
) -> None:
    topic = new_topic()
    produce(topic, numbered(0, 3))
    reader = stream(bootstrap, topic)
    _, at = next_batch(reader, reader.initialOffset())
    with Admin(bootstrap) as admin:
        admin.create_partitions(topic, 2)
    produce(topic, numbered(3, 2), 1)
    found, at = next_batch(reader, at)
    assert (found, at) == (expected([3, 4]), {topic: {"0": 3, "1": 2}})
    assert batch(bootstrap, topic) == expected(range(5))


def test_a_micro_batch_waits_for_enough_records_but_not_for_ever(
    bootstrap: str, new_topic: NewTopic, produce: Produce
) -> None:
    topic = new_topic()
    produce(topic, numbered(0, 3))
    patient = stream(bootstrap, topic, minOffsetsPerTrigger="5", maxTriggerDelay="1h")
    start = patient.initialOffset()
    first, at = next_batch(patient, start)
    assert first == expected(range(3)), "the delay is over when a query starts"
    produce(topic, numbered(3, 4))
    assert next_batch(patient, at) == ([], at)
    hasty = stream(bootstrap, topic, minOffsetsPerTrigger="5", maxTriggerDelay="0s")
    assert next_batch(hasty, at)[0] == expected(range(3, 7))
    produce(topic, numbered(7, 1))
    assert next_batch(patient, at)[0] == expected(range(3, 8))


def test_the_progress_of_a_stream_is_the_lag_of_its_group(
    bootstrap: str, new_topic: NewTopic, produce: Produce
) -> None:
    topic = new_topic()
    produce(topic, numbered(0, 8))
    reader = stream(bootstrap, topic, **{"kafka.group.id": f"lag-of-{topic}"})
    next_batch(reader, {topic: {"0": 5}})
    with Admin(bootstrap) as admin:
        assert admin.group_lag(f"lag-of-{topic}")[TopicPartition(topic, 0)].records == 3
        reader.commit({topic: {"0": 8}})
        assert admin.group_lag(f"lag-of-{topic}")[TopicPartition(topic, 0)].records == 0
    reader.stop()


def test_a_stream_has_no_end(bootstrap: str) -> None:
    reader = stream(bootstrap, "any", endingTimestamp="5")
    with pytest.raises(OptionError, match="a stream has no end"):
        reader.initialOffset()
