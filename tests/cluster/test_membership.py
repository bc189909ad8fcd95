"""A broker's sessions and its node: one broker for each id, and a new session after one that is over."""

import asyncio
import json
from collections.abc import Sequence

import pytest

from moldau.cluster.beginning import BrokerConflict
from moldau.cluster.membership import SharedStore
from moldau.cluster.state import layout
from moldau.cluster.state.image import BrokerImage, Endpoint
from moldau.cluster.state.registrations import registration_of
from moldau.errors import StorageError
from moldau.metadata_store.store import Node, NodeOperation, NoNode, Written, result_of
from moldau.simulation.zookeeper_session import ModelSession
from tests.cluster.several import TIMEOUT_S, Members, play


def test_the_first_broker_begins_the_cluster_and_the_others_join_it() -> None:
    async def scenario(members: Members) -> None:
        joined = await asyncio.gather(*(members.join(number) for number in (1, 2, 3)))
        await members.shown(lambda image: list(image.brokers) == [1, 2, 3])
        assert len(joined) == 3
        assert (await members.controller()).image.cluster_id == json.loads(members.store.nodes["/cluster/id"].data)[
            "id"
        ]

    play(scenario)


def test_a_second_broker_with_the_same_id_is_refused_with_the_address_of_the_first() -> None:
    async def scenario(members: Members) -> None:
        first = await members.join(1)
        node = members.store.nodes["/brokers/ids/1"]
        del members[1]
        began = asyncio.get_running_loop().time()
        running = r"the id 1 is running at PLAINTEXT://host1:9092 \(registered at \d{4}-\d\d-\d\d \d\d:"
        with pytest.raises(BrokerConflict, match=running):
            await members.join(1)
        assert asyncio.get_running_loop().time() - began >= TIMEOUT_S, "it might have been killed"
        assert members.store.nodes["/brokers/ids/1"] is node
        await first.membership.close()

    play(scenario)


@pytest.mark.parametrize("timestamp", ["10" * 40, "-1" + "0" * 15, "soon", None, []])
def test_a_registration_without_a_time_is_named_without_it(timestamp: object) -> None:
    document = {"version": 5, "endpoints": ["PLAINTEXT://host1:9092"], "timestamp": timestamp}
    node = Node(json.dumps(document).encode(), 0)
    registered = result_of(registration_of(1), lambda _: [node])
    assert registered is not None
    assert (str(registered.broker.endpoints[0]), registered.since) == ("PLAINTEXT://host1:9092", "")


def test_a_broker_that_was_killed_is_replaced_when_its_session_ends() -> None:
    async def scenario(members: Members) -> None:
        first = await members.join(1)
        first.die()
        epoch = first.membership.epoch
        second = await members.join(1)
        assert second.membership.epoch != epoch
        assert members.store.nodes["/brokers/ids/1"].owner == second.session.session_id

    play(scenario)


def test_a_broker_whose_session_is_over_registers_in_another_one() -> None:
    async def scenario(members: Members) -> None:
        await members.join(1)
        second = await members.join(2)
        await members.shown(lambda image: list(image.brokers) == [1, 2])
        session, epoch = second.session, second.membership.epoch
        members.store.cut(session.link)
        await members.shown(lambda image: list(image.brokers) == [1])
        image = await members.shown(lambda image: list(image.brokers) == [1, 2])
        assert second.session is not session
        assert image.brokers[2].epoch == second.membership.epoch != epoch

    play(scenario)


