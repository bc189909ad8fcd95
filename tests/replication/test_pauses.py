"""The pauses of partitions whose answers were errors."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from harness.patience import stretched
from moldau.errors import ErrorCode
from moldau.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from moldau.replication.follower import LeaderFollower
from moldau.replication.pauses import Key, Pauses
from moldau.runtime import Runtime
from tests.replication.followed import ME, OTHER, SETTINGS, Stage, followed

LOOPS = pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
ONE, TWO, THREE = (b"1", 0), (b"2", 0), (b"3", 0)


@LOOPS
def test_pauses_end_when_each_is_over(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def scenario() -> list[list[Key]]:
        ends: asyncio.Queue[list[Key]] = asyncio.Queue()
        pauses = Pauses(ends.put_nowait)
        pauses.begin(ONE, 3600)
        pauses.begin(TWO, 0)  # the timer of the first one is too late for it
        pauses.begin(THREE, 0)
        seen = [await ends.get()]
        assert list(pauses) == [ONE]
        pauses.begin(ONE, 0)  # sooner than it was to end
        seen.append(await ends.get())
        pauses.begin(TWO, 0)
        pauses.begin(TWO, 3600)  # later
        pauses.begin(THREE, 0)
        pauses.drop(THREE)
        seen.append(await ends.get())
        assert list(pauses) == [TWO]
        pauses.begin(TWO, 0)
        pauses.stop()
        await asyncio.sleep(0.01)
        assert ends.empty()
        return seen

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(scenario()) == [[TWO, THREE], [ONE], []]


@LOOPS
def test_a_pause_of_no_time_ends_for_all_partitions_of_an_answer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, new_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    """Under uvloop the second pause of an answer failed: the timer of the first was due at once, and had no `when`."""
    requests: list[FetchRequest] = []

    async def refuse(request: FetchRequest, timeout_ms: int) -> FetchResponse:
        requests.append(request)
        return FetchResponse(session_id=7, responses=list(map(refused, request.topics)))

    async def scenario() -> None:
        throttle = Stage(tmp_path / "stage").throttle
        settings = SETTINGS._replace(pause_s=0)
        follower = LeaderFollower(OTHER, refuse, lambda: (ME, 10), settings, Runtime(), throttle)
        for number in (1, 2):
            follower.follow(followed(tmp_path, number))
        try:
            async with asyncio.timeout(stretched()):
                while len(requests) < 5:
                    await asyncio.sleep(0.001)
        finally:
            await follower.stop()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(scenario())
    assert "Traceback" not in caplog.text
    assert [len(request.topics) for request in requests[:5]] == [2] * 5


def refused(topic: FetchTopic) -> FetchableTopicResponse:
    error = ErrorCode.KAFKA_STORAGE_ERROR
    parts = [PartitionData(partition_index=part.partition, error_code=error) for part in topic.partitions]
    return FetchableTopicResponse(topic_id=topic.topic_id, partitions=parts)
