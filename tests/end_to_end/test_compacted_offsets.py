"""The offsets topic is compacted while groups commit, and read again by brokers that were stopped and killed."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.brokers import Broker
from harness.patience import Deadline, wait_until
from moldau.protocol.apis import FIND_COORDINATOR, OFFSET_COMMIT, OFFSET_DELETE, OFFSET_FETCH
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from moldau.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from moldau.protocol.messages.offset_fetch import OffsetFetchRequest
from tests.end_to_end.raw import Raw

OFFSETS = "__consumer_offsets"
SEGMENT_BYTES = 1 << 20
NOTE = "n" * 4000
GROUPS = [f"group-{number}" for number in range(10)]
STARTING = (14, 15, 16)
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.segment.bytes": str(SEGMENT_BYTES),
    "log.cleaner.backoff.ms": "50",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.cleaner.delete.retention.ms": "0",
    "log.segment.delete.delay.ms": "0",
}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    ours = Broker(tmp_path, SETTINGS)
    ours.start()
    yield ours
    ours.kill()


def soon(holds: Callable[[], bool], what: str) -> None:
    assert wait_until(holds, 60), what


def answered(raw: Raw, group: str, ask: Callable[[], int]) -> None:
    """Ask until the coordinator has read its topic."""
    deadline = Deadline()
    while not deadline.passed:
        raw.ask(FIND_COORDINATOR, 1, FindCoordinatorRequest(key=group))
        error = ask()
        if error not in STARTING:
            assert error == 0
            return
    raise AssertionError("the coordinator did not come up")


def commit(raw: Raw, group: str, partition: int, offset: int) -> None:
    part = OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset, committed_metadata=NOTE)
    request = OffsetCommitRequest(group_id=group, topics=[OffsetCommitRequestTopic(name="read", partitions=[part])])
    answered(raw, group, lambda: raw.ask(OFFSET_COMMIT, 7, request).topics[0].partitions[0].error_code)


def forget(raw: Raw, group: str, partition: int) -> None:
    part = OffsetDeleteRequestPartition(partition_index=partition)
    request = OffsetDeleteRequest(group_id=group, topics=[OffsetDeleteRequestTopic(name="read", partitions=[part])])
    answered(raw, group, lambda: raw.ask(OFFSET_DELETE, 0, request).error_code)


def committed(broker: Broker) -> dict[str, dict[int, int]]:
    found = {}
    with Raw(broker.address) as raw:
        for group in GROUPS:
            answers = []

            def ask(group: str = group, answers: list[object] = answers) -> int:
                answer = raw.ask(OFFSET_FETCH, 7, OffsetFetchRequest(group_id=group, topics=None))
                answers.append(answer)
                return int(answer.error_code)

            answered(raw, group, ask)
            topics = answers[-1].topics  # type: ignore[attr-defined]
            assert all(part.metadata == NOTE for topic in topics for part in topic.partitions)
            found[group] = {
                part.partition_index: part.committed_offset for topic in topics for part in topic.partitions
            }
    return found


def test_committed_offsets_are_right_after_compaction_whatever_became_of_the_broker(broker: Broker) -> None:
    expected: dict[str, dict[int, int]] = {group: {} for group in GROUPS}
    with Raw(broker.address) as raw:
        raw.create_topic("read", partitions=3)
    for turn, leave in enumerate((broker.stop, broker.kill, broker.stop)):
        with Raw(broker.address) as raw:
            for number in range(40):
                for group in GROUPS:
                    partition = number % 3
                    expected[group][partition] = 1000 * turn + number
                    commit(raw, group, partition, expected[group][partition])
            for group in GROUPS[turn::5]:
                del expected[group][turn]
                forget(raw, group, turn)
        soon(lambda: broker.log_bytes(OFFSETS) < 1.5 * SEGMENT_BYTES, "the offsets topic was not compacted")
        assert committed(broker) == expected
        leave()
        broker.start()
        assert committed(broker) == expected
    assert "compacted up to offset" in broker.log()
    assert "left as it is" not in broker.log()
