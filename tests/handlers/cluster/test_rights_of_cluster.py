"""FindCoordinator, DescribeCluster and DescribeLogDirs for clients that may not see everything."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from moldau.cluster.state.image import BrokerImage, Endpoint, Image, PartitionImage, TopicImage
from moldau.errors import ErrorCode
from moldau.handlers.cluster.describe_log_dirs import DescribeLogDirs
from moldau.handlers.cluster.find_coordinator import GROUP, TRANSACTION, CoordinatorType, FindCoordinator
from moldau.handlers.rights import RIGHTS
from moldau.names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from moldau.protocol.apis import DESCRIBE_CLUSTER, DESCRIBE_LOG_DIRS, FIND_COORDINATOR
from moldau.protocol.messages.describe_cluster import DescribeClusterRequest
from moldau.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.requests import access
from moldau.requests.access import (
    ALTER_CLUSTER,
    CLUSTER_NAME,
    DESCRIBE_GROUP,
    DESCRIBE_TRANSACTIONAL_ID,
    OPERATIONS,
    ResourceType,
    Right,
)
from moldau.turns import turn
from tests.cluster.opening import open_cluster
from tests.handlers.asking import Asker, ask
from tests.handlers.living import Living, run
from tests.requests.calling import Denying, call

KINDS = [
    (GROUP, DESCRIBE_GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    (TRANSACTION, DESCRIBE_TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
]
TOPICS = {GROUP: OFFSETS_TOPIC, TRANSACTION: TRANSACTIONS_TOPIC}


class Coordinators:
    """FindCoordinator of a broker that creates the coordinators' topics in memory; `made` are their names."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self._image = Image("c", brokers={1: BrokerImage(1, (Endpoint("PLAINTEXT", "PLAINTEXT", "host1", 9092),))})
        kinds = {kind: CoordinatorType(topic, self._making(topic)) for kind, topic in TOPICS.items()}
        self.find = FindCoordinator(kinds, lambda: self._image)

    def _making(self, name: str) -> Callable[[], Awaitable[None]]:
        async def make() -> None:
            self.made.append(name)
            topic = TopicImage(name, uuid.uuid4(), (PartitionImage(1, 0, (1,), (1,)),), {})
            self._image = self._image.with_topics({name: topic})

        return make

    def ask(self, version: int, kind: int, *keys: str, client: Denying) -> list[Any]:
        """The answers for keys; before version 4 one request for each."""
        batches = [keys] if version >= 4 else [(key,) for key in keys]

        async def asking() -> list[Any]:
            found: list[Any] = []
            for batch in batches:
                request = FindCoordinatorRequest(key=batch[0], key_type=kind, coordinator_keys=list(batch))
                response = await ask(self.find, FIND_COORDINATOR, version, request, authorizer=client)
                found += response.coordinators if version >= 4 else [response]
            return found

        return asyncio.run(asking())


@pytest.mark.parametrize("version", [1, 3, 4, FIND_COORDINATOR.high])
@pytest.mark.parametrize(("kind", "right", "error"), KINDS)
def test_the_coordinator_of_what_may_not_be_described_is_not_named(
    version: int, kind: int, right: Right, error: ErrorCode
) -> None:
    coordinators, client = Coordinators(), Denying((right, "hidden"))
    found = coordinators.ask(version, kind, "hidden", "shown", "hidden", client=client)
    assert [one.error_code for one in found] == [error, 0, error]
    assert (found[1].node_id, found[1].host, found[1].port) == (1, "host1", 9092)
    for one in (found[0], found[2]):
        assert (one.node_id, one.host, one.port) == (-1, "", -1)
        assert one.error_message == ("" if version >= 4 else f"T{error.sentence[1:]}.")
    asked = [(right, "hidden"), (right, "shown")]
    assert client.asked == (asked if version >= 4 else [*asked, (right, "hidden")])
    assert client.logged[0] == (right, "hidden")


def test_version_0_asks_for_groups() -> None:
    (found,) = Coordinators().ask(0, GROUP, "g", client=Denying((DESCRIBE_GROUP, "g")))
    assert (found.error_code, found.node_id) == (ErrorCode.GROUP_AUTHORIZATION_FAILED, -1)


