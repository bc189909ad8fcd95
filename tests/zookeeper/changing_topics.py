"""A client that creates, changes and deletes topics through any broker, and remembers what it was answered.

Every call is one request, never sent again. A call without an answer may have been carried out, or not, or may be even
later: its topic may be as before or as after, and is left alone from then on. Names are never used twice.
"""

import asyncio
import random
import threading
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from harness.tiers import sized
from moldau.error_codes import error_of
from moldau.errors import ErrorCode, KafkaError
from moldau.peers.address import parse_address
from moldau.peers.link import Link, connect
from moldau.protocol.apis import CREATE_PARTITIONS, CREATE_TOPICS, DELETE_TOPICS, INCREMENTAL_ALTER_CONFIGS, Api
from moldau.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from moldau.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from moldau.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.zookeeper.asking import TOPIC

DIAL_MS = 1_000
ANSWER_MS = 8_000
"""How long a broker tries to reach the controller for a request."""
LIVE_MAX = 8
WIDE = sized(600, 600, 1000)
"""A topic of so many partitions takes several steps to create and to delete."""
SETTING = "retention.ms"
SET = 0
PAUSE_S = sized(0.1, 0.1, 0.02)
DONE = {
    CREATE_TOPICS: ErrorCode.TOPIC_ALREADY_EXISTS,
    DELETE_TOPICS: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    CREATE_PARTITIONS: ErrorCode.INVALID_PARTITIONS,
}
"""What a broker may answer that has sent a request to two controllers: the first one has carried it out already."""
UNDECIDED = (None, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_CONTROLLER)
"""No answer, or one that leaves open whether the change was made."""


class TopicState(NamedTuple):
    partitions: int
    setting: int


States = frozenset[TopicState | None]
"""How a topic may be; None if it does not exist."""


class Call(NamedTuple):
    """A call that was answered or not; in seconds of the monotonic clock."""

    began_s: float
    ended_s: float
    api: str
    topic: str
    answer: ErrorCode | None


