"""A commit that is on its way to the log when its offset's retention ends."""

from moldau.coordinators.decision import TransactionEnd
from moldau.errors import ErrorCode
from moldau.names import TopicPartition
from tests.coordinators.groups.scene import Stage
from tests.coordinators.offsets.committing import TP, commit, commit_in_transaction, decide
from tests.coordinators.settings import group_settings

HOUR_MS = 3_600_000
OTHER = TopicPartition("t", 1)


def stage_with_an_offset() -> Stage:
    stage = Stage(group_settings(offsets_retention_ms=HOUR_MS, offsets_retention_check_interval_ms=HOUR_MS))
    decide(stage, commit(1))
    assert stage.shard.offsets.of("g")[TP].offset == 1
    return stage


def stage_just_before_the_retention_ends() -> Stage:
    """What is decided from now on waits for its way to the log."""
    stage = stage_with_an_offset()
    stage.wait(HOUR_MS - 1)
    stage.holding = True
    return stage


def test_a_commit_on_its_way_is_not_expired() -> None:
    stage = stage_just_before_the_retention_ends()
    ticket = decide(stage, commit(2))
    stage.wait(1)
    stage.holding = False
    stage.commit_held()
    assert stage.answers[ticket] == [ErrorCode.NONE]
    assert TP in stage.shard.offsets.of("g")
    assert stage.shard.offsets.of("g")[TP].offset == 2


def test_a_commit_in_a_transaction_on_its_way_is_not_expired() -> None:
    stage = stage_just_before_the_retention_ends()
    ticket = decide(stage, commit_in_transaction(2))
    stage.wait(1)
    stage.holding = False
    stage.commit_held()
    assert stage.answers[ticket] == [ErrorCode.NONE]
    stage.carry_out(stage.shard.end_transaction(TransactionEnd(1, 0, 0, True, 2), stage.ticket(), stage.now))
    assert TP in stage.shard.offsets.of("g")
    assert stage.shard.offsets.of("g")[TP].offset == 2


def test_a_commit_on_its_way_goes_with_its_topic() -> None:
    stage = stage_with_an_offset()
    stage.holding = True
    decide(stage, commit(5, tp=OTHER))
    for out in stage.shard.forget_topics(frozenset({"t"}), stage.now):
        stage.carry_out(out)
    stage.holding = False
    stage.commit_held()
    assert not len(stage.shard.offsets.of("g"))


def test_a_commit_on_its_way_goes_with_its_group() -> None:
    stage = stage_with_an_offset()
    stage.holding = True
    decide(stage, commit(5, tp=OTHER))
    ticket = stage.ticket()
    stage.carry_out(stage.shard.delete_groups(["g"], ticket, stage.now))
    stage.holding = False
    stage.commit_held()
    assert stage.answers[ticket] == [ErrorCode.NONE]
    assert not len(stage.shard.offsets.of("g"))


def test_a_commit_that_the_log_refused_keeps_no_offset_from_expiring() -> None:
    stage = stage_just_before_the_retention_ends()
    decide(stage, commit(2))
    decide(stage, commit(3))
    stage.refuse_held(ErrorCode.NOT_COORDINATOR)
    stage.holding = False
    stage.wait(1)
    assert not len(stage.shard.offsets.of("g"))


def test_the_later_of_two_equal_commits_stays_on_its_way_when_the_earlier_one_is_committed() -> None:
    stage = stage_just_before_the_retention_ends()
    decide(stage, commit(1))
    decide(stage, commit(1))
    later = stage.held.pop()
    stage.commit_held()
    stage.held.append(later)
    assert list(stage.shard.offsets.groups_undecided()) == ["g"]
    stage.commit_held()
    assert list(stage.shard.offsets.groups_undecided()) == []
