"""Every public call of producer, consumer and admin, each with arguments that chance draws: `CALLS` names them all.

What could delete a record of the program's topic goes to `SCRAP`, a topic and group of nobody's.
"""

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa

import moldau
from moldau import OffsetAndMetadata, TopicPartition

SCRAP = "scrap"
API_S = 3.0
"""The time-out of calls that take none of their own: `default_api_timeout_ms` of the program's clients."""


class Drawn(NamedTuple):
    """What chance has drawn for one call."""

    client: str
    call: str
    arguments: tuple[Any, ...]
    named: dict[str, Any]

    def __str__(self) -> str:
        given = [repr(one) for one in self.arguments] + [f"{name}={value!r}" for name, value in self.named.items()]
        return f"{self.client}.{self.call}({', '.join(given)})"[:200]

    @property
    def limit_s(self) -> float:
        """The call's time-out."""
        if "timeout_ms" in self.named:
            return float(self.named["timeout_ms"]) / 1000
        return float(self.named.get("timeout", API_S))


class Draw:
    """Chance, and the names of one program. Values of records are different from each other."""

    def __init__(self, chance: random.Random, topic: str, group: str):
        self.chance = chance
        self.topic, self.group = topic, group
        self.partitions = [TopicPartition(topic, number) for number in range(2)]
        self._prefix = b"%d" % chance.randrange(1 << 40)
        self._count = 0

    def value(self) -> bytes:
        self._count += 1
        return b"%s-%d" % (self._prefix, self._count)

    def values(self) -> list[bytes]:
        return [self.value() for _ in range(self.chance.randint(1, 20))]

    def some(self) -> list[TopicPartition]:
        return self.chance.sample(self.partitions, self.chance.randint(1, 2))

    def one(self) -> TopicPartition:
        return self.chance.choice(self.partitions)

    def offset(self) -> int:
        return self.chance.randint(0, 30)

    def timed(self, *most_ms: int) -> dict[str, Any]:
        ms = self.chance.choice(most_ms)
        return self.chance.choice([{"timeout_ms": ms}, {"timeout": ms / 1000}])


Given = Callable[[Draw], tuple[tuple[Any, ...], dict[str, Any]]]


def given(*arguments: Any, **named: Any) -> Given:
    """Always the same arguments."""
    return lambda draw: (arguments, named)


def of(make: Callable[[Draw], tuple[Any, ...]]) -> Given:
    """Arguments without names, as drawn."""
    return lambda draw: (make(draw), {})


def waits(*most_ms: int) -> Given:
    """A time-out."""
    return lambda draw: ((), draw.timed(*most_ms))


def _table(draw: Draw) -> tuple[Any, ...]:
    return draw.topic, pa.table({"value": draw.values()})


