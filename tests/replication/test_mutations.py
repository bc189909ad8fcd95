"""Bugs of followers, leaders, logs and what coordinators rest on, put in on purpose: the transcripts, or the rules one
by one, find each. Those of the leader's books are in `test_leadership`, those of the controller in `tests/cluster`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.logs import NOW_MS
from moldau.log.truncation import truncate_to
from moldau.replication.catching_up import LeaderAnswer
from moldau.replication.leadership import PartitionRoles
from moldau.replication.replica import Replica
from tests.log import test_truncation as truncation
from tests.replacing import Instead, assert_found, nothing, returns
from tests.replication import test_catching_up as rules
from tests.replication import test_internal_topic as internal
from tests.replication import test_markers as markers
from tests.replication import test_transcripts as transcripts

CATCHING_UP = "moldau.replication.catching_up"
INTERNAL = "moldau.replication.internal_topic:InternalTopic"
LOG = "moldau.log.log:Log"


def _cuts_at_the_watermark(original: Callable[..., None], replica: Replica, roles: PartitionRoles, now_ms: int) -> None:
    original(replica, roles, now_ms)
    if not replica.leadership.leads and replica.high_watermark < replica.log.log_end_offset:
        truncate_to(replica.log, replica.high_watermark, 0, NOW_MS)


def _asks_for_the_epoch_only(original: Callable[..., Any], epochs: Any, log_end: int, diverging: Any) -> Any:
    return min(diverging.end_offset, log_end)


def _watermark_before_the_cut(
    original: Callable[..., Any], replica: Replica, leader: int, asked: Any, answer: LeaderAnswer, now_ms: int
) -> Any:
    replica.follow_watermark(replica.log.log_end_offset if answer.high_watermark else replica.high_watermark)
    return original(replica, leader, asked, answer, now_ms)


def _late_answers_count(
    original: Callable[..., Any], replica: Replica, leader: int, asked: Any, answer: LeaderAnswer, now_ms: int
) -> Any:
    leadership = replica.leadership
    asked = asked._replace(leader_epoch=leadership.leader_epoch, offset=replica.log.log_end_offset)
    return original(replica, leadership.leader, asked, answer, now_ms)


def kip(name: str) -> Callable[[Path], None]:
    whole = next(one for one in transcripts.TRANSCRIPTS if one.startswith(name))
    return lambda folder: transcripts.test_replicas_agree(folder, whole)


def _cuts_no_epoch_alone(truncate_to: Callable[..., int], log: Any, offset: int, *rest: Any) -> int:
    return truncate_to(log, offset, *rest) if offset < log.log_end_offset else log.log_end_offset


def _keeps_producers(truncated: Callable[..., None], log: Any, segments: Any, end_offset: int) -> None:
    before = log.producers
    truncated(log, segments, end_offset)
    log.producers = before


def _writes_no_recovery_point(_: Callable[..., None], flushing: Any, end: int) -> None:
    flushing.recovery_point = min(flushing.recovery_point, end)


def _appends_in_any_epoch(_: Callable[..., Replica], topic: Any, partition: int) -> Replica:
    replica: Replica = topic._led(partition)
    return replica


def marker_counts(folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        markers.test_a_marker_counts_when_the_followers_have_it(folder, patch)


Caught = tuple[Instead, Callable[[Path], None]]
BUGS: dict[str, Caught] = {
    "a follower truncates to its high watermark": (
        Instead("moldau.replication.replica:Replica.take_roles", _cuts_at_the_watermark),
        kip("KIP-101, 1"),
    ),
    "a leader compares no epochs": (
        Instead("moldau.replication.for_followers:divergence", returns(None)),
        kip("KIP-101, 2"),
    ),
    "the last one in sync commits alone in spite of min.insync.replicas": (
        Instead("moldau.replication.leadership:Leadership.has_too_few_in_sync", returns(False)),
        kip("KIP-966"),
    ),
    "a follower does not look where its own epoch ended": (
        Instead(f"{CATCHING_UP}:truncation_point", _asks_for_the_epoch_only),
        kip("KIP-279, 2"),
    ),
    "the high watermark rises before the truncation of the same answer": (
        Instead(f"{CATCHING_UP}:take_answer", _watermark_before_the_cut),
        rules.test_where_the_logs_differ_nothing_else_of_the_answer_counts,
    ),
    "a late answer counts in another epoch": (
        Instead(f"{CATCHING_UP}:take_answer", _late_answers_count),
        lambda folder: rules.test_a_late_answer_is_dropped(folder, "another epoch"),
    ),
    "a log does not begin anew": (
        Instead("moldau.log.truncation:begin_at", returns(None)),
        kip("a follower that is behind"),
    ),
    "a follower keeps what the leader deleted": (
        Instead("moldau.log.log:Log.delete_records_before", returns(None)),
        rules.test_the_log_starts_where_the_leaders_starts,
    ),
    "epochs are not cut where only they are too long": (
        Instead("moldau.log.truncation:truncate_to", _cuts_no_epoch_alone),
        lambda folder: truncation.test_an_epoch_without_a_batch_goes_even_if_no_batch_does(folder, 20),
    ),
    "producers are not rebuilt by a truncation": (
        Instead(f"{LOG}.truncated", _keeps_producers),
        truncation.test_a_transaction_whose_marker_is_removed_is_open_again,
    ),
    "the recovery point is not written down before a truncation": (
        Instead("moldau.log.flushing:Flushing.lower", _writes_no_recovery_point),
        truncation.test_the_recovery_point_is_written_down_before_a_file_changes,
    ),
    "a coordinator answers before the barrier": (
        Instead(f"{INTERNAL}.until_committed", nothing),
        internal.test_what_was_read_counts_when_the_high_watermark_is_there,
    ),
    "a coordinator appends in an epoch in which it has not read": (
        Instead(f"{INTERNAL}._replica", _appends_in_any_epoch),
        internal.test_what_was_read_in_another_leader_epoch_allows_no_append,
    ),
    "a marker counts when it is appended": (Instead("moldau.replication.markers:committed", nothing), marker_counts),
}


@pytest.mark.bug
@pytest.mark.parametrize("name", BUGS)
def test_a_bug_put_in_on_purpose_is_found(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    bug, check = BUGS[name]
    assert_found(bug, lambda: check(tmp_path_factory.mktemp("replicas") / "logs"))
