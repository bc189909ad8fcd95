"""What the cleaner leaves of the offsets topic means what was there before: offsets in transactions, plain ones between
them, deletions, markers in any order, cleaned as often as you like."""

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.logs import NOW_MS, HandClock
from harness.tiers import examples
from moldau.coordinators.decision import InternalRecord, Now
from moldau.coordinators.groups.settings import GroupCoordinatorSettings
from moldau.coordinators.groups.shard import GroupShard
from moldau.coordinators.offsets.records import offset_record
from moldau.coordinators.replaying import steps
from moldau.log.log import Log
from moldau.names import TopicPartition
from moldau.protocol.internal import OffsetCommitValue
from moldau.records.batch import NO_PRODUCER_ID, TRANSACTIONAL_BIT, Marker, Row, batches, encode_batch
from moldau.records.validation import Rules, check_own
from moldau.runtime import Runtime
from moldau.simulation.disk import SimulatedDisk
from tests.coordinators.groups.scene import TOPIC_ID
from tests.log.compaction.compacting import compact, compacted_log

KEYS, PRODUCERS = st.integers(0, 2), st.integers(1, 2)
WRITTEN = st.one_of(
    st.tuples(st.just("plain"), KEYS),
    st.tuples(st.just("deleted"), KEYS),
    st.tuples(st.just("in transaction"), KEYS, PRODUCERS),
    st.tuples(st.just("in transaction"), KEYS, PRODUCERS),
    st.tuples(st.just("ends"), st.booleans(), PRODUCERS),
    st.just(("cleaned",)),
)
DAY_MS = 86_400_000


def record(key: int, offset: int | None) -> InternalRecord:
    value = None if offset is None else OffsetCommitValue(offset=offset, metadata="", topic_id=TOPIC_ID)
    return offset_record("g", TopicPartition("t", key), value)


def append(log: Log, written: InternalRecord, now_ms: int, producer_id: int = NO_PRODUCER_ID) -> None:
    batch = memoryview(
        encode_batch([Row(*written, now_ms)])
        if producer_id == NO_PRODUCER_ID
        else encode_batch(
            [Row(*written, now_ms)], attributes=TRANSACTIONAL_BIT, producer_id=producer_id, producer_epoch=0
        )
    )
    checked = check_own(batch, Rules(), now_ms)
    assert not checked.error
    assert not log.append(batch, checked, 0, now_ms).error


def read_back(log: Log) -> tuple[dict[TopicPartition, int], frozenset[TopicPartition]]:
    shard, now, at = GroupShard(GroupCoordinatorSettings(), str), Now(0, 0), int(log.log_start_offset)
    while chunk := log.read_batches(at, 1 << 20):
        for step in steps(chunk):
            for one in step.records:
                if step.producer_id == NO_PRODUCER_ID:
                    shard.apply(one, now)
                else:
                    shard.apply_pending(step.producer_id, one, now)
            if step.commits is not None:
                shard.end(step.producer_id, step.commits, now)
        at = max(header.next_offset for _, header in batches(chunk))
    offsets = {tp: value.offset for tp, value in shard.offsets.of("g").items()}
    return offsets, shard.offsets.pending_of("g")


@settings(max_examples=examples(15, 20), suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(WRITTEN, min_size=3, max_size=40))
def test_what_is_left_means_what_was_there(story: list[tuple[object, ...]]) -> None:
    clock = HandClock()
    runtime = Runtime(clock=clock, disk=SimulatedDisk())
    log = compacted_log(Path("/data/t-0"), NOW_MS, runtime, delete_retention_ms=DAY_MS)
    for number, (what, *more) in enumerate(story):
        clock.ms += DAY_MS
        match what, *more:
            case "plain", int(key):
                append(log, record(key, number), clock.ms)
            case "deleted", int(key):
                append(log, record(key, None), clock.ms)
            case "in transaction", int(key), int(producer):
                append(log, record(key, number), clock.ms, producer)
            case "ends", bool(commits), int(producer):
                assert not log.append_marker(producer, 0, Marker(commits, 0), 0, 0, clock.ms).error
            case "cleaned", *_:
                before = read_back(log)
                compact(log)
                assert read_back(log) == before
    before = read_back(log)
    compact(log)
    assert read_back(log) == before
    log.close()
