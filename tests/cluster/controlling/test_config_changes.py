"""Settings of brokers, groups and client metrics: changed, kept over a restart, refused."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from moldau.cluster.cluster import Cluster
from moldau.cluster.controlling.alterations import Alteration, OpType, Replacement
from moldau.cluster.controlling.controller import Refusal
from moldau.cluster.state import layout
from moldau.errors import ErrorCode
from moldau.metadata_store.embedded import EmbeddedStore
from moldau.metadata_store.store import Delete
from tests.cluster.opening import open_cluster

SESSION = "consumer.session.timeout.ms"
LONGER = [Alteration(SESSION, OpType.SET, "50000")]
ODD_NAMES = ["g", ".", "..", "...", "a/b", "/", "%2F", "a b", "ü", "<default>", "nul\0", "a" * 32_767]


def play(folder: Path, scenario: Callable[[Cluster], Awaitable[Any]]) -> Any:
    async def whole() -> Any:
        cluster = await open_cluster(folder)
        try:
            return await scenario(cluster)
        finally:
            await cluster.close()

    return asyncio.run(whole())


def test_a_group_of_any_name_keeps_its_settings_over_a_restart(tmp_path: Path) -> None:
    async def alter(cluster: Cluster) -> None:
        for name in ODD_NAMES:
            assert await cluster.configs.alter_groups([(name, LONGER)]) == [None]

    async def look(cluster: Cluster) -> None:
        assert set(cluster.image.group_overrides) == set(ODD_NAMES)
        assert all(cluster.metadata.group_config(name).consumer_session_timeout_ms == 50_000 for name in ODD_NAMES)
        assert cluster.metadata.group_config("nobody").consumer_session_timeout_ms == 45_000

    play(tmp_path, alter)
    play(tmp_path, look)


@pytest.mark.parametrize("taken_back", [[Alteration(SESSION, OpType.DELETE, None)], Replacement([])])
def test_a_group_whose_settings_are_taken_back_is_forgotten(tmp_path: Path, taken_back: Any) -> None:
    async def scenario(cluster: Cluster) -> None:
        for _ in range(2):
            await cluster.configs.alter_groups([("g", LONGER)])
            assert cluster.metadata.group_config("g").consumer_session_timeout_ms == 50_000
            await cluster.configs.alter_groups([("g", taken_back)])
            assert cluster.image.group_overrides == {}
            assert cluster.metadata.group_config("g").consumer_session_timeout_ms == 45_000

    play(tmp_path, scenario)
    store = EmbeddedStore(tmp_path)
    assert store.children(layout.GROUP_CONFIGS) == []
    store.close()


def test_client_metrics_of_any_name_are_kept_over_a_restart_until_their_settings_are_taken_back(tmp_path: Path) -> None:
    every_minute = [Alteration("interval.ms", OpType.SET, "60000")]

    async def alter(cluster: Cluster) -> None:
        assert await cluster.configs.alter_client_metrics([(name, every_minute) for name in ODD_NAMES]) == [None] * 12

    async def take_back(cluster: Cluster) -> None:
        assert cluster.image.client_metrics == {key: {"interval.ms": "60000"} for key in ODD_NAMES}
        await cluster.configs.alter_client_metrics([(name, Replacement([])) for name in ODD_NAMES])

    async def look(cluster: Cluster) -> None:
        assert cluster.image.client_metrics == {}

    for step in (alter, take_back, look):
        play(tmp_path, step)


def test_what_is_refused_or_only_validated_changes_nothing(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        before = cluster.image
        assert await cluster.configs.alter_groups([("g", LONGER)], validate_only=True) == [None]
        [refusal] = await cluster.configs.alter_groups([("g", [Alteration(SESSION, OpType.SET, "1")])])
        assert isinstance(refusal, Refusal)
        assert refusal.code is ErrorCode.INVALID_CONFIG
        assert cluster.image is before

    play(tmp_path, scenario)


def test_a_cluster_that_an_earlier_version_began_gets_the_place_for_them(tmp_path: Path) -> None:
    async def nothing(cluster: Cluster) -> None: ...

    async def alter(cluster: Cluster) -> None:
        assert await cluster.configs.alter_groups([("g", LONGER)]) == [None]

    play(tmp_path, nothing)
    store = EmbeddedStore(tmp_path)
    store.multi([Delete(layout.GROUP_CONFIGS)])
    store.close()
    play(tmp_path, alter)


def test_settings_that_no_broker_can_have_are_refused(tmp_path: Path) -> None:
    async def scenario() -> list[Refusal | None]:
        cluster = await open_cluster(tmp_path)
        answers = []
        for name, value in (
            ("log.segment.bytes", "x"),
            ("log.cleaner.min.cleanable.ratio", "2"),
            ("log.retention.ms", "0"),
            ("log.cleaner.max.compaction.lag.ms", "10"),
            ("log.cleaner.min.compaction.lag.ms", "11"),
        ):
            answers.append(await cluster.configs.alter_broker("1", [Alteration(name, OpType.SET, value)]))
        await cluster.close()
        return answers

    codes = [answer.code if answer else ErrorCode.NONE for answer in asyncio.run(scenario())]
    bad = ErrorCode.INVALID_REQUEST
    assert codes == [bad, bad, bad, ErrorCode.NONE, bad]
