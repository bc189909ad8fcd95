"""Some values of a topic, from which its columns are inferred: the first and the last of what is to be loaded."""

from collections.abc import Iterator, Sequence

from moldau.client.fetching import read_columns
from moldau.pipeline.decoding.json_fields import Sampled
from moldau.pipeline.ranges import OffsetRange

RECORDS_MAX = 20_000
RECORDS_OF_PARTITION_MIN = 100
BYTES_MAX = 64 * 1024 * 1024


def sampled(
    bootstrap: str, ranges: Sequence[OffsetRange], isolation_level: str = "read_committed", of: str = "value"
) -> Iterator[Sampled]:
    """Records with a value (or key, `of`) from both ends of each range. Raises `KafkaError`."""
    share = max(RECORDS_OF_PARTITION_MIN, RECORDS_MAX // max(1, len(ranges))) // 2
    left = BYTES_MAX
    for part in ranges:
        middle = min(part.end, part.start + share)
        for start, end in ((part.start, middle), (max(middle, part.end - share), part.end)):
            if start >= end or left <= 0:
                continue
            for batch in read_columns(bootstrap, *part.topic_partition, start, end, isolation_level=isolation_level):
                columns = (batch.column(name).to_pylist() for name in (of, "offset"))
                for value, offset in zip(*columns, strict=True):
                    if value is not None and left > 0:
                        left -= len(value)  # of each record: how many come in a batch is chance
                        yield Sampled(value, part.partition, offset)
                if left <= 0:
                    break
