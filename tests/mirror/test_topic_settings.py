"""Settings of topics: asked of many at once, and kept in the target as far as it takes them."""

import asyncio
from collections.abc import Iterator
from typing import Any, cast

import pytest

from moldau.client.routing import Router
from moldau.errors import ErrorCode, KafkaError, NoSuchPartition
from moldau.mirror import topic_settings
from moldau.mirror.ends import SETTING, ClusterEnd
from moldau.mirror.keeping import TopicUpkeep
from moldau.mirror.planning import TopicPlan
from moldau.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(log_cleanup_policy="compact") as made:
        yield made


def test_one_request_is_about_many_topics_and_one_that_is_gone_does_not_spoil_it(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"t{number}" for number in range(5)]
    for name in names:
        broker.create_topic(name, 1, retention_ms=5_000)
    broker.create_topic("deletes", 1, cleanup_policy="delete")
    monkeypatch.setattr(topic_settings, "ASKED_AT_ONCE", 3)
    asked = 0
    of_any = Router.any

    async def counted(router: Router) -> Any:
        nonlocal asked
        asked += 1
        return await of_any(router)

    async def scenario() -> None:
        async with ClusterEnd(broker.address, "--from") as end:
            monkeypatch.setattr(Router, "any", counted)
            found = await end.settings([*names, "gone", "deletes"])
            assert asked == 3
            assert isinstance(found.pop("gone"), NoSuchPartition)
            assert found.pop("deletes") == {"cleanup.policy": "delete"}
            # What the cluster has for topics that say nothing else is not a setting of the topic.
            assert found == {name: {"retention.ms": "5000"} for name in names}
            with pytest.raises(NoSuchPartition):
                await end.own_settings("gone")

    asyncio.run(scenario())


class Choosy:
    """A cluster that does not know the setting `odd`."""

    def __init__(self) -> None:
        self.asked: list[dict[str, str | None]] = []
        self.has: dict[str, str | None] = {}

    async def create_topic(self, name: str, *, configs: dict[str, str | None], **_: object) -> None:
        await self.alter_topic_configs(name, configs)

    async def alter_topic_configs(self, name: str, changes: dict[str, str | None]) -> None:
        self.asked.append(dict(changes))
        if "odd" in changes:
            raise KafkaError(ErrorCode.INVALID_CONFIG, "unknown topic config name: odd")
        self.has |= changes


def test_a_setting_that_the_target_does_not_take_is_told_once_and_the_topic_is_mirrored_without_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = Choosy()
    upkeep = TopicUpkeep(cast(ClusterEnd, type("End", (), {"admin": cluster})), -1)
    made = {"odd": "1", "retention.ms": "5", SETTING: "c/t"}

    async def scenario() -> None:
        await upkeep.carry_out("t", 1, TopicPlan(make=True, changes=made), "t is mirrored")
        assert cluster.has == {"retention.ms": "5", SETTING: "c/t"}
        asked = len(cluster.asked)
        await upkeep.carry_out("t", 1, TopicPlan(changes={"odd": "1"}), "")
        assert len(cluster.asked) == asked
        await upkeep.carry_out("t", 1, TopicPlan(changes={"odd": "2", "retention.ms": "6"}), "")
        assert cluster.has["retention.ms"] == "6"

    asyncio.run(scenario())
    told = [one.message for one in caplog.records if "without the setting" in one.message]
    assert [line.partition(":")[0] for line in told] == [
        "t is mirrored without the setting odd=1",
        "t is mirrored without the setting odd=2",
    ]
