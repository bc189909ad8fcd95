"""What a batch read and a stream do where records are missing: transactions, compaction, retention, topics that are
deleted, created again, or grow. The ranges are planned and read as Spark does it, against a broker."""

import json
from collections.abc import Callable
from typing import Any

import pytest

import moldau
from harness.patience import wait_until
from moldau.client.administration.admin import Admin
from moldau.client.epoch_ends import READ_AGAIN, FetchPosition
from moldau.errors import LogTruncated
from moldau.names import TopicPartition
from moldau.pipeline.data_source import MoldauSource
from moldau.pipeline.edges import BESIDE_TOPICS, LEADER_EPOCHS, TOPIC_IDS
from moldau.pipeline.options import OptionError
from moldau.pipeline.positions import DataLost
from moldau.pipeline.source.schema import SCHEMA
from moldau.pipeline.source.stream import StreamReader

NewTopic = Callable[..., str]
Produce = Callable[..., None]

LONGER_THAN_ANY_MACHINE_RUNS = "1000000h"


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


def positions(offset: dict[str, Any]) -> dict[str, Any]:
    """The offset of a stream without what is beside its topics."""
    return {topic: offsets for topic, offsets in offset.items() if topic not in BESIDE_TOPICS}


def create_again(bootstrap: str, topic: str, partitions: int = 1) -> None:
    with Admin(bootstrap) as admin:
        admin.delete_topic(topic)
        assert wait_until(lambda: topic not in admin.list_topics())
        admin.create_topic(topic, partitions=partitions, replication_factor=1, configs={"retention.ms": "-1"})