class Client:
    """`addresses` are those of the brokers, `name` begins the names of its topics."""

    def __init__(self, name: str, addresses: Mapping[int, str], chance: random.Random):
        self.topics: dict[str, States] = {}
        self.calls: list[Call] = []
        self.wanted = threading.Event()
        """Set by who wants a change that takes several steps."""
        self.is_wide = False
        """Whether one is on its way."""
        self._name = name
        self._addresses = addresses
        self._chance = chance
        self._links: dict[int, Link] = {}
        self._made = 0
        self._live: list[str] = []

    async def run(self, over: threading.Event) -> None:
        """Change topics until it is over."""
        while not over.is_set():
            broker = self._chance.choice(sorted(self._addresses))
            if self.wanted.is_set():
                await self._change_wide(broker)
            elif len(self._live) < self._chance.randint(1, LIVE_MAX):
                await self.create(broker)
            else:
                change = self._chance.choice([self._alter, self._alter, self._enlarge, self._delete])
                await change(self._chance.choice(self._live), broker)
            await asyncio.sleep(PAUSE_S * self._chance.random())
        self.close()

    def close(self) -> None:
        while self._links:
            self._links.popitem()[1].connection.close()

    async def _change_wide(self, broker: int) -> None:
        """Create a wide topic, or delete the one that is there."""
        there = [name for name in self._live if self._state(name).partitions >= WIDE]
        self.is_wide = True
        self.wanted.clear()
        await (self._delete(there[0], broker) if there else self.create(broker, WIDE))
        self.is_wide = False

    async def create(self, broker: int, partitions: int = 0) -> bool:
        """A topic of a few partitions, or of so many. Returns whether it was answered."""
        name, self._made = f"{self._name}-{self._made}", self._made + 1
        after = TopicState(partitions or self._chance.randint(1, 4), self._drawn())
        wanted = CreatableTopic(
            name=name,
            num_partitions=after.partitions,
            replication_factor=1,
            configs=[CreatableTopicConfig(name=SETTING, value=str(after.setting))],
        )
        self.topics[name] = frozenset([None])
        self._live.append(name)
        request = CreateTopicsRequest(topics=[wanted], timeout_ms=ANSWER_MS)
        return await self._change(name, after, broker, CREATE_TOPICS, request, "topics")

    async def is_decided(self, broker: int) -> bool:
        """Whether a controller answers if a topic could be created. That answer waits for no other broker."""
        wanted = CreatableTopic(name=f"{self._name}-never", num_partitions=1, replication_factor=1)
        request = CreateTopicsRequest(topics=[wanted], timeout_ms=ANSWER_MS, validate_only=True)
        return await self._answer(broker, CREATE_TOPICS, request, "topics") is ErrorCode.NONE

    async def _alter(self, name: str, broker: int) -> None:
        after = self._state(name)._replace(setting=self._drawn())
        configs = [AlterableConfig(name=SETTING, config_operation=SET, value=str(after.setting))]
        resource = AlterConfigsResource(resource_type=TOPIC, resource_name=name, configs=configs)
        request = IncrementalAlterConfigsRequest(resources=[resource])
        await self._change(name, after, broker, INCREMENTAL_ALTER_CONFIGS, request, "responses")

    async def _enlarge(self, name: str, broker: int) -> None:
        before = self._state(name)
        after = before._replace(partitions=before.partitions + self._chance.randint(1, 2))
        wanted = CreatePartitionsTopic(name=name, count=after.partitions, assignments=None)
        request = CreatePartitionsRequest(topics=[wanted], timeout_ms=ANSWER_MS)
        await self._change(name, after, broker, CREATE_PARTITIONS, request, "results")

    async def _delete(self, name: str, broker: int) -> None:
        states = [DeleteTopicState(name=name)]
        request = DeleteTopicsRequest(topics=states, topic_names=[name], timeout_ms=ANSWER_MS)
        await self._change(name, None, broker, DELETE_TOPICS, request, "responses")

    def _state(self, name: str) -> TopicState:
        [state] = self.topics[name]
        assert state is not None
        return state

    def _drawn(self) -> int:
        return self._chance.randrange(10_000_000, 20_000_000)

    async def _change(
        self, name: str, after: TopicState | None, broker: int, api: Api, request: Any, results: str
    ) -> bool:
        """Send a request that makes the topic like that; returns whether it was answered."""
        before, began_s = self.topics[name], time.monotonic()
        self.topics[name] = before | {after}
        answer = await self._answer(broker, api, request, results)
        self.calls.append(Call(began_s, time.monotonic(), api.name, name, answer))
        is_done = answer in (ErrorCode.NONE, DONE.get(api))
        if is_done:
            self.topics[name] = frozenset([after])
        assert is_done or answer in UNDECIDED, f"{api.name} of {name}, which is {set(before)}: {answer!r}"
        if (not is_done or after is None) and name in self._live:
            self._live.remove(name)
        return is_done

    async def _answer(self, broker: int, api: Api, request: Any, results: str) -> ErrorCode | None:
        """None if there is no answer. Goes to another broker if this one cannot be reached."""
        order = [broker, *(one for one in sorted(self._addresses) if one != broker)]
        link = None
        while link is None:
            for number in order:
                link = await self._link(number)
                if link is not None:
                    break
        try:
            reply = await link.call(api, request, ANSWER_MS + DIAL_MS)
        except KafkaError:
            link.connection.close()
            return None
        [result] = getattr(reply, results)
        return error_of(result.error_code)

    async def _link(self, broker: int) -> Link | None:
        known = self._links.get(broker)
        if known is not None and not known.closed:
            return known
        try:
            made = self._links[broker] = await connect(parse_address(self._addresses[broker]), self._name, DIAL_MS)
        except KafkaError:
            await asyncio.sleep(PAUSE_S)
            return None
        return made
