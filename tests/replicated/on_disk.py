"""What stopped brokers have of a partition on their disks."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from harness.brokers import Broker
from moldau.log import checkpoints
from moldau.log.file_names import LOG_SUFFIX, base_of
from moldau.names import TopicPartition
from moldau.records.batch import LOG_OVERHEAD, batches, crc_holds
from moldau.runtime import RealDisk


def assert_replicas_are_equal(brokers: Iterable[Broker], topic: str, ends: dict[int, int]) -> None:
    """Every replica of each partition has the same bytes from the greatest log start on, up to its end."""
    folders = [broker.data for broker in brokers]
    for partition, end in ends.items():
        tp = TopicPartition(topic, partition)
        start = max(log_start(folder, tp) for folder in folders)
        found = {str(folder): digest(folder / str(tp), start, end) for folder in folders}
        assert len(set(found.values())) == 1, f"{tp} from {start} to {end}: {found}"
        assert found.popitem()[1][1] == end, f"{tp} ends at {found} instead of {end}"


def log_start(data: Path, tp: TopicPartition) -> int:
    segments = [base_of(path.name) for path in (data / str(tp)).glob(f"*{LOG_SUFFIX}")]
    return max(min(segments), checkpoints.read_offsets(RealDisk(), data / checkpoints.LOG_STARTS).get(tp, 0))


def digest(folder: Path, start: int, end: int) -> tuple[str, int]:
    """A hash of the batches whose offsets are from `start` up to `end`, and where the last one ends."""
    seen, at = hashlib.sha256(), start
    for path in sorted(folder.glob(f"*{LOG_SUFFIX}")):
        data = path.read_bytes()
        for position, header in batches(data):
            if header.base_offset < start or header.next_offset > end:
                continue
            assert crc_holds(data, position), f"{path} at {position}"
            assert header.base_offset >= at, f"{path}: offset {header.base_offset} after {at}"
            seen.update(data[position : position + header.batch_length + LOG_OVERHEAD])
            at = header.next_offset
    return seen.hexdigest(), at
