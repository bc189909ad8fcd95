"""Administrators' requests reach any broker and are answered as the controller answers them."""

import asyncio
import logging
from dataclasses import replace
from typing import Any

import pytest

from moldau.cluster.controlling.controller import NewTopic
from moldau.errors import ErrorCode, KafkaError
from moldau.handlers.between_brokers.envelope import envelope
from moldau.handlers.between_brokers.forwarding import FORWARDED
from moldau.net.server import Peer
from moldau.peers.address import Address
from moldau.peers.introduction import link_to_broker
from moldau.protocol import codec
from moldau.protocol.apis import (
    ALTER_CONFIGS,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    ELECT_LEADERS,
    ENVELOPE,
    INCREMENTAL_ALTER_CONFIGS,
    METADATA,
    Api,
)
from moldau.protocol.messages.alter_configs import AlterableConfig as ReplacedConfig
from moldau.protocol.messages.alter_configs import AlterConfigsRequest
from moldau.protocol.messages.alter_configs import AlterConfigsResource as ReplacedResource
from moldau.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from moldau.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from moldau.protocol.messages.elect_leaders import ElectLeadersRequest
from moldau.protocol.messages.envelope import EnvelopeRequest
from moldau.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from moldau.protocol.messages.metadata import MetadataRequest
from moldau.requests.routes import PackedReply
from moldau.requests.session import Session
from tests.cluster.connected import PORT, Brokers, ConnectedBroker, played


def creation(*names: str, partitions: int = 2, timeout_ms: int = 30_000) -> CreateTopicsRequest:
    topics = [CreatableTopic(name=name, num_partitions=partitions, replication_factor=1) for name in names]
    return CreateTopicsRequest(topics=topics, timeout_ms=timeout_ms)


async def raw(brokers: Brokers, broker: ConnectedBroker, api: Api, version: int, request: Any) -> bytes:
    """The reply's frame, after its size."""
    link = await brokers.link(broker)
    frame = codec.write_request(api, version, 77, "an administrator", request)
    try:
        return bytes(await link.connection.send(77, [frame], 60_000))
    finally:
        link.connection.close()


async def ask(brokers: Brokers, broker: ConnectedBroker, api: Api, request: Any, version: int | None = None) -> Any:
    version = api.high if version is None else version
    return codec.read_reply(api, version, await raw(brokers, broker, api, version, request))


REQUESTS: list[tuple[Api, Any]] = [
    (CREATE_TOPICS, creation("there", "t", "not a name")),
    (DELETE_TOPICS, DeleteTopicsRequest(topics=[DeleteTopicState(name="nobody")], timeout_ms=1000)),
    (
        CREATE_PARTITIONS,
        CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="t", count=1, assignments=None)], timeout_ms=1000),
    ),
    (
        INCREMENTAL_ALTER_CONFIGS,
        IncrementalAlterConfigsRequest(
            resources=[
                AlterConfigsResource(
                    resource_type=2, resource_name="t", configs=[AlterableConfig(name="nonsense", value="1")]
                )
            ]
        ),
    ),
    (
        ALTER_CONFIGS,
        AlterConfigsRequest(
            resources=[
                ReplacedResource(
                    resource_type=2, resource_name="t", configs=[ReplacedConfig(name="retention.ms", value="-7")]
                )
            ]
        ),
    ),
    (ELECT_LEADERS, ElectLeadersRequest(topic_partitions=None, timeout_ms=1000)),
]


@pytest.mark.parametrize(("api", "request_"), REQUESTS, ids=[api.name for api, _ in REQUESTS])
def test_a_reply_has_the_same_bytes_from_every_broker_in_every_version(api: Api, request_: Any) -> None:
    async def scenario(brokers: Brokers) -> None:
        await brokers.start(1, 2)
        await ask(brokers, brokers.controller, CREATE_TOPICS, creation("there", "t"))
        for version in range(max(api.low, api.lowest), api.high + 1):
            near = await raw(brokers, brokers.controller, api, version, request_)
            assert await raw(brokers, brokers.others[0], api, version, request_) == near
            assert near.startswith((77).to_bytes(4, "big"))

    played(scenario)