TOPIC, NOTHING, SOME = of(lambda draw: (draw.topic,)), given(), of(lambda draw: (draw.some(),))
PRODUCER: dict[str, Given] = {
    "send": lambda draw: ((draw.topic, draw.value()), {"partition": draw.chance.choice([None, 0, 1])}),
    "send_many": of(lambda draw: (draw.topic, draw.values())),
    "send_table": of(_table),
    "flush": waits(0, 20, 5_000),
    "metrics": NOTHING,
    "transaction": NOTHING,
    "init_transactions": NOTHING,
    "begin_transaction": NOTHING,
    "commit_transaction": NOTHING,
    "abort_transaction": NOTHING,
    "send_offsets_to_transaction": of(lambda draw: ({draw.one(): draw.offset()}, SCRAP)),
    "close": waits(0, 20, 5_000),
}
CONSUMER: dict[str, Given] = {
    "poll": waits(0, 5, 50),
    "poll_table": waits(0, 5, 50),
    "tables": given(idle_ms=10),
    "__iter__": NOTHING,
    "process": given(idle_ms=10),
    "subscribe": TOPIC,
    "subscription": NOTHING,
    "unsubscribe": NOTHING,
    "assign": SOME,
    "assignment": NOTHING,
    "create_message_streams": of(lambda draw: ({draw.topic: 2},)),
    "log": TOPIC,
    "metrics": NOTHING,
    "group_metadata": NOTHING,
    "position": of(lambda draw: (draw.one(),)),
    "positions": NOTHING,
    "end_offset": of(lambda draw: (draw.one(),)),
    "seek": of(lambda draw: (draw.one(), draw.offset())),
    "seek_to_beginning": of(lambda draw: tuple(draw.some())),
    "seek_to_end": of(lambda draw: tuple(draw.some())),
    "seek_to": of(lambda draw: ({draw.one(): 0},)),
    "offsets_for_times": of(lambda draw: ({draw.one(): 0},)),
    "beginning_offsets": SOME,
    "end_offsets": SOME,
    "lag": NOTHING,
    "pause": SOME,
    "resume": SOME,
    "paused": NOTHING,
    "commit": NOTHING,
    "commit_async": NOTHING,
    "committed": SOME,
    "close": NOTHING,
}
ADMIN: dict[str, Given] = {
    "list_topics": NOTHING,
    "describe_topics": of(lambda draw: ([draw.topic],)),
    "create_topic": given(SCRAP),
    "create_topics": given([moldau.NewTopic(SCRAP, 2)]),
    "create_partitions": given(SCRAP, 3),
    "expand_topics": given({SCRAP: 4}),
    "delete_topic": given(SCRAP),
    "delete_topics": given([SCRAP]),
    "topic_configs": TOPIC,
    "alter_topic_configs": of(lambda draw: (draw.topic, {"segment.ms": 3_600_000})),
    "list_offsets": of(lambda draw: (dict.fromkeys(draw.some(), "latest"),)),
    "offsets": of(lambda draw: (dict.fromkeys(draw.some(), "latest"),)),
    "watermarks": TOPIC,
    "delete_records": given({TopicPartition(SCRAP, 0): 0}),
    "list_groups": NOTHING,
    "describe_group": of(lambda draw: (draw.group,)),
    "describe_groups": of(lambda draw: ([draw.group],)),
    "group_offsets": of(lambda draw: (draw.group,)),
    "group_lag": of(lambda draw: (draw.group,)),
    "lags": of(lambda draw: ({draw.one(): 0},)),
    "alter_group_offsets": of(lambda draw: (SCRAP, {draw.one(): OffsetAndMetadata(1)})),
    "delete_group_offsets": of(lambda draw: (SCRAP, draw.some())),
    "delete_group": given(SCRAP),
    "delete_groups": given([SCRAP]),
    "describe_cluster": NOTHING,
    "describe_features": NOTHING,
    "api_versions": NOTHING,
    "describe_log_dirs": NOTHING,
    "alter_replica_log_dirs": of(lambda draw: ({(1, draw.one()): "/nowhere"},)),
    "unregister_broker": given(99),
    "elect_leaders": NOTHING,
    "describe_eligible_leaders": of(lambda draw: ([draw.topic],)),
    "list_reassignments": NOTHING,
    "alter_reassignments": of(lambda draw: ({draw.one(): None},)),
    "describe_client_quotas": NOTHING,
    "alter_client_quotas": given({}),
    "describe_user_scram_credentials": NOTHING,
    "alter_user_scram_credentials": given([]),
    "create_delegation_token": NOTHING,
    "renew_delegation_token": given(b"none"),
    "expire_delegation_token": given(b"none"),
    "describe_delegation_tokens": NOTHING,
    "describe_acls": NOTHING,
    "create_acls": given([]),
    "delete_acls": given([]),
    "configs.describe": of(lambda draw: ("topic", draw.topic)),
    "configs.describe_all": of(lambda draw: ([("topic", draw.topic)],)),
    "configs.alter": of(lambda draw: ("topic", draw.topic, {"segment.ms": None})),
    "configs.list_resources": given("topic"),
    "transactions.list": NOTHING,
    "transactions.describe": given("nobody"),
    "transactions.producers": SOME,
    "transactions.hanging": of(lambda draw: (draw.some(), 3_600_000)),
    "transactions.abort": given(TopicPartition(SCRAP, 0), 1, 0, 0),
    "close": NOTHING,
}
CALLS: dict[str, dict[str, Given]] = {"producer": PRODUCER, "consumer": CONSUMER, "admin": ADMIN}
WEIGHTS = {
    "send": 40,
    "send_many": 4,
    "poll": 25,
    "poll_table": 3,
    "__iter__": 4,
    "commit": 4,
    "seek": 4,
    "pause": 3,
    "resume": 4,
}
"""How often a call is drawn; 1 for others, and `RARELY` for those after which little is left to do."""
RARELY = {"close": 0.3, "unsubscribe": 0.5, "create_message_streams": 0.3, "assign": 1.0}


def drawn(draw: Draw) -> Drawn:
    """The next call of a program."""
    client = draw.chance.choices(("producer", "consumer", "admin"), (5, 6, 2))[0]
    calls = CALLS[client]
    weights = [RARELY.get(name, WEIGHTS.get(name, 1)) for name in calls]
    name = draw.chance.choices([*calls], weights)[0]
    arguments, named = calls[name](draw)
    return Drawn(client, name, arguments, named)
