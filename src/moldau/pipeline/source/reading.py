"""What one Spark task reads: the records of an offset range, as Arrow batches of at most `BATCH_ROWS` rows."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from moldau.client.fetching import read_columns
from moldau.errors import ErrorCode, KafkaError
from moldau.pipeline.options import Options
from moldau.pipeline.positions import earliest, within_log
from moldau.pipeline.ranges import OffsetRange, cut

if TYPE_CHECKING:
    import pyarrow

BATCH_ROWS = 32_768


class RangePartition(InputPartition):
    """The offset range that one Spark task reads."""

    def __init__(self, part: OffsetRange):
        super().__init__(part)
        self.part = part


def task_partitions(ranges: list[OffsetRange], partitions_min: int) -> list[InputPartition]:
    if 0 < len(ranges) < partitions_min:
        ranges = cut(ranges, max(1, sum(part.size for part in ranges) // partitions_min))
    return [RangePartition(part) for part in ranges]


def read_range(options: Options, partition: InputPartition) -> Iterator["pyarrow.RecordBatch"]:
    """One task's records. Offsets deleted since planning are an error with failOnDataLoss, else skipped."""
    if not isinstance(partition, RangePartition):
        return  # Spark passes one empty partition if the plan was empty
    part = partition.part
    position = part.start
    while True:
        try:
            for batch in read_columns(
                options.bootstrap_servers, part.topic, part.partition, position, part.end,
                isolation_level=options.isolation_level,
            ):  # fmt: skip
                for at in range(0, batch.num_rows, BATCH_ROWS):
                    yield batch.slice(at, BATCH_ROWS)
                position = batch.column("offset")[-1].as_py() + 1
            return
        except KafkaError as error:
            if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            first = earliest(options.bootstrap_servers, [part.topic_partition])
            start = within_log({part.topic_partition: position}, first, options.fail_on_data_loss)
            if start[part.topic_partition] == position:
                raise
            position = start[part.topic_partition]
            if position >= part.end:
                return