def test_a_forwarded_change_is_made_and_known_to_the_broker_that_forwarded_it() -> None:
    async def scenario(brokers: Brokers) -> None:
        await brokers.start(1, 2, 3)
        first, second = brokers.others
        assert [one.error_code for one in (await ask(brokers, first, CREATE_TOPICS, creation("t"))).topics] == [0]
        assert all("t" in broker.metadata.image.topics for broker in brokers.values())
        more = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name="t", count=5, assignments=None)], timeout_ms=1000
        )
        assert (await ask(brokers, second, CREATE_PARTITIONS, more)).results[0].error_code == 0
        assert len(first.metadata.image.topics["t"].partitions) == 5
        change = IncrementalAlterConfigsRequest(
            resources=[
                AlterConfigsResource(
                    resource_type=2, resource_name="t", configs=[AlterableConfig(name="retention.ms", value="9")]
                )
            ]
        )
        assert (await ask(brokers, first, INCREMENTAL_ALTER_CONFIGS, change)).responses[0].error_code == 0
        assert second.metadata.image.topics["t"].overrides == {"retention.ms": "9"}
        gone = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1000)
        assert (await ask(brokers, second, DELETE_TOPICS, gone)).responses[0].error_code == 0
        assert all("t" not in broker.metadata.image.topics for broker in brokers.values())

    played(scenario)


def test_a_wide_request_and_its_reply_are_passed_on_too() -> None:
    async def scenario(brokers: Brokers) -> None:
        await brokers.start(1, 2)
        names = [f"topic-{number}" for number in range(2_500)]
        request = creation(*names, partitions=1)
        request.validate_only = True
        answer = await ask(brokers, brokers.others[0], CREATE_TOPICS, request)
        assert [(one.name, one.error_code) for one in answer.topics] == [(name, 0) for name in names]

    played(scenario)


@pytest.mark.parametrize("seed", range(3))
def test_a_request_during_a_change_of_controller_is_answered_by_the_next_one(seed: int) -> None:
    async def scenario(brokers: Brokers) -> None:
        await brokers.start(1, 2, 3)
        old, other = brokers.controller, brokers.others[0]
        asking = asyncio.ensure_future(ask(brokers, other, CREATE_TOPICS, creation("t")))
        old.kill()
        del brokers[old.broker_id]
        answer = await asking
        assert answer.topics[0].error_code in (0, ErrorCode.TOPIC_ALREADY_EXISTS)
        assert brokers.controller is not old
        assert "t" in other.metadata.image.topics

    played(scenario, seed)


def test_the_controller_forwards_what_it_can_no_longer_do_itself() -> None:
    async def scenario(brokers: Brokers) -> None:
        await brokers.start(1, 2)
        old = brokers.controller
        held = asyncio.Event()

        async def hold() -> None:
            await held.wait()

        holding = asyncio.ensure_future(old.acting.queue.made(hold))
        await asyncio.sleep(0)
        asking = asyncio.ensure_future(ask(brokers, old, CREATE_TOPICS, creation("t")))
        await asyncio.sleep(1)
        brokers.store.end(old.session.link)
        while old.is_controller:
            await asyncio.sleep(0.01)
        held.set()
        await asyncio.wait([holding])
        assert (await asking).topics[0].error_code == 0

    played(scenario)


def test_a_request_without_a_controller_times_out_as_asked() -> None:
    async def scenario(brokers: Brokers) -> None:
        await brokers.start(1, 2)
        old, other = brokers.controller, brokers.others[0]
        brokers.world.network.partition(old.host, other.host)
        began_s = asyncio.get_running_loop().time()
        answer = await ask(brokers, other, CREATE_TOPICS, creation("t", timeout_ms=3_000))
        assert answer.topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT
        assert 3 <= asyncio.get_running_loop().time() - began_s < 9, "the one attempt to dial may be on its way"

    played(scenario)


def wrapped(api: Api, version: int, request: Any, principal: str = "User:ANONYMOUS") -> EnvelopeRequest:
    frame = codec.write_request(api, version, 5, "c", request)[4:]
    return envelope(frame, Session("PLAINTEXT", Peer("10.1.2.3", 5), principal))


