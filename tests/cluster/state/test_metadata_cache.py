"""The metadata that a broker reads: subscribers, and the settings in force."""

import asyncio
import gc
from collections.abc import Sequence
from pathlib import Path

import pytest

from moldau.cluster.controlling.alterations import Alteration, OpType
from moldau.cluster.controlling.controller import NewTopic
from moldau.cluster.state.image import Image
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.config import broker_config
from moldau.errors import ConfigError
from tests.cluster.opening import open_cluster


def test_subscribers_see_the_next_image_before_the_change_is_answered(tmp_path: Path) -> None:
    seen: list[tuple[list[str], Sequence[str]]] = []
    finished: list[str] = []

    async def scenario() -> None:
        cluster = await open_cluster(tmp_path)

        async def slow() -> None:
            await asyncio.sleep(0)
            finished.append("made")

        cluster.metadata.subscribe(lambda image, names: seen.append((list(image.topics), names)))
        cluster.metadata.subscribe(lambda image, names: slow())
        await cluster.topics.create([NewTopic("a"), NewTopic("a b")])
        assert finished == ["made"]
        await cluster.topics.create([NewTopic("a")])
        await cluster.topics.create([NewTopic("v")], validate_only=True)
        await cluster.configs.alter_broker("<default>", [Alteration("log.roll.ms", OpType.SET, "77")])
        await cluster.topics.delete([("a", None)])
        await cluster.close()

    asyncio.run(scenario())
    assert seen == [(["a"], ["a"]), (["a"], ["a"]), ([], ["a"])]


def test_a_subscriber_that_fails_ends_those_behind_it(recwarn: pytest.WarningsRecorder) -> None:
    seen: list[str] = []

    async def failing(_: Image, __: Sequence[str]) -> None:
        raise OSError("the disk is gone")

    async def behind(_: Image, __: Sequence[str]) -> None:
        seen.append("too late")

    def at_once(_: Image, __: Sequence[str]) -> None:
        seen.append("at once")

    metadata = MetadataCache(broker_config({"node.id": "1"})[0], Image("c"))
    for subscriber in (failing, behind, at_once):
        metadata.subscribe(subscriber)
    with pytest.raises(OSError, match="the disk is gone"):
        asyncio.run(metadata.show(Image("c"), []))
    gc.collect()
    assert (seen, recwarn.list) == (["at once"], [])


def test_a_subscriber_that_fails_at_once_ends_those_before_and_behind_it(recwarn: pytest.WarningsRecorder) -> None:
    seen: list[str] = []

    async def before(_: Image, __: Sequence[str]) -> None:
        seen.append("begun")

    def failing(_: Image, __: Sequence[str]) -> None:
        raise OSError("no file can be opened")

    metadata = MetadataCache(broker_config({"node.id": "1"})[0], Image("c"))
    for subscriber in (before, failing):
        metadata.subscribe(subscriber)
    with pytest.raises(OSError, match="no file can be opened"):
        asyncio.run(metadata.show(Image("c"), []))
    gc.collect()
    assert (seen, recwarn.list) == ([], [])


def test_settings_of_topics_follow_those_of_the_broker(tmp_path: Path) -> None:
    async def scenario() -> list[int]:
        cluster = await open_cluster(tmp_path)
        await cluster.topics.create([NewTopic("a")])
        found = [cluster.metadata.topic_config("a").segment_bytes]
        for broker, value in (("<default>", "3000000"), ("1", "2000000")):
            await cluster.configs.alter_broker(broker, [Alteration("log.segment.bytes", OpType.SET, value)])
            found.append(cluster.metadata.topic_config("a").segment_bytes)
        await cluster.configs.alter_topics([("a", [Alteration("segment.bytes", OpType.SET, "1500000")])])
        found.append(cluster.metadata.topic_config("a").segment_bytes)
        await cluster.close()
        return found

    assert asyncio.run(scenario()) == [1 << 30, 3_000_000, 2_000_000, 1_500_000]


def test_what_a_topic_was_allowed_stays_when_the_broker_changes(tmp_path: Path) -> None:
    async def scenario() -> tuple[int, int]:
        cluster = await open_cluster(tmp_path)
        await cluster.topics.create([NewTopic("a", configs=[("min.compaction.lag.ms", "100")])])
        changed = Alteration("log.cleaner.max.compaction.lag.ms", OpType.SET, "50")
        assert await cluster.configs.alter_broker("1", [changed]) is None
        config = cluster.metadata.topic_config("a")
        await cluster.close()
        return config.min_compaction_lag_ms, config.max_compaction_lag_ms

    assert asyncio.run(scenario()) == (100, 50)


def test_what_others_have_set_and_this_broker_could_not_run_with_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    config, _ = broker_config({"node.id": "1", "log.cleaner.dedupe.buffer.size": str(3 << 20)})
    image = Image("c", broker_overrides={"<default>": {"log.cleaner.threads": "4"}})
    with pytest.raises(ConfigError, match=r"for each of log\.cleaner\.threads"):
        MetadataCache(config, image)
    assert MetadataCache(config, image, others_write=True).config.log_cleaner_threads == 1
    assert "are ignored: log.cleaner.dedupe.buffer.size must be" in caplog.text
