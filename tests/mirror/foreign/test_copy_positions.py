"""A position is believed only if it belongs to the logs of today; else one sentence says what to do."""

import uuid
from dataclasses import replace

import pytest

from moldau.mirror.copies import LogSpan
from moldau.mirror.foreign.copy_positions import (
    NO_ID,
    CopyPosition,
    MirroredLogs,
    ResumePoint,
    judged,
    lane_of,
    position_record,
    read_position,
)
from moldau.names import TopicPartition

TP = TopicPartition("orders", 0)
SOURCE_ID, TARGET_ID, OTHER = uuid.UUID(int=1), uuid.UUID(int=2), uuid.UUID(int=3)
AT = CopyPosition(10, 4, 8, SOURCE_ID, TARGET_ID, "cluster-id")
LOGS = MirroredLogs(LogSpan(0, 20), LogSpan(0, 8), SOURCE_ID, TARGET_ID)


@pytest.mark.parametrize("at", [AT, CopyPosition(0, None, 0)])
def test_a_position_is_read_as_it_was_written(at: CopyPosition) -> None:
    assert read_position(*position_record(TP, at)) == (TP, at)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, None),
        (b"[]", b"{}"),
        (b'["orders", 0]', b"{}"),
        (b'["orders", 0]', b'{"next": 1, "epoch": 1, "end": 1, "source.id": 5, "target.id": "", "cluster": ""}'),
        (b"\xff", b"[]"),
        (b"[" * 100_000, b"{}"),
        (b'["orders", 1e999]', b'{"next": 1, "epoch": 1, "end": 1, "source.id": "' + b"0" * 32 + b'"}'),
        (b'["orders", 0]', b'{"next": 1e999, "epoch": 1}'),
    ],
)
def test_what_is_no_position_is_an_error(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(ValueError, match="not a position"):
        read_position(key, value)


def test_copying_goes_on_at_the_position() -> None:
    verdict = judged(TP, "A.orders", AT, LOGS)
    assert verdict == ResumePoint(10, 4, 8)
    without_ids = MirroredLogs(LOGS.source, LOGS.target, NO_ID, NO_ID)
    assert judged(TP, "A.orders", AT, without_ids) == verdict, "clusters before Kafka 2.8"
    assert judged(TP, "A.orders", AT, LOGS._replace(target=LogSpan(0, 99))) == verdict, "aborted records, markers"


def test_an_empty_mirror_begins_where_the_source_does() -> None:
    empty = LOGS._replace(source=LogSpan(5, 20), target=LogSpan(0, 0))
    verdict = judged(TP, "A.orders", None, empty)
    assert (verdict.start, verdict.is_new, verdict.refused) == (5, True, "")
    anew = judged(TP, "A.orders", AT, empty._replace(target_id=OTHER, source_id=OTHER))
    assert (anew.start, anew.is_new) == (5, True) and "made anew in the target" in anew.warning


def test_records_that_the_source_has_deleted_are_reported_and_passed() -> None:
    verdict = judged(TP, "A.orders", AT, LOGS._replace(source=LogSpan(15, 20)))
    assert verdict.start == 15 and "deleted up to 5 offsets" in verdict.warning and not verdict.refused


@pytest.mark.parametrize(
    ("at", "logs", "sentence"),
    [
        (None, LOGS, "A.orders-0 has records in the target cluster that this mirror has not written"),
        (AT, LOGS._replace(target_id=OTHER), "A.orders was made anew in the target cluster and has records"),
        (AT, LOGS._replace(source_id=OTHER), "orders was deleted and made again in the source cluster"),
        (AT, LOGS._replace(source=LogSpan(0, 9)), "orders-0 ends at 9 in the source cluster, and records up to 10"),
        (AT, LOGS._replace(target=LogSpan(0, 7)), "A.orders-0 ends at 7 in the target cluster"),
    ],
)
def test_a_position_of_other_logs_is_refused(at: CopyPosition | None, logs: MirroredLogs, sentence: str) -> None:
    verdict = judged(TP, "A.orders", at, logs)
    assert verdict.refused.startswith(sentence)
    assert "delete A.orders in the target cluster to mirror orders anew" in verdict.refused


def test_what_a_source_never_had_counts_as_lost_even_if_its_topic_has_no_id() -> None:
    at = replace(AT, source_id=NO_ID)
    assert judged(TP, "A.orders", at, LOGS._replace(source=LogSpan(0, 3))).refused


def test_partitions_are_spread_over_all_lanes() -> None:
    assert {lane_of(TopicPartition("orders", number), 8) for number in range(8)} == set(range(8))
    assert lane_of(TP, 1) == 0 and lane_of(TP, 8) == lane_of(TopicPartition("orders", 8), 8)
