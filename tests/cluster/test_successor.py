"""Where a broker looks for the controller when the store cannot say it."""

import asyncio

import pytest

from moldau.cluster.controller_locator import ControllerLocator
from moldau.cluster.state.image import BrokerImage, Endpoint, Image
from moldau.cluster.successor import PAUSE_S, SuccessorSearch
from moldau.errors import ErrorCode, KafkaError
from moldau.peers.address import Address
from moldau.peers.link import Link
from moldau.peers.negotiation import IntendedBroker
from moldau.simulation.world import World

BROKERS = {
    number: BrokerImage(number, (Endpoint("PLAINTEXT", "PLAINTEXT", f"host{number}", 9092),), epoch=number)
    for number in (1, 2, 3)
}


def looked(locator: ControllerLocator, answers: dict[int, int], monkeypatch: pytest.MonkeyPatch) -> float:
    """Broker 2 looks once, and is answered this by the others; the virtual seconds that took."""

    async def answer(_: SuccessorSearch, broker: BrokerImage) -> int:
        return answers[broker.id]

    async def scenario(_: World) -> float:
        began_s = asyncio.get_running_loop().time()
        await SuccessorSearch(locator, lambda: Image("c", brokers=BROKERS), 2).look()
        return asyncio.get_running_loop().time() - began_s

    monkeypatch.setattr(SuccessorSearch, "_controller_of", answer)
    return World(0).run(scenario)


@pytest.mark.parametrize("answers", [{1: 1, 3: 3}, {1: 3, 3: -1}, {1: -1, 3: 3}])
def test_another_one_than_the_controller_that_refused_is_found(
    answers: dict[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    locator = ControllerLocator()
    locator.found(BROKERS[1])
    assert looked(locator, answers, monkeypatch) == 0
    assert locator.controller == BROKERS[3]


@pytest.mark.parametrize("answers", [{1: 1, 3: 1}, {1: -1, 3: -1}, {1: 2, 3: 2}, {1: 7, 3: 7}])
def test_what_is_no_news_is_asked_again_after_a_pause(answers: dict[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    locator = ControllerLocator()
    locator.found(BROKERS[1])
    assert looked(locator, answers, monkeypatch) == PAUSE_S
    assert locator.controller == BROKERS[1]


def test_what_the_store_says_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    locator = ControllerLocator()
    locator.found(BROKERS[1])
    locator.is_told = True
    assert looked(locator, {1: 3, 3: 3}, monkeypatch) == 0
    locator.found(BROKERS[3])
    assert locator.controller == BROKERS[1]


def test_only_the_broker_that_was_known_is_asked_and_not_another_at_its_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[Address, IntendedBroker]] = []

    async def refused(address: Address, client_id: str, timeout_ms: int, *, intended: IntendedBroker) -> Link:
        asked.append((address, intended))
        raise KafkaError(ErrorCode.REBOOTSTRAP_REQUIRED)

    async def scenario(_: World) -> None:
        locator = ControllerLocator()
        await SuccessorSearch(locator, lambda: Image("c", brokers=BROKERS), 2).look()
        assert locator.controller is None

    monkeypatch.setattr("moldau.cluster.successor.connect", refused)
    World(0).run(scenario)
    assert asked == [(Address(f"host{number}", 9092), IntendedBroker("c", number)) for number in (1, 3)]
