"""What a follower does with an answer, and in which order; `test_transcripts` shows what comes of many."""

from dataclasses import replace
from pathlib import Path

import pytest

from harness.logs import NOW_MS, append, open_log
from moldau.errors import ErrorCode
from moldau.log import truncation
from moldau.log.epochs import Epochs
from moldau.names import BrokerId, LeaderEpoch, Offset
from moldau.replication.catching_up import Act, LeaderAnswer, Rest, position_of, take_answer, truncation_point
from moldau.replication.for_followers import EpochEnd, FollowerPosition
from moldau.replication.leadership import PartitionRoles
from moldau.replication.replica import Replica
from tests.replication.transcripts import TP, Room

ME, LEADER, OTHER = BrokerId(2), BrokerId(1), BrokerId(3)
EPOCH = LeaderEpoch(4)


def follower(folder: Path, records: int = 2) -> Replica:
    """It has so many records of epoch 4."""
    room = Room(folder, "LM")
    replica = room.replicas["M"]
    assert (replica.tp, replica.leadership.local) == (TP, ME)
    if records:
        append(replica.log, records, leader_epoch=EPOCH)
    replica.take_roles(PartitionRoles(LEADER, EPOCH, (LEADER, ME), (LEADER, ME)), 0)
    return replica


def batches_from(folder: Path, offset: int, epoch: int = EPOCH) -> bytes:
    """One record of the leader at this offset, as it is fetched."""
    log = open_log(folder / "leader")
    append(log, offset + 1, leader_epoch=epoch)
    truncation.truncate_to(log, 0, 0, NOW_MS)
    for _ in range(offset + 1):
        append(log, 1, leader_epoch=epoch)
    return log.read_batches(offset, 1 << 20)


def answer(
    records: bytes = b"", hw: int = 0, start: int = 0, error: ErrorCode = ErrorCode.NONE, end: EpochEnd | None = None
) -> LeaderAnswer:
    return LeaderAnswer(error, hw, start, end, records)


def take(replica: Replica, given: LeaderAnswer, asked: FollowerPosition | None = None) -> Rest:
    return take_answer(replica, LEADER, asked or position_of(replica), given, NOW_MS)


def test_records_are_appended_and_the_high_watermark_is_at_most_the_own_end(tmp_path: Path) -> None:
    replica = follower(tmp_path)
    assert position_of(replica)[:3] == (EPOCH, 2, EPOCH)
    assert take(replica, answer(batches_from(tmp_path, 2), hw=9)).act is Act.ASK
    assert (replica.log.log_end_offset, replica.high_watermark) == (3, 3)


def test_an_answer_without_records_keeps_the_epoch_of_the_last_record(tmp_path: Path) -> None:
    """Kafka forgot it there, and asked without one (KAFKA-15510)."""
    replica = follower(tmp_path)
    take(replica, answer(hw=1))
    assert position_of(replica)[:3] == (EPOCH, 2, EPOCH)


def test_the_high_watermark_does_not_fall_under_a_leader_that_knows_less(tmp_path: Path) -> None:
    replica = follower(tmp_path)
    take(replica, answer(hw=2))
    take(replica, answer(hw=1))
    assert replica.high_watermark == 2


def test_records_of_an_epoch_that_the_leader_has_not_begun_there_are_removed_with_a_reason(tmp_path: Path) -> None:
    """Both have records of epoch 4, and the leader's begin later: its epochs alone show no difference."""
    replica = follower(tmp_path, 0)
    append(replica.log, 3, leader_epoch=2)
    append(replica.log, 2, leader_epoch=3)
    append(replica.log, 1, leader_epoch=EPOCH)
    rest = take(replica, answer(batches_from(tmp_path, 6, epoch=2), hw=6))
    assert (rest.act, rest.offset) == (Act.TRUNCATE, 3)
    assert "records of leader epoch 3 from offset 3 on are removed" in rest.why and "broker 1" in rest.why
    truncation.truncate_to(replica.log, rest.offset, 0, NOW_MS)
    assert position_of(replica)[:3] == (EPOCH, 3, 2)


def test_committed_records_are_kept_whatever_the_leader_has(tmp_path: Path) -> None:
    """Its metadata may be older than the logs, so that it leads in an epoch that was there before."""
    replica = follower(tmp_path)
    take(replica, answer(hw=1))
    rest = take(replica, answer(batches_from(tmp_path, 2, epoch=2), hw=2))
    assert rest.act is Act.PAUSE and rest.error is not None and rest.error.code is ErrorCode.CORRUPT_MESSAGE
    assert replica.log.log_end_offset == 2


def test_a_damaged_batch_of_an_earlier_epoch_removes_nothing(tmp_path: Path) -> None:
    replica = follower(tmp_path)
    damaged = bytearray(batches_from(tmp_path, 2, epoch=2))
    damaged[-1] ^= 1
    rest = take(replica, answer(bytes(damaged), hw=2))
    assert rest.act is Act.PAUSE and rest.error is not None and rest.error.code is ErrorCode.CORRUPT_MESSAGE
    assert replica.log.log_end_offset == 2


