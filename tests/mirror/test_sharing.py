"""Workers of one mirror as members of a group: with other topics, with other options, and as static members."""

import asyncio
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from moldau.client.producing.producer import Producer
from moldau.errors import ConfigError
from moldau.mirror import sharing
from moldau.mirror.ends import ClusterEnd
from moldau.mirror.foreign.foreign_settings import ForeignSettings
from moldau.mirror.foreign.policy import ReplicationPolicy
from moldau.mirror.sharing import MemberOptions
from moldau.mirror.worker import MirrorSettings
from moldau.names import TopicPartition
from moldau.testing import Broker
from tests.mirror.foreign.foreign_mirroring import foreign_mirroring
from tests.mirror.mirroring import REFRESH_S, Mirroring, mirroring

SESSION_S = 0.5


@pytest.fixture
def own_source() -> Iterator[Broker]:
    """Static members stay in the group of the source, so others would wait for them."""
    with Broker() as source:
        yield source


@pytest.fixture(scope="module")
def clusters() -> Iterator[tuple[Broker, Broker]]:
    with Broker() as source, Broker(group_min_session_timeout_ms=100) as target:
        yield source, target


def fill(broker: Broker, topic: str, count: int = 10) -> None:
    with Producer(broker.address) as producer:
        for number in range(count):
            producer.send(topic, b"%d" % number, partition=0)


def test_workers_may_mirror_different_topics_and_share_those_that_both_have(clusters: tuple[Broker, Broker]) -> None:
    source, _ = clusters
    for name in ("only.one", "both", "only.other"):
        source.create_topic(name, 2)
        fill(source, name)

    async def scenario() -> None:
        async with mirroring(*clusters, r"only\.one|both") as one, mirroring(*clusters, r"only\.other|both") as other:
            for name in ("only.one", "both", "only.other"):
                await one.until_equal(TopicPartition(name, 0))

            def parts() -> list[set[str]]:
                return [{str(tp) for tp in mirror.worker.copying.copies} for mirror in (one, other)]

            await one.until(lambda: [len(part) for part in parts()] == [3, 3])
            assert {"only.one-0", "only.one-1"} < parts()[0] and {"only.other-0", "only.other-1"} < parts()[1]

    asyncio.run(scenario())


def test_a_worker_with_other_options_is_refused_while_others_run(
    clusters: tuple[Broker, Broker], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = clusters
    source.create_topic("lanes", 1)
    monkeypatch.setattr(sharing, "REFUSED_MORE_S", 0.0)
    member = MemberOptions(session_s=SESSION_S)

    async def scenario() -> None:
        async with foreign_mirroring(source.address, target.address, "lanes", member=member) as mirror:
            await mirror.until(lambda: mirror.worker.lanes.copies)
            alike = mirror.settings
            await asyncio.to_thread(source.create_topic, "others", 1)
            mirror.settings = replace(alike, topics=re.compile("others"))
            refused = await mirror.start()
            with pytest.raises(ConfigError, match="workers of this mirror run already, with other options"):
                await mirror.workers.pop(refused)
            assert "A.others" not in await mirror.target.admin.list_topics()
            mirror.settings = replace(alike, refresh_s=1.0, compression="lz4")
            second = await mirror.start()
            await mirror.until(lambda: second.lanes.copies)

    asyncio.run(scenario())


def test_a_right_that_is_taken_away_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sharing, "AGAIN_S", 0.1)

    async def scenario(source: Broker, target: Broker) -> None:
        source.create_topic("t", 1)
        await asyncio.to_thread(fill, source, "t")
        async with mirroring(source, target, "t") as mirror:
            await mirror.until_equal(TopicPartition("t", 0))
            with target.fault("Heartbeat", error="GROUP_AUTHORIZATION_FAILED"):
                with target.fault("JoinGroup", error="GROUP_AUTHORIZATION_FAILED"):
                    await mirror.until(lambda: "cannot share its partitions now" in caplog.text)
                    assert "has no right" in caplog.text or "authoriz" in caplog.text.lower()
            await asyncio.to_thread(fill, source, "t")
            await mirror.until_equal(TopicPartition("t", 0))
            await mirror.until(lambda: mirror.worker.copying.copies)

    with Broker() as source, Broker() as target:
        asyncio.run(scenario(source, target))


def test_what_all_workers_must_have_alike_is_in_the_digest() -> None:
    usual = ForeignSettings(re.compile("orders"))
    for change in (
        {"topics": re.compile("payments")},
        {"policy": ReplicationPolicy(is_identity=True)},
        {"groups": re.compile("")},
        {"sync_groups": True},
        {"source_heartbeats": True},
        {"acls": True},
    ):
        assert replace(usual, **change).digest != usual.digest, change  # type: ignore[arg-type]
    assert replace(usual, refresh_s=1.0, compression="zstd", member=MemberOptions("a")).digest == usual.digest


def test_a_static_member_that_comes_back_moves_no_partition_and_finds_new_topics(
    clusters: tuple[Broker, Broker], own_source: Broker
) -> None:
    source, target = own_source, clusters[1]
    source.create_topic("static.a", 2)

    async def scenario() -> None:
        async with (
            ClusterEnd(source.address, "--from") as one,
            ClusterEnd(target.address, "--to") as other,
        ):
            settings = MirrorSettings(
                re.compile(r"static\..*"), refresh_s=REFRESH_S, member=MemberOptions("worker-1", 60.0)
            )
            mirror = Mirroring(one, other, settings)
            try:
                await mirror.until(lambda: len(mirror.worker.copying.copies) == 2)
                generation = mirror.worker._sharing._membership.generation
                await mirror.stop()
                mirror.start()
                await mirror.until(lambda: len(mirror.worker.copying.copies) == 2)
                assert mirror.worker._sharing._membership.generation == generation
                await mirror.stop()
                await asyncio.to_thread(source.create_topic, "static.b", 1)
                mirror.start()
                await mirror.until(lambda: len(mirror.worker.copying.copies) == 3)
            finally:
                await mirror.stop()

    asyncio.run(scenario())


def test_of_two_workers_with_one_name_the_later_one_works(clusters: tuple[Broker, Broker], own_source: Broker) -> None:
    source, target = own_source, clusters[1]
    source.create_topic("named", 1)
    settings = MirrorSettings(re.compile("named"), refresh_s=REFRESH_S, member=MemberOptions("twin", 30.0))

    async def scenario() -> None:
        async with (
            ClusterEnd(source.address, "--from") as one,
            ClusterEnd(target.address, "--to") as other,
            ClusterEnd(source.address, "--from") as third,
            ClusterEnd(target.address, "--to") as fourth,
        ):
            first, second = Mirroring(one, other, settings), None
            try:
                await first.until(lambda: first.worker.copying.copies)
                second = Mirroring(third, fourth, settings)
                with pytest.raises(ConfigError, match="another worker of this mirror has --instance twin"):
                    await first.until(lambda: False)
                await second.until(lambda: second.worker.copying.copies)
            finally:
                for mirror in (first, second):
                    if mirror is not None and not mirror._task.done():
                        await mirror.stop()

    asyncio.run(scenario())