def next_batch(reader: StreamReader, start: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """The values of the next micro-batch, and where it ends."""
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    return values_of(reader, reader.partitions(start, end)), end


def test_aborted_transactions_are_left_out_and_open_ones_end_a_read(bootstrap: str, half_open: tuple[str, Any]) -> None:
    topic, transaction = half_open
    assert batch(bootstrap, topic) == expected(range(10))
    reader = stream(bootstrap, topic)
    found, at = next_batch(reader, reader.initialOffset())
    assert (found, positions(at)) == (expected(range(10)), {topic: {"0": 14}})
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
    at = {"compacted": {"0": 2}}
    given = {"bootstrapServers": bootstrap, "subscribe": "compacted", "startingOffsets": json.dumps(at)}
    reader, streaming = MoldauSource(given).reader(SCHEMA), stream(bootstrap, "compacted")
    of_a_stream = streaming.partitions(at, streaming.latestOffset(at, streaming.getDefaultReadLimit()))
    for planned in (reader.partitions(), of_a_stream):
        found = [row for one in planned for part in reader.read(one) for row in part.column("offset").to_pylist()]
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


@pytest.mark.parametrize(("partitions", "records"), [(1, 2), (1, 9), (2, 9)])
def test_a_topic_that_is_created_again_ends_a_stream_unless_it_may_lose_data(
    bootstrap: str, new_topic: NewTopic, produce: Produce, partitions: int, records: int
) -> None:
    topic = new_topic(2)
    produce(topic, numbered(0, 5))
    produce(topic, numbered(5, 5), 1)
    strict, lenient = (stream(bootstrap, topic, failOnDataLoss=fail) for fail in ("true", "false"))
    ((_, at), _) = [next_batch(reader, reader.initialOffset()) for reader in (strict, lenient)]
    produce(topic, numbered(10, 2))
    planned = strict.latestOffset(at, strict.getDefaultReadLimit())
    create_again(bootstrap, topic, partitions)
    produce(topic, numbered(100, records))
    for step in (lambda: next_batch(strict, at), lambda: strict.partitions(at, planned)):
        with pytest.raises(DataLost, match=f"Topic {topic} was deleted and created again since it was read"):
            step()
    assert lenient.partitions(at, planned) == [], "what this batch had planned is gone"
    for start in (at, planned):
        found, after = next_batch(lenient, start)
        assert found == expected(range(100, 100 + records)), "the new topic is read from its first record"
    assert positions(after)[topic]["0"] == records and next_batch(lenient, after)[0] == []
    produce(topic, numbered(200, 3))
    assert next_batch(stream(bootstrap, topic), after)[0] == expected(range(200, 203))
    assert batch(bootstrap, topic) == expected([*range(100, 100 + records), *range(200, 203)])


def test_a_batch_whose_topic_was_created_again_is_planned_again_whatever_leaders_the_old_topic_had(
    bootstrap: str, new_topic: NewTopic, produce: Produce
) -> None:
    topic = new_topic()
    produce(topic, numbered(0, 5))
    reader = stream(bootstrap, topic)
    start = reader.initialOffset()
    planned = {**reader.latestOffset(start, reader.getDefaultReadLimit()), LEADER_EPOCHS: {topic: {"0": 7}}}
    create_again(bootstrap, topic)
    produce(topic, numbered(100, 9))
    for begin, end in ((start, planned), (planned, {**planned, topic: {"0": 8}})):
        with pytest.raises(DataLost, match=f"Topic {topic} was deleted and created again since it was read"):
            stream(bootstrap, topic).partitions(begin, end)
        assert stream(bootstrap, topic, failOnDataLoss="false").partitions(begin, end) == []


def test_a_topic_that_is_deleted_for_a_while_is_read_from_its_first_record_later(
    bootstrap: str, new_topic: NewTopic, produce: Produce
) -> None:
    topic, kept = new_topic(), new_topic()
    produce(topic, numbered(0, 3))
    produce(kept, numbered(10, 1))
    reader = stream(bootstrap, f"{topic},{kept}", failOnDataLoss="false")
    _, at = next_batch(reader, reader.initialOffset())
    with Admin(bootstrap) as admin:
        admin.delete_topic(topic)
        assert wait_until(lambda: topic not in admin.list_topics())
        produce(kept, numbered(11, 1))
        found, at = next_batch(reader, at)
        assert found == expected([11])
        admin.create_topic(topic, partitions=1, replication_factor=1, configs={"retention.ms": "-1"})
    produce(topic, numbered(20, 8))
    assert next_batch(reader, at)[0] == expected(range(20, 28))


def test_the_checkpoint_of_an_earlier_version_is_read_and_knows_the_topic_from_then_on(
    bootstrap: str, new_topic: NewTopic, produce: Produce
) -> None:
    topic = new_topic()
    produce(topic, numbered(0, 5))
    earlier = {topic: {"0": 3}}
    reader = stream(bootstrap, topic)
    found, at = next_batch(reader, earlier)
    assert found == expected([3, 4]) and list(at[TOPIC_IDS]) == [topic]
    copied = json.dumps({**at, topic: {"0": 4}})
    assert batch(bootstrap, topic, startingOffsets=copied) == expected([4]), "offsets of a checkpoint start a read"
    create_again(bootstrap, topic)
    produce(topic, numbered(0, 2))
    with pytest.raises(DataLost, match="ends at offset 2, before 3 which was already read"):
        next_batch(reader, earlier)
    with pytest.raises(DataLost, match="created again"):
        next_batch(reader, at)


@pytest.mark.parametrize("again", [True, False])
def test_a_topic_that_is_deleted_between_planning_and_reading_is_noticed_by_its_id(
    bootstrap: str, new_topic: NewTopic, produce: Produce, again: bool
) -> None:
    topic = new_topic()
    produce(topic, numbered(0, 5))
    given = {"bootstrapServers": bootstrap, "subscribe": topic}
    strict, lenient = (MoldauSource({**given, "failOnDataLoss": fail}).reader(SCHEMA) for fail in ("true", "false"))
    planned = strict.partitions()
    if again:
        create_again(bootstrap, topic)
        produce(topic, numbered(100, 9))
    else:
        with Admin(bootstrap) as admin:
            admin.delete_topic(topic)
            assert wait_until(lambda: topic not in admin.list_topics())
    assert values_of(lenient, planned) == []
    with pytest.raises(DataLost, match=f"Topic {topic} was deleted while offsets 0 to 4 of partition 0 were read"):
        values_of(strict, planned)


def test_a_topic_that_is_created_again_while_a_task_reads_it_fails_the_task(
    bootstrap: str, new_topic: NewTopic, produce: Produce
) -> None:
    topic = new_topic()
    produce(topic, numbered(0, 5))
    given = {"bootstrapServers": bootstrap, "subscribe": topic, "failOnDataLoss": "false"}
    reader = MoldauSource(given).reader(SCHEMA)
    (planned,) = reader.partitions()
    batches = iter(reader.read(planned))
    assert next(batches).num_rows == 5
    create_again(bootstrap, topic)
    with pytest.raises(DataLost, match="were read"):
        list(batches)


def test_a_topic_that_is_created_again_before_the_first_record_of_a_task_is_a_topic_that_is_gone(
    bootstrap: str, new_topic: NewTopic, produce: Produce, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = new_topic()
    produce(topic, numbered(0, 5))
    given = {"bootstrapServers": bootstrap, "subscribe": topic}
    strict, lenient = (MoldauSource({**given, "failOnDataLoss": fail}).reader(SCHEMA) for fail in ("true", "false"))
    planned = strict.partitions()

    def made_anew(at: FetchPosition) -> None:
        raise LogTruncated(at.tp, at.offset, None, READ_AGAIN, is_new_topic=True)

    monkeypatch.setattr("moldau.client.fetching._Range.ask", lambda reader: made_anew(reader._at))
    assert values_of(lenient, planned) == []
    with pytest.raises(DataLost, match=f"Topic {topic} was deleted while offsets 0 to 4 of partition 0 were read"):
        values_of(strict, planned)


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
    assert (found, positions(at)) == (expected([3, 4]), {topic: {"0": 3, "1": 2}})
    assert batch(bootstrap, topic) == expected(range(5))


def test_a_micro_batch_waits_for_enough_records_but_not_for_ever(
    bootstrap: str, new_topic: NewTopic, produce: Produce
) -> None:
    topic = new_topic()
    produce(topic, numbered(0, 3))
    patient = stream(bootstrap, topic, minOffsetsPerTrigger="5", maxTriggerDelay=LONGER_THAN_ANY_MACHINE_RUNS)
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


def test_an_offset_beyond_the_end_of_the_log_starts_nothing_in_silence(
    bootstrap: str, new_topic: NewTopic, produce: Produce, caplog: pytest.LogCaptureFixture
) -> None:
    topic = new_topic()
    produce(topic, numbered(0, 3))
    start = json.dumps({topic: {"0": 7}})
    sentence = f"Option startingOffsets names offset 7 of {topic}-0, but the log ends at 3"
    with pytest.raises(DataLost, match=f"{sentence}; set failOnDataLoss to false to start at its end"):
        batch(bootstrap, topic, startingOffsets=start)
    reader = stream(bootstrap, topic, startingOffsets=start)
    with pytest.raises(DataLost, match=sentence):
        next_batch(reader, reader.initialOffset())
    assert batch(bootstrap, topic, startingOffsets=start, failOnDataLoss="false") == []
    assert caplog.messages == [f"{sentence}: reading starts there."]
    lenient = stream(bootstrap, topic, startingOffsets=start, failOnDataLoss="false")
    assert positions(lenient.initialOffset()) == {topic: {"0": 3}}
    produce(topic, numbered(3, 6))
    assert next_batch(lenient, lenient.initialOffset())[0] == expected(range(3, 9))
    at_the_end = json.dumps({topic: {"0": 9}})
    assert batch(bootstrap, topic, startingOffsets=at_the_end) == []
    assert batch(bootstrap, topic, endingOffsets=json.dumps({topic: {"0": 99}}), failOnDataLoss="false") == expected(
        range(9)
    )


def test_an_offset_in_an_open_transaction_starts_a_stream_there(bootstrap: str, half_open: tuple[str, Any]) -> None:
    topic, transaction = half_open
    start = {"startingOffsets": json.dumps({topic: {"0": 15}})}
    reader = stream(bootstrap, topic, **start)
    assert positions(reader.initialOffset()) == {topic: {"0": 15}}
    assert batch(bootstrap, topic, **start) == []
    transaction.end(commits=True)


@pytest.mark.parametrize(
    ("start", "end", "said"),
    [
        (
            {"startingOffsets": '{"TOPIC":{"0":2}}'},
            {"endingOffsets": '{"TOPIC":{"0":1}}'},
            "at offset 2, after its end",
        ),
        ({"startingTimestamp": "1002"}, {"endingTimestamp": "1001"}, "at time 1002, after its end at time 1001"),
        (
            {"startingTimestamp": "1002"},
            {"endingOffsetsByTimestamp": '{"TOPIC":{"0":1001}}'},
            "at time 1002, after its",
        ),
        ({"startingOffsets": '{"TOPIC":{"0":2}}'}, {"endingOffsets": '{"TOPIC":{"0":-1}}'}, ""),
        ({"startingOffsets": '{"TOPIC":{"0":2}}'}, {"endingTimestamp": "1001"}, ""),
        ({"startingTimestamp": "1002"}, {"endingOffsets": '{"TOPIC":{"0":1}}'}, ""),
    ],
)
def test_a_start_after_its_end_is_a_mistake_where_both_are_offsets_or_both_are_times(
    bootstrap: str, new_topic: NewTopic, produce: Produce, start: dict[str, str], end: dict[str, str], said: str
) -> None:
    topic = new_topic()
    produce(topic, numbered(0, 3))
    options = {name: text.replace("TOPIC", topic) for name, text in {**start, **end}.items()}
    if not said:
        assert batch(bootstrap, topic, **options) in ([], expected([2]))
        return
    with pytest.raises(OptionError, match=said):
        batch(bootstrap, topic, **options)
