"""The connections to other brokers end with the broker that made them."""

import pytest

from moldau.cluster.broker_links import BrokerLinks
from moldau.errors import KafkaError
from moldau.protocol.messages.fetch import FetchRequest
from tests.cluster.connected import Brokers, played


def test_a_follower_that_asks_after_the_end_makes_no_connection() -> None:
    async def scenario(brokers: Brokers) -> None:
        await brokers.start(1, 2)
        await brokers.until(lambda image: len(image.brokers) == 2)
        links = BrokerLinks(lambda: brokers[1].metadata.image, brokers[1].identity)
        links.close()
        before = list(brokers[2].server.connections)
        with pytest.raises(KafkaError, match="the connections of this broker are closed"):
            await links.fetch(2, FetchRequest(), 10_000)
        assert list(brokers[2].server.connections) == before

    played(scenario)
