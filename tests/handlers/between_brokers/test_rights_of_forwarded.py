"""Requests that are forwarded to the controller are judged there, once, as those of the client that sent them."""

import logging
from typing import Any

import pytest

from moldau.errors import ErrorCode, KafkaError
from moldau.handlers.between_brokers.envelope import envelope
from moldau.net.server import Peer
from moldau.peers.address import Address
from moldau.peers.introduction import link_to_broker
from moldau.protocol import codec
from moldau.protocol.apis import (
    ALTER_CONFIGS,
    CREATE_ACLS,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_ACLS,
    DELETE_TOPICS,
    ENVELOPE,
    INCREMENTAL_ALTER_CONFIGS,
    Api,
)
from moldau.protocol.messages import alter_configs
from moldau.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from moldau.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from moldau.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from moldau.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from moldau.requests.access import (
    ALTER_CLUSTER_CONFIGS,
    ALTER_TOPIC,
    ALTER_TOPIC_CONFIGS,
    CLUSTER_NAME,
    CREATE_IN_CLUSTER,
    CREATE_TOPIC,
    DELETE_IN_CLUSTER,
    DELETE_TOPIC,
    Right,
)
from moldau.requests.session import Call, Session
from tests.cluster import several
from tests.cluster.connected import PORT, Brokers, ConnectedBroker, played
from tests.requests.calling import Denying

NO_TOPIC, NO_CLUSTER = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED


async def started(brokers: Brokers, *denied: tuple[Right, str]) -> tuple[ConnectedBroker, Denying, Denying]:
    """A broker that is not the controller, its authorizer and the controller's, which deny the same rights."""
    authorizers = {1: Denying(*denied), 2: Denying(*denied)}
    brokers.authorizers.update(authorizers)
    await brokers.start(1, 2)
    (other,) = brokers.others
    return other, authorizers[other.broker_id], authorizers[brokers.controller.broker_id]


async def ask(brokers: Brokers, broker: ConnectedBroker, api: Api, request: Any) -> Any:
    link = await brokers.link(broker)
    frame = codec.write_request(api, api.high, 77, "an administrator", request)
    try:
        return codec.read_reply(api, api.high, await link.connection.send(77, [frame], 60_000))
    finally:
        link.connection.close()


def creation(*names: str) -> CreateTopicsRequest:
    topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
    return CreateTopicsRequest(topics=topics)


def test_topics_are_judged_by_the_controller_with_the_rights_of_the_client() -> None:
    async def scenario(brokers: Brokers) -> None:
        other, here, controllers = await started(
            brokers, (CREATE_IN_CLUSTER, CLUSTER_NAME), (CREATE_TOPIC, "c"),
            (DELETE_IN_CLUSTER, CLUSTER_NAME), (DELETE_TOPIC, "a"), (ALTER_TOPIC, "a"),
        )  # fmt: skip
        made = await ask(brokers, other, CREATE_TOPICS, creation("c", "a", "b"))
        assert [(one.name, one.error_code) for one in made.topics] == [("a", 0), ("b", 0), ("c", NO_TOPIC)]
        grown = [CreatePartitionsTopic(name=name, count=2, assignments=None) for name in ("a", "b")]
        larger = await ask(brokers, other, CREATE_PARTITIONS, CreatePartitionsRequest(topics=grown, timeout_ms=1000))
        assert [(one.name, one.error_code) for one in larger.results] == [("b", 0), ("a", NO_TOPIC)]
        topics = [DeleteTopicState(name=name) for name in ("a", "b")]
        gone = await ask(brokers, other, DELETE_TOPICS, DeleteTopicsRequest(topics=topics, timeout_ms=1000))
        assert [(one.name, one.error_code) for one in gone.responses] == [("b", 0), ("a", NO_TOPIC)]
        assert here.asked == []
        assert controllers.logged == [(CREATE_TOPIC, "c"), (ALTER_TOPIC, "a"), (DELETE_TOPIC, "a")]

    played(scenario)


class OfAlice(Denying):
    """Allows what the client User:alice at one address asks for."""

    def allows(self, call: Call, right: Right, name: str, logged: bool) -> bool:
        super().allows(call, right, name, logged)
        return (call.session.principal, call.client_host) == ("User:alice", "10.1.2.3")


