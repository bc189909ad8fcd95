"""A follower that is far behind asks for more before it has written what came."""

import asyncio
import logging
from pathlib import Path

import pytest

from harness.logs import append
from harness.patience import until
from moldau.errors import ErrorCode
from moldau.names import BrokerId
from moldau.protocol.messages.fetch import FetchRequest, FetchResponse
from moldau.replication.catching_up import LeaderAnswer, position_behind
from moldau.replication.for_followers import EpochEnd, FollowerPosition
from tests.replication.followed import OTHER, Stage, play

ASKED = FollowerPosition(4, 0, -1)


def three_records(stage: Stage) -> bytes:
    return b"".join(stage.records() for _ in range(3))


def answer(records: bytes, high_watermark: int) -> LeaderAnswer:
    return LeaderAnswer(ErrorCode.NONE, high_watermark, 0, None, records)


def noting_ends(stage: Stage) -> list[int]:
    """Where the log ends whenever a request is sent."""
    ends: list[int] = []
    fetch = stage.exchange._fetch

    async def noted(leader: BrokerId, request: FetchRequest, timeout_ms: int) -> FetchResponse:
        ends.append(stage.replica.log.log_end_offset)
        return await fetch(leader, request, timeout_ms)

    stage.exchange._fetch = noted
    return ends


def asked_from(request: FetchRequest) -> list[int]:
    return [part.fetch_offset for topic in request.topics for part in topic.partitions]


def test_the_next_committed_records_are_asked_for_before_these_are_written(tmp_path: Path) -> None:
    async def scenario(stage: Stage) -> None:
        ends = noting_ends(stage)
        stage.roles(OTHER, OTHER)
        stage.replies.put_nowait(stage.reply(records=three_records(stage), high_watermark=6))
        assert asked_from(await stage.asked(2)) == [3]
        stage.replies.put_nowait(stage.reply(records=three_records(stage), high_watermark=6))
        assert asked_from(await stage.asked(3)) == [6]
        assert ends == [0, 0, 6], "the third request may let the follower join: it says what is written"
        assert stage.replica.high_watermark == 6

    play(tmp_path, scenario)


def test_a_follower_whose_answer_cannot_be_written_asks_for_it_again(tmp_path: Path) -> None:
    async def scenario(stage: Stage) -> None:
        stage.roles(OTHER, OTHER)
        records = three_records(stage)
        damaged = records[:-1] + bytes([records[-1] ^ 1])
        stage.replies.put_nowait(stage.reply(records=damaged, high_watermark=9))
        assert asked_from(await stage.asked(2)) == [3]
        stage.replies.put_nowait(stage.reply(records=three_records(stage), high_watermark=9))
        third = await stage.asked(3)
        stage.replies.put_nowait(FetchResponse(session_id=7))
        named = asked_from(third) or asked_from(await stage.asked(4))
        assert (named, stage.replica.log.log_end_offset) == ([0], 0)

    play(tmp_path, scenario)


def test_a_damaged_answer_is_asked_for_again_and_an_error_when_it_comes_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    def said(level: int) -> list[str]:
        return [one.getMessage() for one in caplog.records if one.levelno == level]

    async def scenario(stage: Stage) -> None:
        stage.roles(OTHER, OTHER)
        zeros = bytes(len(three_records(stage)))
        stage.replies.put_nowait(stage.reply(records=zeros, high_watermark=0))
        await until(lambda: bool(said(logging.INFO)))
        assert "asks broker 2 again" in said(logging.INFO)[0] and not said(logging.ERROR)
        while not said(logging.ERROR):
            stage.replies.put_nowait(stage.reply(records=zeros, high_watermark=0))
            await asyncio.sleep(0.01)
        assert "cannot follow broker 2" in said(logging.ERROR)[0]
        assert stage.replica.log.log_end_offset == 0

    play(tmp_path, scenario)


def test_a_throttled_follower_asks_when_it_has_written(tmp_path: Path) -> None:
    async def scenario(stage: Stage) -> None:
        ends = noting_ends(stage)
        stage.throttled("*")
        stage.throttle.quota.limit = 1 << 30
        stage.roles(OTHER, OTHER)
        stage.replies.put_nowait(stage.reply(records=three_records(stage), high_watermark=9))
        assert asked_from(await stage.asked(2)) == [3]
        assert ends == [0, 3]

    play(tmp_path, scenario)


@pytest.mark.parametrize(("high_watermark", "offset"), [(2, None), (3, None), (4, 3)])
def test_only_what_lies_below_the_high_watermark_is_claimed_early(
    tmp_path: Path, high_watermark: int, offset: int | None
) -> None:
    async def scenario(stage: Stage) -> None:
        position = position_behind(ASKED, answer(three_records(stage), high_watermark))
        assert position == (offset and ASKED._replace(offset=offset, last_fetched_epoch=0))

    play(tmp_path, scenario)


def test_the_position_behind_an_answer_has_the_epoch_of_its_last_batch(tmp_path: Path) -> None:
    async def scenario(stage: Stage) -> None:
        records = stage.records()
        append(stage.leading.log, 1, leader_epoch=2)
        records += stage.leading.log.read_batches(1, 1 << 20)
        assert position_behind(ASKED, answer(records + records[:30], 9)) == FollowerPosition(4, 2, 2)

    play(tmp_path, scenario)


@pytest.mark.parametrize(
    "nothing",
    [
        answer(b"", 9),
        answer(b"\xff" * 200, 9),
        answer(b"", 9)._replace(error=ErrorCode.NOT_LEADER_OR_FOLLOWER),
        answer(b"", 9)._replace(diverging=EpochEnd(0, 0)),
    ],
    ids=["no records", "no batch", "an error", "logs that differ"],
)
def test_an_answer_without_records_to_write_has_no_position_behind_it(nothing: LeaderAnswer) -> None:
    assert position_behind(ASKED, nothing) is None
