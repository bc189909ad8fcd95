"""What transcripts cannot tell of the decisions about groups of the newer protocol."""

from collections.abc import Iterable

import pytest

from moldau.coordinators.groups.exchange import GroupSettings
from tests.coordinators.consumer.scene import consumer_settings
from tests.coordinators.groups.scene import Actor, Stage


def test_a_decision_that_breaks_off_is_none() -> None:
    def broken(expression: str, topics: Iterable[str]) -> list[str]:
        if topics:
            raise ZeroDivisionError
        return []

    stage = Stage(GroupSettings(consumer=consumer_settings({})))
    actor = Actor(stage)
    for line in ("topic t 2", "beat a epoch=0", "hold", "beat b epoch=0"):
        actor.play(line)
    stage.shard.consumers._match = broken
    with pytest.raises(ZeroDivisionError):
        actor.play("beat c epoch=0 expression=t")
    assert stage.shard.consumers.live["g"].members.keys() == {"a"}
    stage.holding = False
    chain = stage.held[0].chain
    assert chain is not None
    assert chain.broken
    stage.held = []
    assert actor.play("beat a epoch=2") == ["a: a at epoch 2"]
