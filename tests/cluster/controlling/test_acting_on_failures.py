"""What a controller may not do while something fails: show a registration, let a silent broker lead, forget a topic."""

import asyncio
from collections.abc import Callable, Sequence

from moldau.cluster.controller_locator import ControllerLocator
from moldau.cluster.controlling.controller import NewTopic
from moldau.cluster.membership import SharedStore
from moldau.cluster.state import layout
from moldau.errors import KafkaError, StorageError
from moldau.metadata_store.store import NodeOperation, Set, Written
from tests.cluster.controlling.test_acting import leaders, three
from tests.cluster.several import Members, followed_by, play


def test_nobody_is_told_of_a_registration_if_the_election_that_it_needs_cannot_be_written() -> None:
    async def scenario(members: Members) -> None:
        controller = await three(members)
        await controller.acting.topics.create([NewTopic("t", 3)])
        stream = controller.acting.stream
        assert stream is not None
        before = stream.image
        [led] = [number for number, part in enumerate(before.topics["t"].partitions) if part.leader == 3]
        multi = controller.session.multi

        async def full(operations: Sequence[NodeOperation]) -> list[Written | None]:
            if any(isinstance(one, Set) and one.path.endswith("/state") for one in operations):
                raise StorageError("the disk is full")
            return await multi(operations)

        told = []

        async def follow() -> None:
            position = stream.position
            while True:
                try:
                    followed = await stream.follow(2, -1, 1, position, position)
                except KafkaError:
                    return
                position = followed.position
                told.extend(followed.changes)

        following = asyncio.ensure_future(
            followed_by(
                controller,
            )
        )
        controller.acting._changed.set = lambda: None  # type: ignore[method-assign]  # it hears nothing meanwhile
        await members[3].membership.close()
        await members.join(3)  # its machine has lost power
        controller.session.multi = full  # type: ignore[method-assign]
        del controller.acting._changed.set  # type: ignore[method-assign]
        controller.acting._changed.set()
        await asyncio.sleep(0.5)
        controller.session.multi = multi  # type: ignore[method-assign]
        following.cancel()
        shown = [one.brokers[3] for one in told if 3 in one.brokers]
        elected = [part for one in told for topic in one.changed for part in topic.partitions.items()]
        assert not shown or any(number == led for number, _ in elected), shown

    play(scenario)


def test_a_silent_broker_does_not_lead_a_topic_that_is_created_meanwhile() -> None:
    async def scenario(members: Members) -> None:
        controller = await three(members)
        await controller.acting.topics.create([NewTopic("t", 3)])

        asking = asyncio.ensure_future(followed_by(controller, 1, 2))
        await members.shown(lambda image: sorted(leaders(image.topics["t"])) == [-1, 1, 2])
        await controller.acting.topics.create([NewTopic("u", 3, 2)])
        await asyncio.sleep(120)
        parts = controller.image.topics["u"].partitions
        asking.cancel()
        assert 3 not in {part.leader for part in parts}, parts

    play(scenario)


def test_a_topic_that_a_leaving_broker_has_not_deleted_is_not_forgotten() -> None:
    async def scenario(members: Members) -> None:
        controller = await three(members)
        await controller.acting.topics.create([NewTopic("t", 3)])
        stream = controller.acting.stream
        assert stream is not None
        for _ in range(50):
            if (await stream.follow(3, -1, 1, stream.position - 1, stream.position, 0.1, leaving=True)).may_leave:
                break
            await asyncio.sleep(0.1)
        else:
            raise AssertionError("it may not leave")
        acted = stream.position
        await controller.acting.topics.delete([("t", None)])
        assert stream.position > acted
        for broker in (1, 2):
            await stream.follow(broker, -1, 1, stream.position - 1, stream.position, 0)
        controller.acting.look_at_brokers()
        await asyncio.sleep(1)

        assert list(controller.image.deleted.values()) == ["t"], "broker 3 acts by an image with the topic"

    play(scenario)


def test_the_controller_is_looked_for_again_if_it_could_not_be_read_when_it_moved() -> None:
    async def scenario(members: Members) -> None:
        for number in (1, 2, 3):
            await members.join(number)
        await members.shown(lambda image: list(image.brokers) == [1, 2, 3])
        locator, store = ControllerLocator(), members[3].session
        serving = asyncio.ensure_future(locator.serve(store))
        await asyncio.sleep(1)
        assert locator.controller is not None and locator.controller.id == 1
        read, failures = store.read, []

        async def broken(reading: object) -> object:
            failures.append(1)
            raise StorageError("the store cannot answer")

        store.read = broken  # type: ignore[method-assign]
        await members.pop(1).membership.close()
        await asyncio.sleep(0.3)
        store.read = read  # type: ignore[method-assign]
        assert failures
        await members.controller()
        await asyncio.sleep(60)
        serving.cancel()
        assert locator.controller is not None and locator.controller.id != 1

    play(scenario)


def test_a_watch_that_is_refused_once_does_not_end_the_membership() -> None:
    async def scenario(members: Members) -> None:
        member = members.made(1)
        opened = member._open
        failed = []

        async def open_one() -> object:
            session = await opened()
            watch = session.watch

            async def refused(path: str, look: Callable[[], None]) -> None:
                if not failed and path == layout.BROKERS:
                    failed.append(path)
                    raise StorageError("ZooKeeper refuses a question")
                await watch(path, look)

            session.watch = refused  # type: ignore[method-assign]
            return session

        member.membership._shared = SharedStore(open_one, 6.0)  # type: ignore[arg-type]
        members[1] = await member.join()
        await asyncio.sleep(10)
        assert failed
        assert member.is_controller and not member.membership._going_on.done()  # type: ignore[union-attr]

    play(scenario)
