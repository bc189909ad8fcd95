"""Offsets that are committed in transactions, beside those that are not, under deletions and crashes.

Few groups, partitions and producers, so that what is rare in `test_state_machine` happens all the time: a commit
between a transaction's and its marker, two transactions that change one offset, a deletion before the marker.
"""

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from moldau.coordinators.decision import InternalRecord, TransactionEnd
from moldau.coordinators.groups.settings import GroupCoordinatorSettings
from moldau.coordinators.offsets.messages import NewOffset, OffsetsToCommit, TransactionalOffsetCommit
from moldau.coordinators.offsets.records import offset_record, read_offset
from moldau.coordinators.replaying import ReplayStep, steps
from moldau.names import TopicPartition
from moldau.protocol.internal import OffsetCommitValue
from moldau.records.batch import NO_PRODUCER_ID, TRANSACTIONAL_BIT, Row, encode_batch, encode_marker
from tests.coordinators.groups.scene import TOPIC_ID, Stage
from tests.coordinators.groups.transactional_model import Key, offsets_of
from tests.coordinators.replayed import Replaying
from tests.coordinators.settings import group_settings
from tests.coordinators.slow_log import OnASlowLog

GROUPS, PARTITIONS, PRODUCERS = st.sampled_from(["g", "h"]), st.integers(0, 1), st.integers(1, 3)


def batch_of(written: InternalRecord | ReplayStep) -> bytes:
    """The bytes of what stands in a stage's log."""
    if isinstance(written, InternalRecord):
        return bytes(encode_batch([Row(written.key, written.value, 1)]))
    if written.commits is not None:
        return bytes(encode_marker(written.producer_id, 0, written.commits, 0, 1))
    rows = [Row(record.key, record.value, 1) for record in written.records]
    return bytes(encode_batch(rows, attributes=TRANSACTIONAL_BIT, producer_id=written.producer_id, producer_epoch=0))


class OffsetsInTransactions(OnASlowLog):
    @initialize()
    def begin(self) -> None:
        hour_ms = 3_600_000
        self.stage = Stage(group_settings(offsets_retention_ms=hour_ms, offsets_retention_check_interval_ms=hour_ms))
        self.commits = 0

    def _offset(self, partition: int) -> list[NewOffset]:
        self.commits += 1
        return [NewOffset(TopicPartition("t", partition), self.commits, -1, "", TOPIC_ID)]

    @rule(group=GROUPS, partition=PARTITIONS)
    def commits(self, group: str, partition: int) -> None:
        ask = OffsetsToCommit(
            group_id=group,
            member_id="",
            instance_id=None,
            generation=-1,
            retention_ms=-1,
            offsets=self._offset(partition),
        )
        self.stage.carry_out(self.stage.shard.commit(ask, self.stage.ticket(), self.stage.now))

    @rule(group=GROUPS, partition=PARTITIONS, producer=PRODUCERS)
    def commits_in_a_transaction(self, group: str, partition: int, producer: int) -> None:
        ask = TransactionalOffsetCommit(
            group_id=group,
            producer_id=producer,
            epoch=0,
            member_id="",
            instance_id=None,
            generation=-1,
            offsets=self._offset(partition),
        )
        ticket = self.stage.ticket()
        self.stage.carry_out(self.stage.shard.commit_in_transaction(ask, None, ticket, self.stage.now))

    @rule(producer=PRODUCERS, commits=st.booleans())
    def a_transaction_ends(self, producer: int, commits: bool) -> None:
        ending = TransactionEnd(producer, 0, 0, commits, 2)
        self.stage.carry_out(self.stage.shard.end_transaction(ending, self.stage.ticket(), self.stage.now))

    @rule(group=GROUPS)
    def deletes_group(self, group: str) -> None:
        self.stage.carry_out(self.stage.shard.delete_groups([group], self.stage.ticket(), self.stage.now))

    @rule(group=GROUPS, partition=PARTITIONS)
    def deletes_offset(self, group: str, partition: int) -> None:
        asked, ticket = [TopicPartition("t", partition)], self.stage.ticket()
        self.stage.carry_out(self.stage.shard.delete_offsets(group, asked, ticket, self.stage.now))

    @rule()
    def topic_is_deleted(self) -> None:
        for out in self.stage.shard.forget_topics(frozenset({"t"}), self.stage.now):
            self.stage.carry_out(out)

    @rule(minutes=st.integers(1, 90))
    def time_passes(self, minutes: int) -> None:
        waiting = {group: self.stage.shard.offsets.pending_of(group) for group in ("g", "h")}
        self.stage.wait(minutes * 60_000)
        assert waiting == {group: self.stage.shard.offsets.pending_of(group) for group in ("g", "h")}
        assert all(group in self.stage.shard.classic.live for group in ("g", "h") if waiting[group])

    @rule()
    def broker_dies(self) -> None:
        before = set(self.stage.shard.classic.live)
        self.stage.crash()
        assert before >= set(self.stage.shard.classic.live), "nothing that was deleted comes back"

    @invariant()
    def what_counts_is_what_stands_last_in_the_log(self) -> None:
        if not hasattr(self, "stage"):
            return
        counts, waits = offsets_of(self.stage.log)
        offsets = self.stage.shard.offsets
        assert counts == {(g, tp): v.offset for g in offsets.groups() for tp, v in offsets.of(g).items()}
        assert waits == {(g, tp) for g in offsets.groups_in_transactions() for tp in offsets.pending_of(g)}
        live = self.stage.shard.classic.live
        assert all(group in live for group in ("g", "h") if offsets.has_any(group))

    def teardown(self) -> None:
        """What is read back from bytes is the same, for whoever reads them."""
        if not hasattr(self, "stage"):
            return
        chunk = b"".join(map(batch_of, self.stage.log))
        read: list[InternalRecord | ReplayStep] = []
        for step in steps(chunk):
            if step.producer_id == NO_PRODUCER_ID:
                read += step.records
            else:
                read += [ReplayStep([record], step.producer_id) for record in step.records] or [step]
        assert read == self.stage.log
        seen: dict[Key, int] = {}
        for record in Replaying().records(chunk):
            known = read_offset(record) if record.key[1] <= 1 else None
            if known is not None and known.value is not None:
                seen[known.group, known.partition] = known.value.offset
            elif known is not None:
                seen.pop((known.group, known.partition), None)
        assert seen == offsets_of(self.stage.log)[0]
        assert not self.stage.shard.offsets.pending.by_group or self.stage.log


TestOffsetsInTransactions = OffsetsInTransactions.TestCase


def offset(producer: int, number: int, group: str = "g") -> InternalRecord | ReplayStep:
    value = OffsetCommitValue(offset=number, metadata="", commit_timestamp=1, topic_id=TOPIC_ID)
    record = offset_record(group, TopicPartition("t", 0), value)
    return ReplayStep([record], producer) if producer else record


@given(st.permutations([1, 2, 3]), st.permutations([1, 2, 3]), st.integers(0, 3))
def test_the_order_of_markers_changes_nothing(written: list[int], ended: list[int], plain_at: int) -> None:
    """Three transactions write one offset, somebody else writes it too, and all of them count in the end."""
    log = [offset(producer, 10 + producer) for producer in written]
    log.insert(plain_at, offset(0, 10))
    log += [ReplayStep([], producer, True) for producer in ended]
    stage = Stage(GroupCoordinatorSettings())
    stage.log = log
    stage.crash()
    last = ([10 + producer for producer in written] if plain_at < 3 else [10])[-1]
    assert [value.offset for value in stage.shard.offsets.of("g").values()] == [last]
    assert stage.shard.offsets.pending_of("g") == frozenset()
