"""A controller that cannot be reached is dialled seldom, whatever waits for it, and its successor at once."""

import asyncio
from typing import Any

import pytest

from moldau.cluster.controller_link import ControllerLink
from moldau.cluster.controller_locator import ControllerLocator
from moldau.cluster.dialling import REDIAL_S, REDIAL_S_MAX, Redialling
from moldau.cluster.state.image import BrokerImage, Endpoint
from moldau.errors import ErrorCode, KafkaError
from moldau.peers.introduction import Identity
from moldau.protocol.apis import ENVELOPE
from moldau.protocol.messages.envelope import EnvelopeRequest
from moldau.runtime import Runtime
from moldau.simulation.network import Network
from moldau.simulation.world import World
from tests.cluster.connected import Brokers, played

ME = Identity("cluster", 9, lambda: -1, lambda: b"")
CALLERS, SECONDS = 50, 60
DEAD, OTHER = (BrokerImage(number, (Endpoint("B", "PLAINTEXT", f"host{number}", 9092),), epoch=1) for number in (1, 2))


@pytest.fixture
def dials(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The hosts that were dialled."""
    hosts: list[str] = []
    dial = Network.dial

    async def counted(self: Network, source: str, host: str, *others: Any) -> Any:
        hosts.append(host)
        return await dial(self, source, host, *others)

    monkeypatch.setattr(Network, "dial", counted)
    return hosts


def test_a_dead_controller_is_dialled_once_a_second_however_many_ask(dials: list[str]) -> None:
    locator = ControllerLocator()
    locator.found(DEAD)
    link = ControllerLink(locator, ME, Runtime())
    request = EnvelopeRequest(request_data=b"", client_host_address=b"")
    refused: list[ErrorCode] = []

    async def ask() -> None:
        loop = asyncio.get_running_loop()
        end_s = loop.time() + SECONDS
        while loop.time() < end_s:
            with pytest.raises(KafkaError) as error:
                await link.call(ENVELOPE, request, 30_000, lambda reply: reply)
            refused.append(error.value.code)
            await asyncio.sleep(0.1)

    async def scenario(_: World) -> float:
        asking = [asyncio.ensure_future(ask()) for _ in range(CALLERS)]
        await asyncio.sleep(SECONDS - 1)
        assert not any(one.done() for one in asking)
        before, loop = len(dials), asyncio.get_running_loop()
        assert CALLERS <= before <= CALLERS + SECONDS / REDIAL_S_MAX + 5, "each once, before the first has failed"
        assert {*refused} == {ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT}
        moved_s = loop.time()
        locator.found(OTHER)
        while "host2" not in dials:
            await asyncio.sleep(0.001)
        return loop.time() - moved_s

    assert World(0).run(scenario) <= 2 * REDIAL_S


def test_a_caller_waits_no_longer_than_it_may(dials: list[str]) -> None:
    async def scenario(_: World) -> None:
        dial, loop = Redialling(), asyncio.get_running_loop()
        for _ in range(6):
            with pytest.raises(KafkaError):
                await dial(DEAD, ME, 30_000)
        began_s, before = loop.time(), len(dials)
        with pytest.raises(KafkaError, match="broker 1 could not be reached"):
            await dial(DEAD, ME, 300)
        assert loop.time() - began_s == pytest.approx(0.3)
        assert len(dials) == before

    World(0).run(scenario)


def test_the_first_connection_ends_the_pauses_of_all() -> None:
    async def scenario(brokers: Brokers) -> None:
        await brokers.start(1, 2)
        await brokers.until(lambda image: len(image.brokers) == 2)
        two, identity, loop = brokers[1].metadata.image.brokers[2], brokers[1].identity, asyncio.get_running_loop()
        dial = Redialling()
        brokers.world.network.partition("client", two.endpoints[0].host)
        for _ in range(6):
            with pytest.raises(KafkaError):
                await dial(two, identity, 10)
        brokers.world.network.heal()
        began_s = loop.time()
        await asyncio.gather(*(dial(two, identity, 30_000) for _ in range(CALLERS)))
        assert loop.time() - began_s <= REDIAL_S_MAX + REDIAL_S

    played(scenario)


def test_a_new_registration_is_dialled_at_once(dials: list[str]) -> None:
    async def scenario(_: World) -> None:
        dial, loop = Redialling(), asyncio.get_running_loop()
        for _ in range(6):
            with pytest.raises(KafkaError):
                await dial(DEAD, ME, 30_000)
        began_s, before = loop.time(), len(dials)
        with pytest.raises(KafkaError):
            await dial(DEAD._replace(epoch=2), ME, 30_000)
        assert len(dials) == before + 1
        assert loop.time() - began_s < REDIAL_S

    World(0).run(scenario)
