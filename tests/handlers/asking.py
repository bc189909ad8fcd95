"""Asks a handler as the wire would: the request is written and read, the reply written and read, in any version."""

from collections.abc import Awaitable, Callable, Sequence
from inspect import isawaitable
from types import GeneratorType
from typing import Any

import pytest

from moldau.cluster.cluster import Cluster
from moldau.handlers.cluster.describe_cluster import DescribeCluster
from moldau.handlers.topics.configs import ConfigAdministration
from moldau.handlers.topics.metadata import Metadata
from moldau.handlers.topics.topic_partitions import DescribeTopicPartitions
from moldau.handlers.topics.topics import TopicAdministration
from moldau.handlers.transactions.init_producer_id import InitProducerId
from moldau.protocol import apis, codec
from moldau.requests.access import Right
from moldau.requests.gate import Handler
from moldau.requests.session import Authorizer
from moldau.turns import turn
from tests.requests.calling import LISTENER, Denying, call


async def answered(response: Any) -> Any:
    """The final response of a handler's answer."""
    while True:
        if isinstance(response, GeneratorType):
            response = turn(response)
        elif isawaitable(response):
            response = await response
        else:
            return response


async def ask(
    handler: Handler,
    api: apis.Api,
    version: int,
    request: Any,
    listener: str = LISTENER,
    authorizer: Authorizer | None = None,
) -> Any:
    """A handler's response in that version, as a client reads it."""
    frame = codec.write_request(api, version, 7, "asker", request)[4:]
    header = codec.read_header(frame)
    read = codec.read_request(api, version, frame, header.body)
    response = await answered(handler(read, call(api, version, listener=listener, authorizer=authorizer)))
    return codec.read_reply(api, version, codec.write_reply(api, version, 7, response)[4:])


async def rights_asked(asking: Callable[[Denying], Awaitable[Any]], parts: Sequence[Right]) -> set[Right]:
    """The rights that a handler asks for, by a client that has all of `parts`, all but one of them, or none."""
    asked: set[Right] = set()
    for lacking in ((), *((one,) for one in parts), parts):
        authorizer = Denying(*((right, "*") for right in lacking))
        await asking(authorizer)
        asked |= {right for right, _ in authorizer.asked}
    return asked


class Asked:
    """Handlers by API, asked one request at a time."""

    _handlers: dict[apis.Api, Handler]

    async def ask(
        self,
        api: apis.Api,
        version: int,
        request: Any,
        listener: str = LISTENER,
        authorizer: Authorizer | None = None,
    ) -> Any:
        return await ask(self._handlers[api], api, version, request, listener, authorizer)


class Asker(Asked):
    """The handlers that need only a cluster."""

    def __init__(self, cluster: Cluster, transactions: Callable[[], Any] = pytest.fail):
        metadata = cluster.metadata
        topics, configs = TopicAdministration(metadata, cluster.topics), ConfigAdministration(metadata, cluster.configs)
        self._handlers: dict[apis.Api, Handler] = {
            apis.METADATA: Metadata(metadata, cluster.topics),
            apis.DESCRIBE_CLUSTER: DescribeCluster(metadata, known=lambda: cluster.known_brokers()),
            apis.DESCRIBE_TOPIC_PARTITIONS: DescribeTopicPartitions(metadata),
            apis.CREATE_TOPICS: topics.create,
            apis.DELETE_TOPICS: topics.delete,
            apis.CREATE_PARTITIONS: topics.create_partitions,
            apis.DESCRIBE_CONFIGS: configs.describe,
            apis.ALTER_CONFIGS: configs.replace,
            apis.INCREMENTAL_ALTER_CONFIGS: configs.alter,
            apis.LIST_CONFIG_RESOURCES: configs.list_resources,
            apis.INIT_PRODUCER_ID: InitProducerId(cluster.producer_ids, transactions),
        }
