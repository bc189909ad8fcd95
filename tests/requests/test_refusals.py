"""A refused request is answered with its error where clients look for it, in every API and version."""

import inspect
from typing import Any

import pytest

from moldau.errors import ErrorCode
from moldau.net.server import Peer
from moldau.protocol import codec
from moldau.protocol.apis import (
    ADD_PARTITIONS_TO_TXN,
    ALTER_REPLICA_LOG_DIRS,
    ALTER_USER_SCRAM_CREDENTIALS,
    APIS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    DESCRIBE_CONFIGS,
    FETCH,
    FIND_COORDINATOR,
    INIT_PRODUCER_ID,
    LIST_OFFSETS,
    OFFSET_FETCH,
    PRODUCE,
    Api,
)
from moldau.protocol.schema import specs
from moldau.requests.refusals import refused
from moldau.requests.session import Call, Session

ERROR = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
CASES = [
    (api, version)
    for api in APIS.values()
    if api not in (PRODUCE, FETCH)
    for version in range(max(api.low, api.lowest), api.high + 1)
]


def example(message: type, version: int) -> Any:
    """A message whose arrays all have two elements, down to the last level."""
    made = message()
    for name, spec, _ in specs(message):
        if not spec.since <= version <= spec.until:
            continue
        if spec.array and inspect.isclass(spec.kind):
            setattr(made, name, [example(spec.kind, version) for _ in range(2)])
        elif spec.array:
            setattr(made, name, ["a", "b"] if spec.kind == "string" else [7, 8])
    return made


def errors(message: Any, version: int) -> list[int]:
    """All error codes of a response that this version has."""
    found: list[int] = []
    for name, spec, _ in specs(type(message)):
        value = getattr(message, name)
        if not spec.since <= version <= spec.until:
            continue
        if name in ("error_code", "partition_error_code"):
            found.append(value)
        elif inspect.isclass(spec.kind) and value is not None:
            for one in value if spec.array else [value]:
                found += errors(one, version)
    return found


def answer(api: Api, version: int, request: Any) -> Any:
    """The refusal as a client reads it."""
    session = Session("PLAINTEXT", Peer("10.0.0.7", 50_000))
    response = refused(request, Call(session, api.key, version, 1, None), ERROR)
    return codec.read_reply(api, version, bytes(codec.write_reply(api, version, 1, response))[4:])


@pytest.mark.parametrize(("api", "version"), CASES, ids=[f"{api.name}-{version}" for api, version in CASES])
def test_a_refusal_carries_its_error_and_nothing_else(api: Api, version: int) -> None:
    found = errors(answer(api, version, example(api.request, version)), version)
    assert ERROR in found
    if "error_code" not in [n for n, s, _ in specs(api.response) if s.since <= version <= s.until]:
        assert set(found) == {ERROR}


def test_a_refusal_names_what_was_asked_for() -> None:
    asked = example(LIST_OFFSETS.request, 7)
    asked.topics[0].name, asked.topics[1].name = "t", "u"
    for topic in asked.topics:
        topic.partitions[0].partition_index, topic.partitions[1].partition_index = 3, 4
    reply = answer(LIST_OFFSETS, 7, asked)
    assert [(topic.name, part.partition_index) for topic in reply.topics for part in topic.partitions] == [
        ("t", 3), ("t", 4), ("u", 3), ("u", 4),
    ]  # fmt: skip
    assert {(part.error_code, part.offset) for topic in reply.topics for part in topic.partitions} == {(ERROR, -1)}


def numbers(partitions: Any) -> list[int]:
    return [partition.partition_index for partition in partitions]


@pytest.mark.parametrize(
    ("api", "version", "found"),
    [
        (FIND_COORDINATOR, 6, lambda reply: [one.key for one in reply.coordinators]),
        (DELETE_TOPICS, 5, lambda reply: [one.name for one in reply.responses]),
        (ADD_PARTITIONS_TO_TXN, 3, lambda reply: numbers(reply.results_by_topic_v3_and_below[0].results_by_partition)),
        (OFFSET_FETCH, 1, lambda reply: numbers(reply.topics[0].partitions)),
        (ALTER_REPLICA_LOG_DIRS, 2, lambda reply: numbers(reply.results[3].partitions)),
    ],
)  # fmt: skip
def test_names_and_numbers_are_repeated(api: Api, version: int, found: Any) -> None:
    assert found(answer(api, version, example(api.request, version))) in (["a", "b"], [7, 8])


def test_numbers_without_a_value_are_those_of_kafka() -> None:
    for version, place in ((3, lambda reply: reply), (4, lambda reply: reply.coordinators[0])):
        coordinator = place(answer(FIND_COORDINATOR, version, example(FIND_COORDINATOR.request, version)))
        assert (coordinator.node_id, coordinator.host, coordinator.port) == (-1, "", -1)
    producer = answer(INIT_PRODUCER_ID, 4, example(INIT_PRODUCER_ID.request, 4))
    assert (producer.producer_id, producer.producer_epoch) == (-1, -1)


def test_other_fields_are_not_repeated() -> None:
    request = example(CREATE_TOPICS.request, 7)
    request.topics[0].num_partitions = 12
    assert answer(CREATE_TOPICS, 7, request).topics[0].num_partitions == -1


def test_what_is_named_otherwise_in_the_answer_is_repeated() -> None:
    request = example(ALTER_USER_SCRAM_CREDENTIALS.request, 0)
    request.deletions[0].name, request.upsertions[1].name = "anna", "bert"
    assert [one.user for one in answer(ALTER_USER_SCRAM_CREDENTIALS, 0, request).results] == ["anna", "", "", "bert"]
    configs = example(DESCRIBE_CONFIGS.request, 4)
    configs.resources[0].resource_type, configs.resources[0].resource_name = 2, "t"
    first = answer(DESCRIBE_CONFIGS, 4, configs).results[0]
    assert (first.resource_type, first.resource_name) == (2, "t")