def test_a_broker_serves_its_cluster_again_in_its_session_after_a_fault_of_its_own(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(members: Members) -> None:
        await members.join(1)
        second = await members.join(2)
        await members.shown(lambda image: list(image.brokers) == [1, 2])
        session, epoch, served = second.session, second.membership.epoch, list[int]()

        async def serve_badly(_: object) -> None:
            served.append(1)
            raise ZeroDivisionError("a defect")

        second.membership._serve = serve_badly
        members.store.end(session.link)
        await members.shown(lambda image: 2 in image.brokers and image.brokers[2].epoch != epoch)
        epoch = second.membership.epoch
        await asyncio.sleep(10)
        assert 10 <= len(served) <= 25
        assert second.membership.epoch == epoch, "while its lease holds, its session must not end"
        assert any("internal error: this broker" in line for line in caplog.messages)

    play(scenario)


@pytest.mark.parametrize("failure", [ZeroDivisionError("a defect"), NoNode(layout.BROKERS)])
def test_a_broker_that_fails_to_register_again_tries_once_more(failure: Exception) -> None:
    async def scenario(members: Members) -> None:
        await members.join(1)
        second = await members.join(2)
        epoch, failed = second.membership.epoch, list[int]()

        async def opened() -> ModelSession:
            session = await second._open()
            multi = session.multi

            async def refused(operations: Sequence[NodeOperation]) -> list[Written | None]:
                if not failed:
                    failed.append(1)
                    raise failure
                return await multi(operations)

            session.multi = refused  # type: ignore[method-assign]
            return session

        second.membership._shared = SharedStore(opened, TIMEOUT_S)
        members.store.end(second.session.link)
        await members.shown(lambda image: 2 in image.brokers and image.brokers[2].epoch != epoch)
        assert failed

    play(scenario)


def test_a_broker_is_a_member_again_when_the_quorum_is_back() -> None:
    async def scenario(members: Members) -> None:
        await members.join(1)
        await members.join(2)
        await members.shown(lambda image: list(image.brokers) == [1, 2])
        members.store.lose_quorum()
        await asyncio.sleep(5 * TIMEOUT_S)
        members.store.regain_quorum()
        await members.shown(lambda image: list(image.brokers) == [1, 2] and image.controller_epoch > 1)
        await (await members.controller()).acting.topics.ensure("a")

    play(scenario)


def test_a_start_without_a_quorum_goes_on_when_there_is_one() -> None:
    async def scenario(members: Members) -> None:
        members.store.lose_quorum()
        starting = asyncio.ensure_future(members.join(1))
        await asyncio.sleep(5 * TIMEOUT_S)
        assert not starting.done()
        members.store.regain_quorum()
        await starting
        await members.shown(lambda image: list(image.brokers) == [1])

    play(scenario)


def test_a_session_that_ends_while_a_broker_loads_its_logs_does_not_end_its_start() -> None:
    async def scenario(members: Members) -> None:
        member = members[1] = members.made(1)
        await member.membership.join(None)
        first = member.session
        members.store.end(first.link)
        await member.register()
        assert member.session is not first
        image = await members.shown(lambda image: list(image.brokers) == [1])
        assert image.brokers[1].epoch == member.membership.epoch

    play(scenario)


def test_whether_a_node_was_made_is_looked_up_if_the_answer_was_lost() -> None:
    async def scenario(members: Members) -> None:
        member = members[1] = members.made(1)
        await member.membership.join(None)
        members.store.lose_next_answer(member.session.link)
        registering = asyncio.ensure_future(member.register())
        while member.session.link.is_up:
            await asyncio.sleep(0)
        members.store.mend(member.session.link)
        await registering
        assert members.store.nodes["/brokers/ids/1"].owner == member.session.session_id

    play(scenario)


def test_a_broker_whose_id_was_taken_while_it_had_no_session_gives_up() -> None:
    async def scenario(members: Members) -> None:
        member = await members.join(1)
        members.store.end(member.session.link)
        taker = ModelSession(members.store)
        await taker.multi([layout.broker(BrokerImage(1, (Endpoint("PLAINTEXT", "PLAINTEXT", "taker", 1),)), 0)])
        while not member.given_up:
            await asyncio.sleep(0.1)
        assert "another broker with the id 1 is running at PLAINTEXT://taker:1" in str(member.given_up[0])
        await taker.close()

    play(scenario)


def test_a_broker_that_lost_a_log_folder_registers_the_others() -> None:
    async def scenario(members: Members) -> None:
        member = await members.join(1)
        await member.membership.serve_only(["left"])
        image = await members.shown(lambda image: bool(image.brokers) and image.brokers[1].directories != ())
        assert image.brokers[1].directories == ("left",)
        await member.membership.serve_only(["right"])
        await members.shown(lambda image: image.brokers[1].directories == ("right",))

    play(scenario)


def test_a_broker_says_which_log_folders_are_left_although_an_answer_was_lost() -> None:
    async def scenario(members: Members) -> None:
        await members.join(1)
        member = await members.join(2)
        await members.shown(lambda image: list(image.brokers) == [1, 2])
        members.store.lose_next_answer(member.session.link)
        await member.membership.serve_only(["left"])
        image = await members.shown(lambda image: image.brokers[2].directories == ("left",))
        await member.membership.serve_only(["right"])
        image = await members.shown(lambda image: image.brokers[2].directories == ("right",))
        assert image.brokers[2].epoch == member.membership.epoch

    play(scenario)


def test_a_broker_is_a_member_again_although_its_old_session_cannot_be_ended() -> None:
    """The shared file of a full disk: every later attempt to end that session fails as the first one did."""

    async def refused() -> None:
        raise StorageError("the disk is full")

    async def scenario(members: Members) -> None:
        await members.join(1)
        second = await members.join(2)
        session, epoch = second.session, second.membership.epoch
        session.close = refused  # type: ignore[method-assign]
        members.store.cut(session.link)
        image = await members.shown(lambda image: 2 in image.brokers and image.brokers[2].epoch != epoch)
        assert second.session is not session
        assert image.brokers[2].epoch == second.membership.epoch

    play(scenario)