CUT_SHORT = wrapped(CREATE_TOPICS, 7, creation("t")).request_data[:-9]


async def opened(brokers: Brokers, broker: ConnectedBroker, sent: EnvelopeRequest) -> Any:
    """The answer to an envelope that the other broker sends."""
    sender = next(one for one in brokers.values() if one is not broker)
    link = await link_to_broker(Address(broker.host, PORT), broker.broker_id, sender.identity, 5000)
    return await link.call(ENVELOPE, sent)


def test_an_envelope_that_comes_to_another_broker_says_so_and_is_not_passed_on() -> None:
    async def scenario(brokers: Brokers) -> None:
        await brokers.start(1, 2)
        answer = await opened(brokers, brokers.others[0], wrapped(CREATE_TOPICS, 7, creation("t")))
        assert answer.error_code == ErrorCode.NOT_CONTROLLER and answer.response_data is None

    played(scenario)


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (wrapped(METADATA, 12, MetadataRequest()), ErrorCode.INVALID_REQUEST),
        (EnvelopeRequest(request_data=b"\0"), ErrorCode.INVALID_REQUEST),
        (EnvelopeRequest(request_data=b"\xff" * 40), ErrorCode.INVALID_REQUEST),
        (EnvelopeRequest(request_data=CUT_SHORT, request_principal=None), ErrorCode.UNSUPPORTED_VERSION),
        (wrapped(ENVELOPE, 0, EnvelopeRequest()), ErrorCode.INVALID_REQUEST),
    ],
)
def test_an_envelope_around_anything_else_is_refused(sent: EnvelopeRequest, code: ErrorCode) -> None:
    async def scenario(brokers: Brokers) -> None:
        await brokers.start(1, 2)
        answer = await opened(brokers, brokers.controller, sent)
        assert answer.error_code == code and answer.response_data is None

    played(scenario)


@pytest.mark.parametrize("wrong", [{"request_principal": b"\0"}, {"client_host_address": b"abc"}])
def test_an_envelope_of_a_client_that_cannot_be_read_is_refused(wrong: dict[str, bytes]) -> None:
    async def scenario(brokers: Brokers) -> None:
        await brokers.start(1, 2)
        sent = wrapped(CREATE_TOPICS, 7, creation("t"))
        for name, value in wrong.items():
            setattr(sent, name, value)
        assert (await opened(brokers, brokers.controller, sent)).error_code == ErrorCode.INVALID_REQUEST

    played(scenario)


def test_an_error_of_the_network_is_tried_again_only_while_time_is_left() -> None:
    async def scenario(brokers: Brokers) -> None:
        await brokers.start(1, 2)
        other = brokers.others[0]
        await brokers.controller.server.stop()
        with pytest.raises(KafkaError):
            await brokers.link(brokers.controller)
        answer = await ask(brokers, other, CREATE_TOPICS, creation("t", timeout_ms=500))
        assert answer.topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT

    played(scenario)


def test_topics_made_by_the_controller_itself_need_no_connection() -> None:
    async def scenario(brokers: Brokers) -> None:
        await brokers.start(1)
        assert (await ask(brokers, brokers[1], CREATE_TOPICS, creation("t"))).topics[0].error_code == 0
        (_, again), *_ = await brokers[1].acting.topics.create([NewTopic("t", 1, 1)])
        assert again.code is ErrorCode.TOPIC_ALREADY_EXISTS  # type: ignore[union-attr]

    played(scenario)


def alteration(kind: int, name: str, setting: str, value: str) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=kind, resource_name=name, configs=[AlterableConfig(name=setting, value=value)]
    )


