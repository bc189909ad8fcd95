"""A round of forgetting looks at a bounded number of groups and offsets in one go, and yet at all of them."""

import uuid
from collections.abc import Iterator

from moldau.coordinators.decision import Decision, Now
from moldau.coordinators.groups.settings import GroupCoordinatorSettings
from moldau.coordinators.groups.shard import EXPIRY_LOOKS, EXPIRY_PAUSE_MS, GroupShard
from moldau.coordinators.offsets.records import is_offset, offset_record
from moldau.names import TopicPartition
from moldau.protocol.internal import OffsetCommitValue
from tests.coordinators.settings import group_settings

GROUPS = 3 * EXPIRY_LOOKS
INTERVAL_MS, RETENTION_MS = 1000, 10_000


def test_a_round_over_many_groups_leaves_pauses_and_misses_none() -> None:
    settings = group_settings(offsets_retention_ms=RETENTION_MS, offsets_retention_check_interval_ms=INTERVAL_MS)
    shard = GroupShard(settings, str)
    for number in range(GROUPS):
        value = OffsetCommitValue(offset=1, metadata="", commit_timestamp=0, topic_id=uuid.UUID(int=7))
        shard.apply(offset_record(f"g{number}", TopicPartition("t", 0), value), Now(0, 0))
    list(shard.start(Now(0, 0), Decision()))
    goes = []
    due_ms = shard.next_ms()
    while len(list(shard.offsets.groups())) > 0:
        assert due_ms is not None
        now = Now(due_ms, due_ms + RETENTION_MS)
        out = shard.tick(now)
        assert out is not None
        assert shard.tick(now) is None
        assert sum(is_offset(record.key) for record in out.records) <= EXPIRY_LOOKS
        for record in out.records:
            shard.apply(record, now)
        goes.append(due_ms)
        due_ms = shard.next_ms()
    assert goes == [INTERVAL_MS + at * EXPIRY_PAUSE_MS for at in range(len(goes))]
    assert len(goes) > 2
    assert list(shard.listed()) == []
    assert due_ms == goes[-1] + INTERVAL_MS


def test_the_offsets_of_a_deleted_topic_go_in_parts() -> None:
    shard = GroupShard(GroupCoordinatorSettings(), str)
    value = OffsetCommitValue(offset=1, metadata="", commit_timestamp=0, topic_id=uuid.UUID(int=7))
    for number in range(GROUPS):
        shard.apply(offset_record(f"g{number}", TopicPartition("t", 0), value), Now(0, 0))
        shard.apply(offset_record(f"g{number}", TopicPartition("other", 0), value), Now(0, 0))
    parts = []
    for out in shard.forget_topics(frozenset({"t"}), Now(0, 0)):
        parts.append(len(out.records))
        for record in out.records:
            shard.apply(record, Now(0, 0))
    assert len(parts) > 2
    assert max(parts) <= EXPIRY_LOOKS
    assert sum(parts) == GROUPS
    assert {tp.topic for number in range(GROUPS) for tp in shard.offsets.of(f"g{number}")} == {"other"}


class Looked(frozenset[str]):
    """Names that count how often somebody goes through all of them."""

    times = 0

    def __iter__(self) -> Iterator[str]:
        Looked.times += 1
        return super().__iter__()


def test_what_a_group_costs_does_not_depend_on_how_many_topics_were_deleted() -> None:
    shard = GroupShard(GroupCoordinatorSettings(), str)
    value = OffsetCommitValue(offset=1, metadata="", commit_timestamp=0, topic_id=uuid.UUID(int=7))
    for number in range(100):
        shard.apply(offset_record(f"g{number}", TopicPartition("t", 0), value), Now(0, 0))
    gone = sum(len(out.records) for out in shard.forget_topics(Looked({"t", "u", "v"}), Now(0, 0)))
    assert gone == 100
    assert Looked.times == 1
