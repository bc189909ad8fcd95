"""Connections to other brokers: used again, one request at a time, and closed with what they belong to."""

from dataclasses import replace

from moldau.cluster.link_pool import KEPT, LinkPool
from moldau.cluster.state.image import BrokerImage
from moldau.errors import ErrorCode, KafkaError
from moldau.peers.link import Link
from tests.cluster.connected import Brokers, played

TIMEOUT_MS = 10_000


def pool_to(brokers: Brokers) -> tuple[LinkPool, BrokerImage]:
    """Connections of broker 1, and broker 2 as it is registered."""
    one = brokers[1]
    pool = LinkPool(one.identity, lambda broker: one.metadata.image.brokers.get(broker.id) == broker)
    return pool, one.metadata.image.brokers[2]


async def started(brokers: Brokers) -> tuple[LinkPool, BrokerImage]:
    await brokers.start(1, 2)
    await brokers.until(lambda image: len(image.brokers) == 2)
    return pool_to(brokers)


def test_a_connection_is_used_again_but_by_one_request_at_a_time() -> None:
    async def scenario(brokers: Brokers) -> None:
        pool, two = await started(brokers)
        async with pool.link_to(two, TIMEOUT_MS) as first:
            async with pool.link_to(two, TIMEOUT_MS) as second:
                assert second is not first
        assert not first.closed and not second.closed
        async with pool.link_to(two, TIMEOUT_MS) as again:
            assert again in (first, second)

    played(scenario)


def test_a_connection_whose_request_failed_is_closed() -> None:
    async def scenario(brokers: Brokers) -> None:
        pool, two = await started(brokers)
        try:
            async with pool.link_to(two, TIMEOUT_MS) as link:
                raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
        except KafkaError:
            assert link.closed

    played(scenario)


def test_only_a_few_free_connections_are_kept() -> None:
    async def scenario(brokers: Brokers) -> None:
        pool, two = await started(brokers)
        links: list[Link] = []

        async def nested(left: int) -> None:
            if left:
                async with pool.link_to(two, TIMEOUT_MS) as link:
                    links.append(link)
                    await nested(left - 1)

        await nested(KEPT + 2)
        assert [link.closed for link in links].count(False) == KEPT

    played(scenario)


def test_connections_to_an_earlier_life_of_a_broker_are_closed() -> None:
    async def scenario(brokers: Brokers) -> None:
        pool, two = await started(brokers)
        async with pool.link_to(two, TIMEOUT_MS) as link:
            pass
        later = two._replace(epoch=two.epoch + 1)
        brokers[1].metadata.image = replace(brokers[1].metadata.image, brokers={2: later})
        async with pool.link_to(later, TIMEOUT_MS) as other:
            assert link.closed and other is not link

    played(scenario)


def test_a_closed_pool_keeps_no_connection_that_a_request_puts_back() -> None:
    async def scenario(brokers: Brokers) -> None:
        pool, two = await started(brokers)
        async with pool.link_to(two, TIMEOUT_MS) as link:
            pool.close()
            assert not link.closed
        assert link.closed

    played(scenario)
