"""What one Spark task reads: the records of an offset range, as Arrow batches of at most `BATCH_ROWS` rows."""

import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import InputPartition

from moldau.client.fetching import read_columns
from moldau.errors import ErrorCode, KafkaError, LogTruncated
from moldau.pipeline.options import Options
from moldau.pipeline.positions import DataLost, Subscribed, earliest, within_log
from moldau.pipeline.ranges import OffsetRange, cut
from moldau.pipeline.sentences import in_a_sentence
from moldau.pipeline.source.filters import Narrowing
from moldau.pipeline.worker_process import keep_imported

if TYPE_CHECKING:
    import pyarrow

BATCH_ROWS = 32_768
TOPIC_GONE = (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


class RangePartition(InputPartition):
    """The offset range that one Spark task reads, and the id of its topic if brokers give topics ids."""

    def __init__(self, part: OffsetRange, topic_id: uuid.UUID | None = None):
        super().__init__(part)
        self.part = part
        self.topic_id = topic_id


def task_partitions(ranges: list[OffsetRange], subscribed: Subscribed, options: Options) -> list[InputPartition]:
    """The tasks for these ranges of subscribed partitions: at least minPartitions, each of at most
    maxRecordsPerPartition offsets. The same ranges and options make the same tasks, as the replay of a stream's batch
    requires."""
    total = sum(part.size for part in ranges)
    most = options.records_per_partition_max or max(1, total)
    if len(cut(ranges, most)) < options.partitions_min:
        most = max(1, min(most, total // options.partitions_min))
    if most < max((part.size for part in ranges), default=0):
        ranges = cut(ranges, most)
    return [RangePartition(part, subscribed[part.topic_partition]) for part in ranges]


def read_range(
    options: Options, partition: InputPartition, narrowing: Narrowing | None = None
) -> Iterator["pyarrow.RecordBatch"]:
    """One task's records. Offsets deleted since planning are an error with failOnDataLoss, else skipped; gaps that
    compaction and transactions left are neither. Records of a topic that was created again since are never among them.
    """
    if not isinstance(partition, RangePartition):
        return  # Spark passes one empty partition if the plan was empty
    times = None if narrowing is None else (narrowing.time_low_us, narrowing.time_high_us)
    timed = times is not None and times != (None, None)
    decoded = {*options.columns, "offset", *(["timestamp"] if timed else [])}
    names, part, position = list(options.columns), partition.part, partition.part.start
    with in_a_sentence():
        while position < part.end:
            try:
                for batch in read_columns(
                    options.bootstrap_servers, part.topic, part.partition, position, part.end,
                    isolation_level=options.isolation_level, timeout_ms=options.timeout_ms,
                    client_id=options.client_id, max_bytes=options.fetch_max_bytes, columns=decoded,
                    topic_id=partition.topic_id,
                ):  # fmt: skip
                    chosen = (_within(batch, *times) if timed and times else batch).select(names)
                    keep_imported()
                    for at in range(0, chosen.num_rows, BATCH_ROWS):
                        yield chosen.slice(at, BATCH_ROWS)
                    position = batch.column("offset")[-1].as_py() + 1
                return
            except KafkaError as error:
                if error.code in TOPIC_GONE or (isinstance(error, LogTruncated) and error.is_new_topic):
                    if options.fail_on_data_loss or position > part.start:
                        raise DataLost(
                            f"Topic {part.topic} was deleted while offsets {part.start} to {part.end - 1} of partition "
                            f"{part.partition} were read."
                        ) from None
                    return
                if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                    raise
                first = earliest(
                    options.bootstrap_servers, [part.topic_partition], timeout_ms=options.timeout_ms,
                    client_id=options.client_id,
                )  # fmt: skip
                start = within_log({part.topic_partition: position}, first, options.fail_on_data_loss)
                if start[part.topic_partition] == position:
                    raise
                position = start[part.topic_partition]


def _within(batch: Any, low_us: int | None, high_us: int | None) -> Any:
    """The rows from `low_us` to `high_us`, both included."""
    import pyarrow
    import pyarrow.compute as compute

    from moldau.records.arrays import filled

    times = batch.column("timestamp").cast(pyarrow.int64())
    kept = compute.is_valid(times)
    if low_us is not None:
        kept = compute.and_(kept, compute.greater_equal(times, filled(low_us, times.type, len(times))))
    if high_us is not None:
        kept = compute.and_(kept, compute.less_equal(times, filled(high_us, times.type, len(times))))
    return batch.filter(kept)
