"""A broker of several, as the clients of its own parts see it."""

import asyncio

import pytest

from moldau.cluster.controller_link import ControllerLink
from moldau.cluster.controlling.controller import NewTopic
from moldau.cluster.joined import MemberTopics
from moldau.errors import ErrorCode, KafkaError
from moldau.names import OFFSETS_TOPIC
from moldau.peers.link import REQUEST_TIMEOUT_MS
from moldau.runtime import Runtime
from tests.cluster.connected import Brokers, played


def test_a_topic_that_nobody_can_create_is_refused_while_its_client_still_waits() -> None:
    async def scenario(brokers: Brokers) -> None:
        await brokers.start(1, 2)
        one = brokers[1]
        link = ControllerLink(one.locator, one.identity, Runtime())
        topics = MemberTopics(one.acting, one.following, link, one.metadata, Runtime())
        brokers.store.lose_quorum()
        while any(broker.is_controller for broker in brokers.values()):
            await asyncio.sleep(0.1)
        began_s = asyncio.get_running_loop().time()
        with pytest.raises(KafkaError) as refused:
            await topics.create_needed([NewTopic(OFFSETS_TOPIC)])
        assert refused.value.code is ErrorCode.NOT_CONTROLLER
        assert asyncio.get_running_loop().time() - began_s < REQUEST_TIMEOUT_MS / 2000

    played(scenario)
