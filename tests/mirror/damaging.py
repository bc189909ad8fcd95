"""A log with a batch that a disk has damaged."""

from pathlib import Path

from moldau.names import TopicPartition
from moldau.records.batch import batches
from moldau.testing import Broker


def damage(broker: Broker, tp: TopicPartition, offset: int) -> None:
    """Turn a bit of the batch that holds this offset, while the broker is stopped."""
    broker.stop()
    segment = Path(broker.data_dir) / str(tp) / f"{0:020}.log"
    data = bytearray(segment.read_bytes())
    for at, header in batches(memoryview(data)):
        if header.base_offset <= offset <= header.last_offset:
            last = at + header.size - 1
    data[last] ^= 1
    segment.write_bytes(data)
    broker.start()
