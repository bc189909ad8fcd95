"""Followers of a leader whose log starts within a batch, because DeleteRecords named an offset there."""

import errno
from dataclasses import replace
from pathlib import Path

from harness.logs import NOW_MS, append
from moldau.errors import ErrorCode
from moldau.names import Offset
from moldau.protocol.messages.fetch import EpochEndOffset
from moldau.records.batch import Row
from tests.replication.followed import OTHER, Stage, play
from tests.replication.transcripts import Room


def test_a_new_follower_of_a_log_that_starts_within_a_batch(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room.play("A leads 0 isr A")
    append(room.replicas["A"].log, [Row(None, b"%d" % n, NOW_MS) for n in range(10)], leader_epoch=0)
    room.replicas["A"]._reached(room.replicas["A"].log.log_end_offset)
    room.play("A forgets 5\nB fetches\nB fetches\nB fetches")
    assert (room.replicas["B"].log_start_offset, room.replicas["B"].log.log_end_offset) == (5, 10)


def test_a_follower_begins_with_the_batch_that_holds_the_leaders_log_start(tmp_path: Path) -> None:
    async def scenario(stage: Stage) -> None:
        append(stage.leading.log, 10, leader_epoch=0)
        records = stage.leading.log.read_batches(0, 1 << 20)
        stage.roles(OTHER, OTHER)
        await stage.asked(1)
        out = ErrorCode.OFFSET_OUT_OF_RANGE
        stage.replies.put_nowait(stage.reply(error_code=out, log_start_offset=5, high_watermark=10))
        await stage.asked(2)
        stage.replies.put_nowait(stage.reply(records=records, log_start_offset=5, high_watermark=10))
        named = [
            (part.fetch_offset, part.log_start_offset)
            for topic in (await stage.asked(3)).topics
            for part in topic.partitions
        ]
        log = stage.replica.log
        assert (log.log_start_offset, log.log_end_offset, stage.replica.high_watermark) == (5, 10, 10)
        assert named == [(10, 5)] and log.segments[0].base_offset == 0

    play(tmp_path, scenario)


def test_the_high_watermark_is_within_a_log_whose_new_start_could_not_be_written(tmp_path: Path) -> None:
    async def scenario(stage: Stage) -> None:
        log = stage.replica.log
        for _ in range(60):
            append(log, 1, leader_epoch=0)
        log.delete_records_before(55)
        stage.replica.follow_watermark(Offset(60))

        def none_left() -> None:
            raise OSError(errno.EMFILE, "Too many open files")

        log.services = replace(log.services, write_log_starts=none_left)
        stage.roles(OTHER, OTHER)
        await stage.asked(1)
        stage.replies.put_nowait(
            stage.reply(diverging_epoch=EpochEndOffset(epoch=-1, end_offset=20), high_watermark=20)
        )
        await stage.asked(2)
        assert not log.offline and log.log_end_offset == 20
        assert stage.replica.high_watermark <= 20

    play(tmp_path, scenario)
