"""Everything that a broker says of a partition and of its groups, as plain data: what two brokers must say alike.

Batches are compared whole, header by header and record by record, so that not only what consumers see is the same.
Readers of committed records get what they would keep: what the broker names as aborted is taken out here.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from harness.patience import Deadline
from moldau.protocol.apis import DESCRIBE_CONFIGS, FETCH, FIND_COORDINATOR, LIST_OFFSETS, METADATA, OFFSET_FETCH
from moldau.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from moldau.protocol.messages.metadata import MetadataRequest
from moldau.protocol.messages.offset_fetch import OffsetFetchRequest
from tests.agreement.filling import Record, records_of
from tests.differential.batches import read_batches
from tests.end_to_end.raw import Raw

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5
KINDS = (LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED)
TRANSACTIONAL, CONTROL = 16, 32
OF_TOPIC = 1
"""Where a setting is from."""
STARTING = (14, 15, 16)

Batch = dict[str, Any]


@dataclass(frozen=True)
class Partition:
    """What one partition has for readers."""

    start: int
    end: int
    stable_end: int
    batches: list[Batch]
    committed: list[Record]
    """What is left for readers of committed records."""
    offsets: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """(timestamp, offset, leader epoch) by the time or the special number that was asked for."""


def partition_of(raw: Raw, topic: str, index: int) -> Partition:
    start, end = (look_up(raw, topic, index, kind)[1] for kind in (EARLIEST, LATEST))
    batches, _, _ = read(raw, topic, index, start, end)
    stable_end = look_up(raw, topic, index, LATEST, committed=True)[1]
    decided, aborted, last_stable = read(raw, topic, index, start, stable_end, committed=True)
    assert last_stable in (stable_end, None)
    times = sorted({record.timestamp for batch in batches for record in records_of(batch)})
    asked = [*KINDS, 0, *(near for time in times for near in (time - 1, time, time + 1))]
    offsets = {time: look_up(raw, topic, index, time) for time in asked if time >= 0 or time in KINDS}
    return Partition(start, end, stable_end, batches, without_aborted(decided, aborted, stable_end), offsets)


def read(
    raw: Raw, topic: str, index: int, start: int, end: int, committed: bool = False
) -> tuple[list[Batch], set[tuple[int, int]], int | None]:
    """All batches with offsets in start <= offset < end, the aborted transactions that were named, and the last stable
    offset."""
    batches: list[Batch] = []
    aborted: set[tuple[int, int]] = set()
    stable, at = None, start
    while at < end:
        answer = fetch(raw, topic, index, at, committed)
        assert answer.error_code == 0, (topic, at, answer.error_code)
        stable = answer.last_stable_offset
        aborted |= {(one.producer_id, one.first_offset) for one in answer.aborted_transactions or ()}
        found = [one for one in read_batches(bytes(answer.records or b"")) or [] if "cut_off_bytes" not in one]
        if not found:  # what was there is compacted away
            break
        batches += found
        at = found[-1]["base_offset"] + found[-1]["last_offset_delta"] + 1
    return batches, aborted, stable


def fetch(raw: Raw, topic: str, index: int, offset: int, committed: bool) -> PartitionData:
    part = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=100,
        max_bytes=1 << 20,
        isolation_level=int(committed),
        topics=[FetchTopic(topic=topic, partitions=[part])],
    )
    found: PartitionData = raw.ask(FETCH, 12, request).responses[0].partitions[0]
    return found


def without_aborted(batches: list[Batch], aborted: set[tuple[int, int]], end: int) -> list[Record]:
    """What a consumer of committed records keeps: as KIP-98 has it, from the list of aborted transactions."""
    waiting = sorted(aborted, key=lambda one: one[1])
    dropping: set[int] = set()
    kept: list[Record] = []
    for batch in batches:
        last = batch["base_offset"] + batch["last_offset_delta"]
        while waiting and waiting[0][1] <= last:
            dropping.add(waiting.pop(0)[0])
        if batch["attributes"] & CONTROL:
            if batch["records"] and batch["records"][0]["key"] == b"\0\0\0\0":
                dropping.discard(batch["producer_id"])
        elif not (batch["attributes"] & TRANSACTIONAL and batch["producer_id"] in dropping):
            kept += [record for record in records_of(batch) if record.offset < end]
    return kept


def look_up(raw: Raw, topic: str, index: int, time: int, committed: bool = False) -> tuple[int, int, int]:
    part = ListOffsetsPartition(partition_index=index, timestamp=time)
    request = ListOffsetsRequest(
        replica_id=-1, isolation_level=int(committed), topics=[ListOffsetsTopic(name=topic, partitions=[part])]
    )
    answer = raw.ask(LIST_OFFSETS, 9, request).topics[0].partitions[0]
    assert answer.error_code == 0, (topic, time, answer)
    # where the log ends belongs to whoever leads next
    epoch = -1 if time in (LATEST, EARLIEST, EARLIEST_LOCAL) else answer.leader_epoch
    return answer.timestamp, answer.offset, epoch


def committed_offsets(raw: Raw, group: str) -> dict[tuple[str, int], tuple[int, str | None]]:
    """(offset, metadata) by partition."""
    until = Deadline()
    while True:  # the coordinator may still read its topic
        coordinator = raw.ask(FIND_COORDINATOR, 1, FindCoordinatorRequest(key=group))
        answer = raw.ask(OFFSET_FETCH, 7, OffsetFetchRequest(group_id=group, topics=None))
        if (coordinator.error_code not in STARTING and answer.error_code not in STARTING) or until.passed:
            break
    assert answer.error_code == 0, answer
    return {
        (topic.name, part.partition_index): (part.committed_offset, part.metadata)
        for topic in answer.topics
        for part in topic.partitions
    }


def topic_ids(raw: Raw) -> dict[str, tuple[str, int]]:
    """The id and the number of partitions of every topic that is not internal."""
    answer = raw.ask(METADATA, 12, MetadataRequest(topics=None))
    return {
        topic.name: (str(topic.topic_id), len(topic.partitions)) for topic in answer.topics if not topic.is_internal
    }


def settings(raw: Raw, topics: Iterable[str]) -> dict[str, dict[str, str | None]]:
    """What each topic says for itself."""
    asked = [DescribeConfigsResource(resource_type=2, resource_name=name) for name in topics]
    answer = raw.ask(DESCRIBE_CONFIGS, 4, DescribeConfigsRequest(resources=asked))
    return {
        result.resource_name: {one.name: one.value for one in result.configs if one.config_source == OF_TOPIC}
        for result in answer.results
    }


def has_leader(raw: Raw, topic: str) -> bool:
    """Whether the leader of its first partition answers."""
    part = ListOffsetsPartition(partition_index=0, timestamp=LATEST)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[part])])
    return bool(raw.ask(LIST_OFFSETS, 9, request).topics[0].partitions[0].error_code == 0)
