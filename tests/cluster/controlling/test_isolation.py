"""A controller that hears from too few brokers gives way; the next one stays until it hears from enough."""

import asyncio
import contextlib
from collections.abc import Mapping

import pytest

from moldau.cluster.controlling.isolation import GRACE_S, hearing_s, is_isolated
from moldau.errors import KafkaError
from tests.cluster.several import TIMEOUT_S, Member, Members, play


@pytest.mark.parametrize(
    ("registered", "heard", "expected"),
    [
        (1, 1, False),
        (2, 1, True),
        (2, 2, False),
        (3, 1, True),
        (3, 2, False),
        (4, 2, False),
        (5, 2, True),
        (5, 3, False),
    ],
)
def test_a_controller_is_isolated_alone_and_in_a_minority(registered: int, heard: int, expected: bool) -> None:
    assert is_isolated(registered, heard) is expected


def test_a_broker_is_not_heard_from_after_its_session_and_two_questions_and_before_it_is_silent() -> None:
    assert [hearing_s(18, 30, 2), hearing_s(1, 30, 2), hearing_s(18, 10, 2)] == [19.5, 4, 10]


async def asks(members: Members, broker: int, whom: Mapping[int, set[int]]) -> None:
    """Broker asks the controller each second, if it reaches it: `whom` has the brokers that each one reaches."""
    while True:
        controller = next((one for one in members.values() if one.is_controller), None)
        if controller is not None and controller.broker_id in whom[broker]:
            stream = controller.acting.stream
            assert stream is not None
            with contextlib.suppress(KafkaError):
                await stream.follow(broker, -1, stream.controller_epoch, stream.position, stream.position, 0)
        await asyncio.sleep(1)


class Asking:
    """Brokers 1 to `count`, of which 1 is the controller, ask each other as far as they reach each other."""

    def __init__(self, members: Members, count: int):
        self.members = members
        self.whom = {number: {*range(1, count + 1)} for number in range(1, count + 1)}

    async def start(self) -> Member:
        for number in self.whom:
            await self.members.join(number)
        controller = await self.members.controller()
        self.tasks = [asyncio.ensure_future(asks(self.members, number, self.whom)) for number in self.whom]
        await asyncio.sleep(60)
        assert controller.is_controller, "it hears from all"
        return controller

    def cut(self, one: int) -> None:
        for number in self.whom:
            self.whom[number] = {number} if number == one else self.whom[number] - {one}

    async def seen(self, seconds: int) -> list[int]:
        """The controllers of that time, in their order."""
        found: list[int] = []
        for _ in range(seconds * 10):
            for member in self.members.values():
                if member.is_controller and found[-1:] != [member.broker_id]:
                    found.append(member.broker_id)
            await asyncio.sleep(0.1)
        for task in self.tasks:
            task.cancel()
        return found


@pytest.mark.parametrize("count", [2, 3, 4])
def test_a_controller_that_is_cut_off_gives_way_once_and_the_next_one_takes_it_for_silent(count: int) -> None:
    async def scenario(members: Members) -> None:
        asking = Asking(members, count)
        first = await asking.start()
        asking.cut(first.broker_id)
        await asyncio.sleep(TIMEOUT_S + GRACE_S + 0.5)
        assert not first.is_controller
        [second] = await asking.seen(120)
        assert second != first.broker_id
        assert first.broker_id in (members[second].acting._silent or ())

    play(scenario)


def test_where_nobody_hears_anybody_the_last_controller_stays() -> None:
    async def scenario(members: Members) -> None:
        asking = Asking(members, 3)
        first = await asking.start()
        for number in (1, 2, 3):
            asking.cut(number)
        found = await asking.seen(120)
        assert len(found) == 3 and found[0] == first.broker_id, "each gave way once"

    play(scenario)


def test_a_minority_does_not_keep_the_office() -> None:
    async def scenario(members: Members) -> None:
        asking = Asking(members, 5)
        first = await asking.start()
        second = next(member for member in members.values() if member is not first)
        minority = {first.broker_id, second.broker_id}
        for number in asking.whom:
            asking.whom[number] = minority if number in minority else asking.whom[number] - minority
        for number in asking.whom.keys() - minority:  # the other one of the minority is the first to stand
            members[number].acting._is_leaving = True
        await asyncio.sleep(TIMEOUT_S + GRACE_S + 1)
        assert second.is_controller
        for number in asking.whom.keys() - minority:
            members[number].acting._is_leaving = False
        found = await asking.seen(120)
        assert found[0] == second.broker_id and found[-1] not in minority
        assert len(found) == 2, found

    play(scenario)


def test_the_office_is_not_left_with_a_controller_that_could_not_write_that_it_gave_way() -> None:
    async def scenario(members: Members) -> None:
        asking = Asking(members, 3)
        first = await asking.start()
        asking.cut(first.broker_id)
        members.store.lose_next_answer(first.session.link)
        await asyncio.sleep(TIMEOUT_S + GRACE_S + 3)
        [second] = await asking.seen(60)
        assert second != first.broker_id

    play(scenario)


def test_a_controller_stands_again_if_no_other_one_does_and_stays_then() -> None:
    async def scenario(members: Members) -> None:
        asking = Asking(members, 2)
        first = await asking.start()
        other = next(member for member in members.values() if member is not first)
        other.acting._is_leaving = True  # it hangs: it neither asks nor stands, and its session lasts
        asking.cut(first.broker_id)
        await asyncio.sleep(TIMEOUT_S + GRACE_S + 0.5)
        assert not first.is_controller
        assert await asking.seen(120) == [first.broker_id]
        assert other.broker_id in (first.acting._silent or ())

    play(scenario)


def test_a_controller_whose_brokers_have_all_died_does_not_wait_for_others_to_stand() -> None:
    async def scenario(members: Members) -> None:
        asking = Asking(members, 3)
        first = await asking.start()
        asking.cut(first.broker_id)
        await asyncio.sleep(TIMEOUT_S + GRACE_S - 1)  # it gives way shortly before the sessions of the others end
        for member in [member for member in members.values() if member is not first]:
            member.acting._is_leaving = True
            member.die()
            del members[member.broker_id]
        await asyncio.sleep(2)
        assert not first.is_controller
        await members.shown(lambda image: list(image.brokers) == [first.broker_id])
        assert asyncio.get_running_loop().time() < 60 + 2 * (TIMEOUT_S + GRACE_S)
        assert await asking.seen(60) == [first.broker_id]

    play(scenario)


def test_a_controller_that_has_heard_from_all_since_gives_way_again() -> None:
    async def scenario(members: Members) -> None:
        asking = Asking(members, 3)
        first = await asking.start()
        reach = dict(asking.whom)
        asking.cut(first.broker_id)
        await asyncio.sleep(30)
        asking.whom.update(reach)
        second = await members.controller()
        await asyncio.sleep(30)
        assert second.is_controller and second is not first
        asking.cut(second.broker_id)
        await asyncio.sleep(TIMEOUT_S + GRACE_S + 0.5)
        assert not second.is_controller
        [third] = await asking.seen(60)
        assert third != second.broker_id

    play(scenario)
