"""DescribeLogDirs (API key 35): request and response, in all versions."""

from moldau.protocol.schema import ARRAY, BOOL, INT16, INT32, INT64, STRING, message


@message
class DescribableLogDirTopic:
    topic: str = STRING()
    partitions: list[int] = ARRAY(INT32)


@message
class DescribeLogDirsRequest:
    topics: list[DescribableLogDirTopic] | None = ARRAY(DescribableLogDirTopic, nullable=0)


@message
class DescribeLogDirsPartition:
    partition_index: int = INT32()
    partition_size: int = INT64()
    offset_lag: int = INT64()
    is_future_key: bool = BOOL()


@message
class DescribeLogDirsTopic:
    name: str = STRING()
    partitions: list[DescribeLogDirsPartition] = ARRAY(DescribeLogDirsPartition)


@message
class DescribeLogDirsResult:
    error_code: int = INT16()
    log_dir: str = STRING()
    topics: list[DescribeLogDirsTopic] = ARRAY(DescribeLogDirsTopic)
    total_bytes: int = INT64(since=4, default=-1)
    usable_bytes: int = INT64(since=4, default=-1)
    is_cordoned: bool = BOOL(since=5)


@message
class DescribeLogDirsResponse:
    throttle_time_ms: int = INT32()
    error_code: int = INT16(since=3)
    results: list[DescribeLogDirsResult] = ARRAY(DescribeLogDirsResult)
