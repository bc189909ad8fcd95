"""A stream whose log is truncated between two batches: data loss, or the right place to go on.

One cluster serves all tests of this file: starting three brokers and electing one of them takes two seconds.
"""

import json
import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from moldau.client.administration.admin import Admin
from moldau.names import OffsetAndMetadata, TopicPartition
from moldau.pipeline.data_source import MoldauSource
from moldau.pipeline.edges import LEADER_EPOCHS, STARTING_OFFSETS, TOPIC_IDS
from moldau.pipeline.positions import DataLost
from moldau.pipeline.source.schema import SCHEMA
from moldau.pipeline.source.stream import StreamReader
from tests.client.truncated_log import KEPT, LOST, WRITTEN_SINCE, TruncatedLog, truncated_log

TOPIC = TruncatedLog.topic
OLD, END = KEPT + LOST, KEPT + WRITTEN_SINCE
NEW = [f"new-{number}" for number in range(WRITTEN_SINCE)]


@pytest.fixture(scope="module")
def log() -> Iterator[TruncatedLog]:
    with truncated_log() as log:
        log.fill()
        yield log


@pytest.fixture(scope="module")
def before(log: TruncatedLog) -> dict[str, Any]:
    """Where a stream was that had read the whole log before it was truncated; from then on it is."""
    reader = stream(log)
    start = reader.initialOffset()
    assert start == {TOPIC: {"0": 0}, TOPIC_IDS: start[TOPIC_IDS]}
    values, end = next_batch(reader, start)
    assert len(values) == OLD
    beside = {TOPIC_IDS: start[TOPIC_IDS], LEADER_EPOCHS: {TOPIC: {"0": 0}}, STARTING_OFFSETS: {TOPIC: {"0": 0}}}
    assert end == {TOPIC: {"0": OLD}} | beside
    assert next_batch(reader, end) == ([], end)
    log.truncate()
    return end


def stream(log: TruncatedLog, **options: str) -> StreamReader:
    given = {"bootstrapServers": log.address, "subscribe": TOPIC, "startingOffsets": "earliest", **options}
    return MoldauSource(given).streamReader(SCHEMA)


def planned_values(reader: StreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[str]:
    batches = [batch for one in reader.partitions(start, end) for batch in reader.read(one)]
    return [value.decode() for batch in batches for value in batch.column("value").to_pylist()]


def next_batch(reader: StreamReader, start: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    return planned_values(reader, start, end), json.loads(json.dumps(end))


def test_a_stream_hears_that_what_it_has_read_is_gone(log: TruncatedLog, before: dict[str, Any]) -> None:
    reader = stream(log)
    sentence = f"was truncated at offset {KEPT}, before {OLD} which was already read"
    with pytest.raises(DataLost, match=sentence):
        reader.latestOffset(before, reader.getDefaultReadLimit())
    with pytest.raises(DataLost, match=sentence):
        reader.partitions(before, {**before, TOPIC: {"0": END}, LEADER_EPOCHS: {}})


def test_a_stream_that_may_lose_data_goes_on_with_the_first_record_written_since(
    log: TruncatedLog, before: dict[str, Any]
) -> None:
    reader = stream(log, failOnDataLoss="false")
    values, end = next_batch(reader, before)
    assert values == NEW
    assert end[TOPIC] == {"0": END} and end[LEADER_EPOCHS][TOPIC]["0"] > 0
    assert next_batch(reader, end) == ([], end)
    rest, _ = next_batch(stream(log, failOnDataLoss="false"), {**before, TOPIC: {"0": 3}})
    assert rest == ["old-3", "old-4", *NEW]


def test_a_batch_that_is_planned_again_reads_none_of_what_was_written_since(
    log: TruncatedLog, before: dict[str, Any]
) -> None:
    start = {**before, TOPIC: {"0": 3}}
    with pytest.raises(DataLost, match=f"was truncated at offset {KEPT}"):
        stream(log).partitions(start, before)
    assert planned_values(stream(log, failOnDataLoss="false"), start, before) == ["old-3", "old-4"]


def test_a_limited_batch_ends_with_the_epoch_of_its_last_record(log: TruncatedLog, before: dict[str, Any]) -> None:
    reader = stream(log)
    at = {**before, TOPIC: {"0": 0}, LEADER_EPOCHS: {}}
    ends = [reader.latestOffset(at, limit) for limit in map(read_max_rows, (KEPT - 1, KEPT, KEPT + 1, END))]
    epochs = [end[LEADER_EPOCHS][TOPIC]["0"] for end in ends]
    assert epochs[:2] == [0, 0] and epochs[2] == epochs[3] > 0


def test_checkpoints_without_epochs_are_believed_and_offsets_of_checkpoints_are_starting_offsets(
    log: TruncatedLog, before: dict[str, Any]
) -> None:
    old_checkpoint = {TOPIC: {"0": 8}, TOPIC_IDS: before[TOPIC_IDS]}
    values, end = next_batch(stream(log), old_checkpoint)
    assert values == NEW[3:]
    assert stream(log, startingOffsets=json.dumps(end)).initialOffset()[TOPIC] == {"0": END}


def test_a_reader_goes_to_its_tasks_and_publishes_epochs(log: TruncatedLog, before: dict[str, Any]) -> None:
    reader = stream(log, failOnDataLoss="false", **{"kafka.group.id": "published"})
    _, end = next_batch(reader, before)
    pickle.loads(pickle.dumps(reader))
    reader.commit(end)
    reader.stop()
    with Admin(log.address) as admin:
        epoch = end[LEADER_EPOCHS][TOPIC]["0"]
        assert admin.group_offsets("published") == {
            TopicPartition(TOPIC, 0): OffsetAndMetadata(END, leader_epoch=epoch)
        }


def read_max_rows(count: int) -> Any:
    from moldau.pipeline.spark_versions import ReadMaxRows

    return ReadMaxRows(count)
