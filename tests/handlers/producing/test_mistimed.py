"""What the log says of records that are refused for their timestamps."""

import logging
from pathlib import Path

import pytest

from moldau.errors import ErrorCode
from moldau.handlers.producing.mistimed import HOSTS_MAX, WINDOW_S, Mistimed, line_of, span
from moldau.names import TopicPartition
from moldau.notices import Notices
from moldau.protocol.apis import PRODUCE
from moldau.records.batch import Row, encode_batch
from tests.handlers.living import Living, outcomes, produce, run

TP = TopicPartition("t", 3)
HOUR_MS = 3_600_000
NOON_MS = 1_700_049_600_000  # 2023-11-15 12:00:00 UTC


@pytest.fixture(autouse=True)
def unlimited(monkeypatch: pytest.MonkeyPatch) -> None:
    """No line was written before."""
    monkeypatch.setattr(
        "moldau.handlers.producing.produce.notices", Notices(logging.getLogger("moldau.handlers.producing.produce"))
    )


@pytest.mark.parametrize(
    ("ms", "text"), [(999, "0 s"), (59_000, "59 s"), (3_661_000, "1 h 1 min"), (90 * 60_000, "1 h 30 min"),
                     (47 * HOUR_MS, "47 h 0 min"), (48 * HOUR_MS, "2 days")],
)  # fmt: skip
def test_a_span_of_time_is_written_in_units_of_its_size(ms: int, text: str) -> None:
    assert span(ms) == text


def test_the_line_says_how_far_the_timestamps_are_from_which_clock() -> None:
    says = "this broker's clock, which says 2023-11-15 12:00:00 UTC. "
    ahead = line_of("c", "10.0.0.7", TP, NOON_MS + 2 * HOUR_MS, NOON_MS, 1)
    records = "records of client c at 10.0.0.7 for t-3 are refused: their timestamps are"
    assert ahead == f"{records} 2 h 0 min ahead of {says}One of the two clocks is wrong"
    behind = line_of("c", "10.0.0.7", TP, NOON_MS - 72 * HOUR_MS, NOON_MS, 1)
    old = "They are older than message.timestamp.before.max.ms allows, or one of the two clocks is wrong"
    assert behind == f"{records} 3 days behind {says}{old}"
    several = line_of("c", "10.0.0.7", TP, NOON_MS + 2 * HOUR_MS, NOON_MS, 3)
    its_own = "Records of 3 hosts were refused in this way within 30 s: probably this broker's clock is wrong"
    assert several == f"{records} 2 h 0 min ahead of {says}{its_own}"


def test_hosts_are_counted_once_each_way_and_forgotten() -> None:
    seen = Mistimed()
    assert [seen.hosts(host, True, 0.0) for host in ("a", "b", "a")] == [1, 2, 2]
    assert seen.hosts("c", False, 0.0) == 1
    assert seen.hosts("d", True, WINDOW_S + 1) == 1
    assert max(seen.hosts(str(number), True, WINDOW_S + 1) for number in range(3 * HOSTS_MAX)) == HOSTS_MAX


def mistimed(timestamp_ms: int) -> bytes:
    return bytes(encode_batch([Row(None, b"x", timestamp_ms)]))


def test_a_refusal_for_timestamps_is_a_line_that_names_client_topic_and_clock(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        await alive.make("old", message_timestamp_before_max_ms=1000)
        wire, now_ms = await alive.dial(), alive.broker.runtime.clock.now_ms()
        for topic, timestamp_ms, way in (
            ("a", now_ms + 2 * HOUR_MS + 30_000, "2 h 0 min ahead of"),
            ("old", now_ms - 3 * HOUR_MS - 30_000, "3 h 0 min behind"),
        ):
            for _ in range(2):
                refused = await wire.ask(PRODUCE, 9, produce((topic, 0, mistimed(timestamp_ms))))
                assert outcomes(refused)[0][1] == ErrorCode.INVALID_TIMESTAMP
            [line] = [one for one in caplog.messages if way in one]
            assert f"for {topic}-0 are refused" in line and "127.0.0.1" in line
        assert outcomes(await wire.ask(PRODUCE, 9, produce(("a", 0, mistimed(now_ms)))))[0][1] == 0
        assert len([line for line in caplog.messages if "this broker's clock" in line]) == 2

    run(scenario, tmp_path)
