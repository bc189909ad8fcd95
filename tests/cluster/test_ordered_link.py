"""The one connection to a leader: requests keep their order, also while it is made; it follows the broker's life."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from moldau.cluster import ordered_link
from moldau.cluster.ordered_link import OrderedLink
from moldau.cluster.state.image import BrokerImage
from moldau.errors import ErrorCode, KafkaError
from moldau.peers.introduction import Identity
from moldau.peers.link import Link
from moldau.protocol.apis import API_VERSIONS
from moldau.protocol.messages.api_versions import ApiVersionsRequest
from tests.cluster.connected import Brokers, played

TIMEOUT_MS = 10_000


async def started(brokers: Brokers) -> tuple[OrderedLink, BrokerImage]:
    """The connection of broker 1 to broker 2, and broker 2 as it is registered."""
    await brokers.start(1, 2)
    await brokers.until(lambda image: len(image.brokers) == 2)
    return OrderedLink(brokers[1].identity), brokers[1].metadata.image.brokers[2]


def test_requests_go_out_in_order_while_the_connection_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(brokers: Brokers) -> None:
        ordered, two = await started(brokers)
        may_dial, sent = asyncio.Event(), []
        dialled = ordered_link.dialled

        async def late(broker: BrokerImage, identity: Identity, timeout_ms: int) -> Link:
            await may_dial.wait()
            return await dialled(broker, identity, timeout_ms)

        monkeypatch.setattr("moldau.cluster.ordered_link.dialled", late)

        async def ask(number: int) -> Link:
            link = await ordered.link_to(two, TIMEOUT_MS)
            sent.append(number)
            await link.call(API_VERSIONS, ApiVersionsRequest(), TIMEOUT_MS)
            return link

        asked = [asyncio.ensure_future(ask(number)) for number in range(3)]
        await asyncio.sleep(0.1)
        assert sent == []
        may_dial.set()
        assert len({id(link) for link in await asyncio.gather(*asked)}) == 1
        assert sent == [0, 1, 2]

    played(scenario)


def test_a_broken_connection_is_made_again() -> None:
    async def scenario(brokers: Brokers) -> None:
        ordered, two = await started(brokers)
        first = await ordered.link_to(two, TIMEOUT_MS)
        first.connection.close()
        second = await ordered.link_to(two, TIMEOUT_MS)
        assert second is not first and not second.closed

    played(scenario)


def test_a_connection_that_cannot_be_made_is_tried_again_by_the_next_request(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(brokers: Brokers) -> None:
        ordered, two = await started(brokers)

        async def refused(*_: object) -> Link:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, "nobody is there")

        with monkeypatch.context() as patched:
            patched.setattr("moldau.cluster.ordered_link.dialled", refused)
            with pytest.raises(KafkaError, match="nobody is there"):
                await ordered.link_to(two, TIMEOUT_MS)
        assert not (await ordered.link_to(two, TIMEOUT_MS)).closed

    played(scenario)


def test_the_connection_stays_while_the_broker_leaves_and_ends_when_it_has_registered_anew() -> None:
    async def scenario(brokers: Brokers) -> None:
        ordered, two = await started(brokers)
        first = await ordered.link_to(two, TIMEOUT_MS)
        assert await ordered.link_to(two._replace(leaving=True), TIMEOUT_MS) is first
        later = two._replace(epoch=two.epoch + 1)
        brokers[1].metadata.image = replace(brokers[1].metadata.image, brokers={2: later})
        second = await ordered.link_to(later, TIMEOUT_MS)
        assert first.closed and not second.closed

    played(scenario)


def test_it_closes_with_what_it_belongs_to() -> None:
    async def scenario(brokers: Brokers) -> None:
        ordered, two = await started(brokers)
        link = await ordered.link_to(two, TIMEOUT_MS)
        ordered.close()
        assert link.closed
        with pytest.raises(KafkaError, match="the connection to broker 2 was closed"):
            await ordered.link_to(two, TIMEOUT_MS)

    played(scenario)


def test_a_connection_that_is_made_while_it_closes_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(brokers: Brokers) -> None:
        ordered, two = await started(brokers)
        dialled, made = ordered_link.dialled, []

        async def closing(*arguments: Any) -> Link:
            made.append(await dialled(*arguments))
            ordered.close()
            return made[0]

        monkeypatch.setattr("moldau.cluster.ordered_link.dialled", closing)
        with pytest.raises(KafkaError, match="the connection to broker 2 was closed"):
            await ordered.link_to(two, TIMEOUT_MS)
        assert made[0].closed

    played(scenario)
