"""What members hear whose coordinator could not write what it decided."""

from moldau.errors import ErrorCode
from tests.coordinators.consumer import scene as consumer_scene
from tests.coordinators.groups.scene import Actor, Stage
from tests.coordinators.settings import group_settings


def actor(**consumer: int) -> Actor:
    return Actor(Stage(group_settings(consumer_scene.consumer_settings(consumer), initial_rebalance_delay_ms=3000)))


def played(one: Actor, script: str) -> list[str]:
    return [row for line in script.strip().split("\n") for row in one.play(line.strip())]


def test_everybody_who_waits_in_a_group_made_anew_is_answered_if_the_log_refuses() -> None:
    one = actor()
    played(
        one,
        """topic t 1
        beat a epoch=0
        beat a epoch=-1
        hold
        join b v=3
        join c v=3""",
    )
    said = played(one, "refuse NOT_COORDINATOR")
    one.stage.answer(one.stage.shard.stop(ErrorCode.NOT_COORDINATOR))  # as `resign` does
    assert any(line.startswith("b: ") for line in said)
    assert not one.stage.waiting, "c is never answered"


def test_the_last_member_is_not_told_that_it_has_left_if_the_log_refuses() -> None:
    one = actor()
    said = played(one, "join b v=3")
    said = played(one, "wait 3s")
    member = said[-1].split(" joined as ")[1].split(",")[0] if " joined as " in said[-1] else ""
    assert member
    played(one, f"sync b gen=1 id={member} {member}=all")
    one.stage.holding = True
    played(one, f"leave b {member}")
    said = played(one, "refuse NOT_COORDINATOR")
    one.stage.crash()
    assert member in one.stage.shard.classic.live["g"].members
    assert said == ["b: NOT_COORDINATOR"], said


def test_a_refusal_takes_no_time_from_a_session() -> None:
    one = actor(session_timeout_ms=10_000)
    played(
        one,
        """topic t 2
        beat a epoch=0
        hold
        beat b epoch=0
        wait 9s
        beat a epoch=2""",
    )
    played(one, "refuse NOT_ENOUGH_REPLICAS")
    one.stage.holding = False
    played(one, "wait 5s")
    assert "a" in one.stage.shard.consumer.live["g"].members