@pytest.mark.parametrize("late", ["another epoch", "another leader", "it leads", "another end"])
def test_a_late_answer_is_dropped(tmp_path: Path, late: str) -> None:
    replica = follower(tmp_path)
    asked = position_of(replica)
    roles = PartitionRoles(LEADER, EPOCH, (LEADER, ME), (LEADER, ME), 1)
    if late == "another epoch":
        replica.take_roles(roles._replace(leader_epoch=LeaderEpoch(5)), 0)
    elif late == "another leader":
        replica.take_roles(roles._replace(leader=OTHER), 0)
    elif late == "it leads":
        replica.take_roles(roles._replace(leader=ME), 0)
    else:
        append(replica.log, 1, leader_epoch=EPOCH)
    end = replica.log.log_end_offset
    for given in (answer(batches_from(tmp_path, 2), hw=3), answer(end=EpochEnd(0, 0)), answer(error=ErrorCode.NONE)):
        assert take(replica, given, asked).act is Act.DROP
    assert (replica.log.log_end_offset, replica.high_watermark) == (end, 0)


def test_where_the_logs_differ_nothing_else_of_the_answer_counts(tmp_path: Path) -> None:
    """Else records that are about to go would count as committed (KAFKA-14704)."""
    replica = follower(tmp_path)
    given = answer(batches_from(tmp_path, 2), hw=2, start=1, end=EpochEnd(3, 1))
    assert take(replica, given) == Rest(Act.TRUNCATE, Offset(0))
    assert (replica.log.log_end_offset, replica.high_watermark, replica.log_start_offset) == (2, 0, 0)


def test_an_error_is_a_pause(tmp_path: Path) -> None:
    replica = follower(tmp_path)
    rest = take(replica, answer(batches_from(tmp_path, 2), hw=3, error=ErrorCode.KAFKA_STORAGE_ERROR))
    assert rest.act is Act.PAUSE and rest.error is not None and rest.error.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert replica.log.log_end_offset == 2


def test_damaged_records_are_a_pause_and_move_nothing(tmp_path: Path) -> None:
    replica = follower(tmp_path)
    damaged = bytearray(batches_from(tmp_path, 2))
    damaged[-1] ^= 1
    rest = take(replica, answer(bytes(damaged), hw=3))
    assert rest.act is Act.PAUSE and rest.error is not None and rest.error.code is ErrorCode.CORRUPT_MESSAGE
    assert (replica.log.log_end_offset, replica.high_watermark) == (2, 0)


def test_a_leader_that_begins_later_is_begun_anew_with(tmp_path: Path) -> None:
    replica = follower(tmp_path)
    out = answer(error=ErrorCode.OFFSET_OUT_OF_RANGE, start=7)
    assert take(replica, out) == Rest(Act.BEGIN_ANEW, Offset(7))
    assert take(replica, out._replace(log_start_offset=1)).act is Act.PAUSE


def test_a_log_that_begins_behind_what_both_have_begins_anew(tmp_path: Path) -> None:
    replica = follower(tmp_path)
    replica.log.delete_records_before(2)
    assert take(replica, answer(end=EpochEnd(3, 1))) == Rest(Act.BEGIN_ANEW, Offset(1))


def test_the_log_starts_where_the_leaders_starts(tmp_path: Path) -> None:
    replica = follower(tmp_path)
    take(replica, answer(hw=2, start=1))
    assert replica.log_start_offset == 1


def test_a_flush_that_is_due_comes_before_the_next_request(tmp_path: Path) -> None:
    replica = follower(tmp_path)
    replica.configure(replace(replica.config, flush_messages=1))
    assert take(replica, answer(batches_from(tmp_path, 2), hw=3)).act is Act.FLUSH


@pytest.mark.parametrize(
    ("leaders", "point"),
    [
        (EpochEnd(2, 12), 12),  # both have epoch 2, the leader less of it
        (EpochEnd(2, 30), 20),  # this log has less of it
        (EpochEnd(3, 25), 20),  # it has nothing of epoch 3: its own end of epoch 2
        (EpochEnd(1, 8), 8),
        (EpochEnd(0, 3), 3),
        (EpochEnd(-1, 4), 4),  # the leader knows no epoch
        (EpochEnd(-1, 90), 26),
    ],
)
def test_a_log_is_cut_where_it_agrees_with_the_leaders_at_most(leaders: EpochEnd, point: int) -> None:
    epochs = Epochs([(0, 0), (1, 5), (2, 10), (4, 20)])
    assert truncation_point(epochs, 26, leaders) == point


def test_a_log_without_epochs_is_cut_at_the_leaders_end() -> None:
    assert truncation_point(Epochs(), 26, EpochEnd(3, 7)) == 7
