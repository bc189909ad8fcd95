"""DescribeLogDirs (key 35), versions 1 to 5: the size of each partition in each log folder.

Every folder in log.dirs has a result; an offline folder has KAFKA_STORAGE_ERROR and no partitions. A null list means
all partitions. The size is that of the records. A partition that moves to another folder is in both: in the new one as
a future replica (`is_future_key`), whose offset lag is what it lacks of the log; other lags are 0. From version 4 on
the result has the size of the volume (KIP-827). A client that may not describe the cluster is answered
CLUSTER_AUTHORIZATION_FAILED without folders; before version 3 no field has the error.
"""

from collections.abc import Mapping
from itertools import chain

from moldau.errors import ErrorCode
from moldau.names import TopicPartition
from moldau.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from moldau.replication.replicas import Replicas
from moldau.replication.results import LogDirectory
from moldau.requests.access import DESCRIBE_CLUSTER
from moldau.requests.session import Call
from moldau.turns import Steps

NARROW = 1_000
"""A request about at most as many partitions looks at no others."""


class DescribeLogDirs:
    def __init__(self, replicas: Replicas):
        self._replicas = replicas

    async def __call__(
        self, request: DescribeLogDirsRequest, call: Call
    ) -> DescribeLogDirsResponse | Steps[DescribeLogDirsResponse]:
        if not call.may(DESCRIBE_CLUSTER):
            return DescribeLogDirsResponse(error_code=DESCRIBE_CLUSTER.denied)
        return self._response(request, await self._replicas.log_directories(_narrow(request)))

    def _response(
        self, request: DescribeLogDirsRequest, directories: list[LogDirectory]
    ) -> Steps[DescribeLogDirsResponse]:
        wanted: dict[TopicPartition, None] | None = None
        if request.topics is not None:
            wanted = {}
            for topic in request.topics:
                yield
                for number in topic.partitions:
                    wanted[TopicPartition(topic.topic, number)] = None
                    yield
        response = DescribeLogDirsResponse()
        for directory in directories:
            response.results.append((yield from _result(directory, wanted)))
        return response


def _narrow(request: DescribeLogDirsRequest) -> list[TopicPartition] | None:
    """The partitions of a request about few, else None."""
    if request.topics is None or len(request.topics) > NARROW:
        return None
    if sum(len(topic.partitions) for topic in request.topics) > NARROW:
        return None
    return [TopicPartition(topic.topic, number) for topic in request.topics for number in topic.partitions]


def _result(directory: LogDirectory, wanted: Mapping[TopicPartition, None] | None) -> Steps[DescribeLogDirsResult]:
    if directory.sizes is None:
        return DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=directory.path)
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    here = ((tp, size, 0, False) for tp, size in directory.sizes.items())
    coming = ((tp, copy.size, copy.offset_lag, True) for tp, copy in directory.copies.items())
    for tp, size, lag, is_future in chain(here, coming):
        if wanted is None or tp in wanted:
            part = DescribeLogDirsPartition(
                partition_index=tp.partition, partition_size=size, offset_lag=lag, is_future_key=is_future
            )
            topics.setdefault(tp.topic, []).append(part)
        yield
    return DescribeLogDirsResult(
        log_dir=directory.path,
        topics=[DescribeLogDirsTopic(name=name, partitions=parts) for name, parts in topics.items()],
        total_bytes=directory.total_bytes,
        usable_bytes=directory.usable_bytes,
    )