def test_settings_of_any_broker_can_be_altered_at_any_broker() -> None:
    async def scenario(brokers: Brokers) -> None:
        await brokers.start(1, 2)
        for sent_to in (1, 2):
            names = ("1", "2", "", "7")
            resources = [alteration(4, name, "log.cleaner.threads", str(sent_to)) for name in names]
            request = IncrementalAlterConfigsRequest(resources=resources)
            answer = await ask(brokers, brokers[sent_to], INCREMENTAL_ALTER_CONFIGS, request)
            codes = [one.error_code for one in answer.responses]
            assert codes == [0, 0, 0, ErrorCode.INVALID_REQUEST]
            for broker in brokers.values():
                assert broker.metadata.image.broker_overrides["2"] == {"log.cleaner.threads": str(sent_to)}
                assert broker.metadata.config.log_cleaner_threads == sent_to

    played(scenario)


def test_a_broker_refuses_a_change_that_contradicts_its_own_file_and_the_controller_does_the_rest() -> None:
    async def scenario(brokers: Brokers) -> None:
        await brokers.start(1, 2)
        [other] = brokers.others
        other.metadata._static = replace(other.metadata._static, log_cleaner_dedupe_buffer_size=3 << 20)
        own, controller, threads = str(other.broker_id), str(brokers.controller.broker_id), "log.cleaner.threads"
        names = (own, "", controller)
        altered = [alteration(4, name, threads, "4") for name in names]
        replaced = [
            ReplacedResource(resource_type=4, resource_name=name, configs=[ReplacedConfig(name=threads, value="4")])
            for name in names
        ]
        for api, request in (
            (INCREMENTAL_ALTER_CONFIGS, IncrementalAlterConfigsRequest(resources=altered)),
            (ALTER_CONFIGS, AlterConfigsRequest(resources=replaced)),
        ):
            answer = await ask(brokers, other, api, request)
            assert {one.resource_name: one.error_code for one in answer.responses} == {
                own: ErrorCode.INVALID_REQUEST, "": ErrorCode.INVALID_REQUEST, controller: 0
            }  # fmt: skip
            assert "must be more than 1048576 for each of log.cleaner.threads" in answer.responses[0].error_message
        request = IncrementalAlterConfigsRequest(resources=[alteration(4, own, threads, "2")])
        answer = await ask(brokers, other, INCREMENTAL_ALTER_CONFIGS, request)
        assert [one.error_code for one in answer.responses] == [0]
        assert other.metadata.config.log_cleaner_threads == 2

    played(scenario)


def test_levels_of_loggers_are_those_of_the_broker_that_is_asked() -> None:
    async def scenario(brokers: Brokers) -> None:
        await brokers.start(1, 2)
        other = brokers.others[0]
        await ask(brokers, other, CREATE_TOPICS, creation("t"))
        own = alteration(8, str(other.broker_id), "moldau.tests.forwarding", "DEBUG")
        topic = alteration(2, "t", "retention.ms", "9")
        for resources in ([own], [topic, own, alteration(2, "nobody", "retention.ms", "9")]):
            request = IncrementalAlterConfigsRequest(resources=resources)
            answer = await ask(brokers, other, INCREMENTAL_ALTER_CONFIGS, request)
            asked = [(one.resource_type, one.resource_name) for one in resources]
            assert [(one.resource_type, one.resource_name) for one in answer.responses] == asked
            codes = {one.resource_name: one.error_code for one in answer.responses}
            assert codes.pop(str(other.broker_id)) == 0
            assert set(codes.values()) <= {0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert other.metadata.image.topics["t"].overrides == {"retention.ms": "9"}

    logger = logging.getLogger("moldau.tests.forwarding")
    try:
        played(scenario)
        assert logger.level == logging.DEBUG
    finally:
        logger.setLevel(logging.NOTSET)


@pytest.mark.parametrize("api", FORWARDED.values(), ids=lambda api: api.name)
def test_the_time_of_throttling_is_found_in_every_reply_that_is_passed_on(api: Api) -> None:
    """A broker reads it there, and may write a longer one."""
    for version in (max(api.low, api.lowest), api.high):
        reply = PackedReply(codec.write_reply(api, version, 7, api.response(throttle_time_ms=1234)))
        assert reply.throttle_ms(api, version) == 1234
        longer = codec.read_reply(api, version, reply.throttled(api, version, 99_999)[4:])
        assert longer == api.response(throttle_time_ms=99_999)