@pytest.mark.parametrize("version", [3, FIND_COORDINATOR.high])
@pytest.mark.parametrize(("kind", "right", "error"), KINDS)
def test_no_topic_is_created_for_a_client_that_may_not_describe_any_key(
    version: int, kind: int, right: Right, error: ErrorCode
) -> None:
    coordinators = Coordinators()
    coordinators.ask(version, kind, "x", "y", client=Denying((right, "*")))
    assert coordinators.made == []
    coordinators.ask(version, kind, "x", "y", client=Denying((right, "x")))
    assert coordinators.made == [TOPICS[kind]]


def test_find_coordinator_asks_for_the_rights_of_its_line() -> None:
    client = Denying()
    for kind in (GROUP, TRANSACTION, 2):
        Coordinators().ask(6, kind, "x", client=client)
    assert {right for right, _ in client.asked} == {*RIGHTS[FIND_COORDINATOR].parts}


def test_many_keys_are_judged_in_turns() -> None:
    client = Denying((DESCRIBE_GROUP, "*"))
    request = FindCoordinatorRequest(key_type=GROUP, coordinator_keys=[f"g{number}" for number in range(2500)])
    steps: Any = turn(Coordinators().find(request, call(FIND_COORDINATOR, 6, authorizer=client)))
    assert len(client.asked) == 1000
    for _ in range(5):
        steps = turn(steps)
    assert len(steps.coordinators) == len(client.asked) == 2500


@pytest.mark.parametrize("version", range(DESCRIBE_CLUSTER.low, DESCRIBE_CLUSTER.high + 1))
def test_every_client_sees_the_brokers_and_what_it_may_do_with_the_cluster(tmp_path: Path, version: int) -> None:
    some, nobody = Denying((ALTER_CLUSTER, CLUSTER_NAME)), Denying((access.DESCRIBE_CLUSTER, CLUSTER_NAME))

    async def scenario() -> Any:
        cluster = await open_cluster(tmp_path)
        request = DescribeClusterRequest(include_cluster_authorized_operations=True)
        try:
            asker = Asker(cluster)
            found = [
                await asker.ask(DESCRIBE_CLUSTER, version, request, authorizer=client) for client in (some, nobody)
            ]
            await asker.ask(DESCRIBE_CLUSTER, version, DescribeClusterRequest(), authorizer=(unasked := Denying()))
            assert unasked.asked == []
            return found
        finally:
            await cluster.close()

    described, blank = asyncio.run(scenario())
    assert described.cluster_authorized_operations == 8096 - (1 << ALTER_CLUSTER.operation)
    assert blank.cluster_authorized_operations == 0
    assert (blank.error_code, blank.brokers, blank.controller_id) == (0, described.brokers, 1)
    assert some.logged == nobody.logged == []
    asked = {right for right, _ in nobody.asked}
    assert asked == {Right(ResourceType.CLUSTER, one) for one in OPERATIONS[ResourceType.CLUSTER]}
    assert RIGHTS[DESCRIBE_CLUSTER].parts == (access.DESCRIBE_CLUSTER,)


@pytest.mark.parametrize("version", [DESCRIBE_LOG_DIRS.low, 2, 3, DESCRIBE_LOG_DIRS.high])
def test_log_folders_are_not_told_to_a_client_that_may_not_describe_the_cluster(tmp_path: Path, version: int) -> None:
    nobody, somebody = Denying((access.DESCRIBE_CLUSTER, CLUSTER_NAME)), Denying()

    async def scenario(alive: Living) -> None:
        await alive.make("t")
        handler = DescribeLogDirs(alive.broker.replicas)
        for topics in (None, [DescribableLogDirTopic(topic="t", partitions=[0])]):
            request = DescribeLogDirsRequest(topics=topics)
            denied = await ask(handler, DESCRIBE_LOG_DIRS, version, request, authorizer=nobody)
            assert denied.results == []
            assert denied.error_code == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED if version >= 3 else 0)
            told = await ask(handler, DESCRIBE_LOG_DIRS, version, request, authorizer=somebody)
            assert (told.error_code, len(told.results)) == (0, 1)

    run(scenario, tmp_path)
    assert nobody.logged == [(access.DESCRIBE_CLUSTER, CLUSTER_NAME)] * 2
    assert {right for right, _ in somebody.asked} == {*RIGHTS[DESCRIBE_LOG_DIRS].parts}
    assert RIGHTS[DESCRIBE_LOG_DIRS].whole == (), "the gate would answer old versions with a folder for each topic"