def test_the_client_in_an_envelope_is_the_one_that_is_judged() -> None:
    async def scenario(brokers: Brokers) -> None:
        brokers.authorizers.update({1: OfAlice(), 2: OfAlice()})
        await brokers.start(1, 2)
        (other,), controller = brokers.others, brokers.controller
        link = await link_to_broker(Address(controller.host, PORT), controller.broker_id, other.identity, 5000)
        codes = []
        for principal, host in (("User:bob", "10.1.2.3"), ("User:alice", "10.1.2.4"), ("User:alice", "10.1.2.3")):
            frame = codec.write_request(CREATE_TOPICS, 7, 5, "c", creation("a"))[4:]
            sent = envelope(frame, Session("CLIENTS", Peer(host, 5), principal))
            answer = codec.read_reply(CREATE_TOPICS, 7, (await link.call(ENVELOPE, sent)).response_data)
            codes += [one.error_code for one in answer.topics]
        assert codes == [NO_TOPIC, NO_TOPIC, 0]

    played(scenario)


def alteration(api: Api, *resources: tuple[int, str, str, str]) -> Any:
    if api is ALTER_CONFIGS:
        return alter_configs.AlterConfigsRequest(
            resources=[
                alter_configs.AlterConfigsResource(
                    resource_type=kind,
                    resource_name=name,
                    configs=[alter_configs.AlterableConfig(name=setting, value=value)],
                )
                for kind, name, setting, value in resources
            ]
        )
    return IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=kind, resource_name=name, configs=[AlterableConfig(name=setting, value=value)]
            )
            for kind, name, setting, value in resources
        ]
    )


@pytest.mark.parametrize("api", [ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS], ids=str)
def test_a_change_that_this_broker_could_not_run_with_is_denied_first(api: Api) -> None:
    async def scenario(brokers: Brokers) -> None:
        other, here, controllers = await started(
            brokers, (ALTER_CLUSTER_CONFIGS, CLUSTER_NAME), (ALTER_TOPIC_CONFIGS, "a")
        )
        await ask(brokers, other, CREATE_TOPICS, creation("a", "b"))
        own = str(other.broker_id)
        request = alteration(
            api, (4, own, "log.cleaner.threads", "none"), (2, "a", "retention.ms", "9"), (2, "b", "retention.ms", "9")
        )
        answer = await ask(brokers, other, api, request)
        codes = {one.resource_name: one.error_code for one in answer.responses}
        assert codes == {own: NO_CLUSTER, "a": NO_TOPIC, "b": 0}
        assert here.logged == []
        assert controllers.logged == [(ALTER_CLUSTER_CONFIGS, CLUSTER_NAME), (ALTER_TOPIC_CONFIGS, "a")]
        assert {name: topic.overrides for name, topic in other.metadata.image.topics.items()} == {
            "a": {}, "b": {"retention.ms": "9"}
        }  # fmt: skip

    played(scenario)


def test_the_levels_of_a_brokers_loggers_are_judged_by_that_broker() -> None:
    name = "moldau.tests.rights_of_forwarded"

    async def scenario(brokers: Brokers) -> None:
        other, here, controllers = await started(brokers, (ALTER_CLUSTER_CONFIGS, CLUSTER_NAME))
        await ask(brokers, other, CREATE_TOPICS, creation("a"))
        own = str(other.broker_id)
        request = alteration(INCREMENTAL_ALTER_CONFIGS, (2, "a", "retention.ms", "9"), (8, own, name, "DEBUG"))
        answer = await ask(brokers, other, INCREMENTAL_ALTER_CONFIGS, request)
        assert [(one.error_code, one.error_message) for one in answer.responses] == [(0, None), (NO_CLUSTER, None)]
        assert here.asked == here.logged == [(ALTER_CLUSTER_CONFIGS, CLUSTER_NAME)]
        assert controllers.asked[-1] == (ALTER_TOPIC_CONFIGS, "a")
        assert logging.getLogger(name).level == logging.NOTSET

    played(scenario)


def test_acls_that_any_broker_is_asked_for_are_made_by_the_controller_and_known_to_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    standard = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    monkeypatch.setitem(several.SETTINGS, "authorizer.class.name", standard)
    one = AclCreation(
        resource_type=2, resource_name="t", principal="User:ann", host="*", operation=3, permission_type=3
    )
    everything = DeleteAclsFilter(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )

    async def scenario(brokers: Brokers) -> None:
        await brokers.start(1, 2)
        (other,) = brokers.others
        made = await ask(brokers, other, CREATE_ACLS, CreateAclsRequest(creations=[one]))
        assert [result.error_code for result in made.results] == [0]
        assert [len(broker.metadata.image.acls) for broker in brokers.values()] == [1, 1]
        gone = await ask(brokers, other, DELETE_ACLS, DeleteAclsRequest(filters=[everything]))
        assert [acl.principal for acl in gone.filter_results[0].matching_acls] == ["User:ann"]
        assert [len(broker.metadata.image.acls) for broker in brokers.values()] == [0, 0]
        one.operation = 0  # unknown: it closes the connection, and is not passed on
        with pytest.raises(KafkaError):
            await ask(brokers, other, CREATE_ACLS, CreateAclsRequest(creations=[one]))

    played(scenario)
