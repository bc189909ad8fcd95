"""What transcripts cannot tell of the decisions about consumer groups."""

from collections.abc import Iterable

import pytest

from moldau.config import GroupConfig
from moldau.coordinators.consumer.messages import ConsumerGroupSettings
from moldau.coordinators.groups.settings import GroupCoordinatorSettings
from tests.coordinators.consumer.scene import consumer_settings
from tests.coordinators.groups.scene import Actor, Stage


def test_a_decision_that_breaks_off_is_none() -> None:
    def broken(expression: str, topics: Iterable[str]) -> list[str]:
        if topics:
            raise ZeroDivisionError
        return []

    stage = Stage(GroupCoordinatorSettings(consumer=consumer_settings({})))
    actor = Actor(stage)
    for line in ("topic t 2", "beat a epoch=0", "hold", "beat b epoch=0"):
        actor.play(line)
    stage.shard.consumer.changes._match = broken
    with pytest.raises(ZeroDivisionError):
        actor.play("beat c epoch=0 expression=t")
    assert stage.shard.consumer.live["g"].members.keys() == {"a"}
    stage.holding = False
    chain = stage.held[0].chain
    assert chain is not None
    assert chain.broken
    stage.held = []
    assert actor.play("beat a epoch=2") == ["a: a at epoch 2"]


def test_a_groups_own_settings_take_effect_with_the_next_heartbeat_and_for_no_other_group() -> None:
    own = {"g": GroupConfig(consumer_session_timeout_ms=1000, consumer_heartbeat_interval_ms=7)}
    actor = Actor(
        Stage(
            GroupCoordinatorSettings(
                consumer=ConsumerGroupSettings(of_group=lambda group: own.get(group, GroupConfig()))
            )
        )
    )
    stage = actor.stage
    for line in ("beat a epoch=0", "beat b epoch=0 group=h"):
        actor.play(line)
    consumers = stage.shard.consumer
    own["g"] = GroupConfig(consumer_session_timeout_ms=9000)
    stage.wait(999)
    assert actor.play("beat a epoch=2") == ["a: a at epoch 2"]
    stage.wait(8999)
    assert consumers.live["g"].members.keys() == {"a"}
    stage.wait(1)
    assert not consumers.live["g"].members
    assert consumers.live["h"].members.keys() == {"b"}
