"""A stream that is killed at any moment, and whose topic changes before it is started again: every record once, or a
sentence that says which are lost. `restarts.py` plays Spark; a few of these run in Spark itself."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from harness.patience import wait_until
from moldau.client.administration.admin import Admin
from moldau.names import TopicPartition
from moldau.pipeline.data_source import MoldauSource
from moldau.pipeline.edges import STARTING_OFFSETS
from moldau.pipeline.options import OptionError
from moldau.pipeline.positions import DataLost
from moldau.pipeline.source.schema import SCHEMA
from moldau.pipeline.source.stream import StreamReader
from moldau.pipeline.streams import run_to_end
from tests.pipeline.source.restarts import MOMENTS, Checkpoint, Killed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NewTopic = Callable[..., str]
Produce = Callable[..., None]

EARLIER, RECORDS, IN_A_BATCH, DELETED = 2, 10, 6, 4
"""Records that are there when the query starts, all of them, those of its first micro-batch, and what is deleted."""
FRESH = MOMENTS[0]
OF_FIRST_BATCH = MOMENTS[:3]


class Ground(NamedTuple):
    """The topic of a test, and what a test does with it."""

    bootstrap: str
    topic: str
    produce: Produce

    def write(self, letter: str, first: int, end: int, partition: int = 0, topic: str = "") -> None:
        records = [(None, f"{letter}{n:02}".encode(), 1_000 + n) for n in range(first, end)]
        self.produce(topic or self.topic, records, partition)

    def reader(self, fail_on_data_loss: bool = True, **options: str) -> StreamReader:
        given = {
            "bootstrapServers": self.bootstrap, "subscribePattern": f"{self.topic}(-other)?",
            "maxOffsetsPerTrigger": str(IN_A_BATCH), "failOnDataLoss": str(fail_on_data_loss), **options,
        }  # fmt: skip
        if "subscribe" in options:
            del given["subscribePattern"]
        return MoldauSource(given).streamReader(SCHEMA)

    def killed_at(self, moment: str, starting: str, starts_are_told: bool = True) -> Checkpoint:
        """The checkpoint of a query that was killed at this moment. All but the first records are written after it has
        got its initial offset."""
        self.write("v", 0, EARLIER)
        written: list[None] = []

        def write_once() -> None:
            if not written:
                written.append(None)
                self.write("v", EARLIER, RECORDS)

        checkpoint = Checkpoint()
        if not starts_are_told:
            write_once()
        with pytest.raises(Killed):
            checkpoint.run(self.reader(startingOffsets=starting), moment, write_once, starts_are_told)
        return checkpoint

    def change(self, change: str) -> None:
        with Admin(self.bootstrap) as admin:
            if change == "partitions are added":
                admin.create_partitions(self.topic, 2)
                self.write("w", 0, 3, partition=1)
            elif change == "records are deleted":
                admin.delete_records({TopicPartition(self.topic, 0): DELETED})
            elif change == "all records are deleted":
                admin.delete_records({TopicPartition(self.topic, 0): RECORDS})
            elif change == "another topic appears":
                other, kept = f"{self.topic}-other", {"retention.ms": "-1"}  # its records are of 1970
                admin.create_topic(other, partitions=1, replication_factor=1, configs=kept)
                self.write("w", 0, 3, topic=other)
            elif change != "nothing":
                admin.delete_topic(self.topic)
                assert wait_until(lambda: self.topic not in admin.list_topics())
                if change != "the topic is deleted":
                    admin.create_topic(self.topic, partitions=1, replication_factor=1, configs={"retention.ms": "-1"})
                    self.write("w", 0, 12 if "more" in change else 3)


CHANGES = (
    "nothing", "partitions are added", "another topic appears", "records are deleted", "all records are deleted",
    "the topic is created again", "the topic is created again with more records", "the topic is deleted",
)  # fmt: skip


def outcome(moment: str, starting: str, change: str) -> tuple[list[str], bool]:
    """What is read in the end if data may be lost, and whether some is."""
    start = EARLIER if starting == "latest" else 0
    of_batches = {FRESH: 0, **dict.fromkeys(MOMENTS[1:3], 0), **dict.fromkeys(MOMENTS[3:6], 1), MOMENTS[6]: 2}
    unread = min(start + of_batches[moment] * IN_A_BATCH, RECORDS)
    old = [f"v{n:02}" for n in range(start, RECORDS)]
    new = [f"w{n:02}" for n in range(12 if "more" in change else 3)]
    kept_from = {"nothing": 0, "records are deleted": DELETED, "all records are deleted": RECORDS}
    if moment == FRESH:
        gone = "the topic is" in change
        if starting == "latest" or change == "the topic is deleted":
            return [], False
        old = [] if gone else old[kept_from.get(change, 0) :]
        return old + (new if change not in kept_from else []), False
    if change in kept_from:
        first = max(unread, kept_from[change])
        return [*old[: unread - start], *old[first - start :]], first > unread
    if "the topic is" in change:
        return [*old[: unread - start], *([] if change == "the topic is deleted" else new)], True
    return old + new, False


@pytest.fixture
def ground(bootstrap: str, new_topic: NewTopic, produce: Produce) -> Ground:
    return Ground(bootstrap, new_topic(name="restarted"), produce)


STARTS = [*((moment, "earliest") for moment in MOMENTS), *((moment, "latest") for moment in OF_FIRST_BATCH)]


@pytest.mark.parametrize(
    ("moment", "starting", "change"),
    [
        pytest.param(*start, change, marks=[pytest.mark.check] * ((number + other) % 2))  # half, with every one of both
        for number, start in enumerate(STARTS)
        for other, change in enumerate(CHANGES)
    ],
)
def test_a_stream_that_is_killed_and_started_again_reads_each_record_once_or_says_what_is_lost(
    ground: Ground, moment: str, starting: str, change: str
) -> None:
    checkpoint = ground.killed_at(moment, starting)
    ground.change(change)
    strict, lenient = checkpoint.copy(), checkpoint.copy()
    values, lost = outcome(moment, starting, change)
    lenient.run(ground.reader(fail_on_data_loss=False, startingOffsets=starting))
    assert sorted(lenient.values) == values
    if lost:
        for _ in range(2):
            with pytest.raises(DataLost, match=ground.topic):
                strict.run(ground.reader(startingOffsets=starting))
    else:
        strict.run(ground.reader(startingOffsets=starting))
        assert strict.batches == lenient.batches


@pytest.mark.parametrize("change", ["nothing", "partitions are added", "records are deleted"])
def test_a_spark_that_does_not_tell_where_batches_start_goes_on_as_well(ground: Ground, change: str) -> None:
    checkpoint = ground.killed_at("after offsets/0", "earliest", starts_are_told=False)
    ground.change(change)
    lenient = ground.reader(fail_on_data_loss=False, startingOffsets="earliest")
    checkpoint.copy().run(lenient, starts_are_told=False)
    if change == "records are deleted":
        with pytest.raises(DataLost, match="Offsets 0 to 3"):
            checkpoint.run(ground.reader(startingOffsets="earliest"), starts_are_told=False)
        return
    checkpoint.run(ground.reader(startingOffsets="earliest"), starts_are_told=False)
    assert sorted(checkpoint.values) == outcome("after offsets/0", "earliest", change)[0]


def test_starting_offsets_that_no_longer_fit_the_topic_do_not_stop_a_query_that_has_started(ground: Ground) -> None:
    starting = json.dumps({ground.topic: {"0": 1}})
    checkpoint = ground.killed_at("after offsets/0", starting)
    ground.change("partitions are added")
    checkpoint.run(ground.reader(startingOffsets=starting))
    assert sorted(checkpoint.values) == outcome("after offsets/0", "earliest", "partitions are added")[0][1:]
    with pytest.raises(OptionError, match=f"but the subscribed ones are {ground.topic}-0, {ground.topic}-1"):
        Checkpoint().run(ground.reader(startingOffsets=starting))


def test_a_checkpoint_of_an_earlier_version_goes_on_from_its_initial_offset(ground: Ground) -> None:
    checkpoint = ground.killed_at("after offsets/0", "earliest")
    end = json.loads(checkpoint.offsets[0])
    assert end.pop(STARTING_OFFSETS) == {ground.topic: {"0": 0}}
    checkpoint.offsets = [json.dumps(end)]
    ground.change("partitions are added")
    lost = checkpoint.copy()
    checkpoint.run(ground.reader(startingOffsets="earliest"))
    assert sorted(checkpoint.values) == outcome("after offsets/0", "earliest", "partitions are added")[0]
    with pytest.raises(DataLost, match=f"does not say where the first micro-batch started, .* {IN_A_BATCH} of"):
        lost.copy().run(ground.reader(startingOffsets="latest"))
    lost.run(ground.reader(fail_on_data_loss=False, startingOffsets="latest"))
    assert [len(batch) for batch in lost.batches.values()] == [0, RECORDS - IN_A_BATCH + 2, 1]


def test_a_topic_that_a_restarted_query_names_may_be_gone_if_data_may_be_lost(ground: Ground) -> None:
    checkpoint = ground.killed_at("after offsets/0", "earliest")
    ground.change("the topic is deleted")
    with pytest.raises(OptionError, match="No topic has this name"):
        checkpoint.copy().run(ground.reader(subscribe=ground.topic))
    checkpoint.run(ground.reader(fail_on_data_loss=False, subscribe=ground.topic))
    assert checkpoint.values == []
    with pytest.raises(OptionError, match="No topic has this name"):
        Checkpoint().run(ground.reader(fail_on_data_loss=False, subscribe=ground.topic))


@pytest.mark.check
def test_spark_starts_a_query_again_that_was_killed_in_its_first_micro_batch(
    spark: "SparkSession", ground: Ground, tmp_path: Path
) -> None:
    ground.write("v", 0, RECORDS)

    def run(checkpoint: str, dies: bool = False) -> dict[int, list[str]]:
        batches: dict[int, list[str]] = {}

        def keep(frame: "DataFrame", number: int) -> None:
            batches[number] = sorted(bytes(row[0]).decode() for row in frame.select("value").collect())
            if dies:
                raise RuntimeError("killed")

        options = {"bootstrapServers": ground.bootstrap, "subscribe": ground.topic, "startingOffsets": "earliest"}
        stream = spark.readStream.format("moldau").options(**options).load()
        writer = stream.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path / checkpoint))
        run_to_end(lambda _: writer.trigger(availableNow=True).start())
        return batches

    with pytest.raises(Exception, match="killed"):
        run("checkpoint", dies=True)
    shutil.copytree(tmp_path / "checkpoint", tmp_path / "copy")
    ground.change("partitions are added")
    assert run("checkpoint") == {0: [f"v{n:02}" for n in range(RECORDS)], 1: ["w00", "w01", "w02"]}
    ground.change("records are deleted")
    with pytest.raises(Exception, match=r"Offsets 0 to 3 of .* are gone from the log"):
        run("copy")
