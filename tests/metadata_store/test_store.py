"""The kit of every metadata store on those that need nothing but Python."""

import asyncio
from pathlib import Path

import pytest

from harness.patience import within
from moldau.errors import StorageError
from moldau.metadata_store.embedded import EmbeddedStore
from moldau.metadata_store.embedded_session import EmbeddedSession
from moldau.metadata_store.store import Create, Set, check_size
from moldau.runtime import Runtime
from moldau.simulation.world import World
from moldau.simulation.zookeeper import CALM, Manners, ModelZooKeeper
from moldau.simulation.zookeeper_session import ModelSession
from tests.metadata_store.store_kit import Play, Scenario, StoreKit

ROUGH = Manners(servers=3, answer_s=0.01, lag_s=0.5)


class TestEmbedded(StoreKit):
    """SQLite, several sessions in one process."""

    @pytest.fixture
    def play(self, tmp_path: Path) -> Play:
        def run(scenario: Scenario) -> None:
            async def whole() -> None:
                store = EmbeddedStore(tmp_path)
                sessions: list[EmbeddedSession] = []

                async def opened() -> EmbeddedSession:
                    sessions.append(EmbeddedSession(store, Runtime()))
                    return sessions[-1]

                await scenario(opened)
                for session in sessions:
                    await session.close()
                store.close()

            asyncio.run(within(whole()))

        return run


class TestModel(StoreKit):
    """The model ZooKeeper in virtual time."""

    manners = CALM

    @pytest.fixture
    def play(self) -> Play:
        def run(scenario: Scenario) -> None:
            async def whole(world: World) -> None:
                zookeeper = ModelZooKeeper(world.random, self.manners)
                sessions: list[ModelSession] = []

                async def opened() -> ModelSession:
                    sessions.append(ModelSession(zookeeper))
                    return sessions[-1]

                await scenario(opened)
                for session in sessions:
                    await session.close()
                assert not zookeeper.links

            for seed in range(3):
                World(seed).run(whole)

        return run


class TestModelOfThree(TestModel):
    """Three servers that lag behind their leader, and answers that take their time."""

    manners = ROUGH


def test_a_change_that_zookeeper_would_not_take_is_refused_before_it_is_sent() -> None:
    check_size([Set("/a", bytes(990_000))])
    with pytest.raises(StorageError, match=r"1,000,066 bytes is larger than ZooKeeper takes"):
        check_size([Create("/a", bytes(500_000)), Set("/b", bytes(499_934))])
