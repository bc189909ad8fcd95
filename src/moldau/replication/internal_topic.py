"""An internal topic as coordinators see it: partitions to be read from the start, and appended to until it is
committed."""

from collections.abc import AsyncIterator
from functools import partial

from moldau.errors import ErrorCode, KafkaError
from moldau.log.log import Log
from moldau.records.batch import batches
from moldau.replication.hosted import Hosted
from moldau.replication.partitions import Partitions
from moldau.runtime import Runtime


class InternalTopic:
    def __init__(self, name: str, partitions: Partitions, read_bytes: int, runtime: Runtime):
        self._name = name
        self._partitions = partitions
        self._read_bytes = read_bytes
        self._runtime = runtime

    def _hosted(self, partition: int) -> Hosted:
        hosted = self._partitions.find(self._name, None, partition)
        if hosted is None or not hosted.state.leads:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return hosted

    async def read_all(self, partition: int) -> AsyncIterator[bytes]:
        """Whole batches from the start of the log to its end, in chunks read off the loop. Raises `KafkaError`."""
        hosted = self._hosted(partition)
        offset = int(hosted.log.log_start_offset)
        while offset < hosted.high_watermark:
            read: list[bytes] = []
            next_offset = await self._runtime.run(partial(_read, hosted.log, offset, self._read_bytes, read))
            if next_offset is None:  # what was behind `offset` is compacted away
                return
            offset = next_offset
            yield read.pop()  # nothing here keeps the bytes while others have their turn

    async def append(self, partition: int, batch: bytearray) -> None:
        """Append one batch; returns once it is committed. Raises `KafkaError`."""
        hosted = self._hosted(partition)
        hosted.append_own(batch, self._runtime.clock.now_ms())
        await hosted.flush_if_due(len(batch))


def _read(log: Log, offset: int, max_bytes: int, read: list[bytes]) -> int | None:
    """Add whole batches from `offset` on to `read`; returns the offset behind them, None if there are none."""
    chunk = log.read_batches(offset, max_bytes)
    end, next_offset = 0, None
    for position, header in batches(chunk):
        end, next_offset = position + header.size, header.next_offset
    read.append(chunk[:end])
    return next_offset
