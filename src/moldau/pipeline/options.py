"""Parses and checks the options of `spark.read.format("moldau")`. Names and meanings are those of Spark's Kafka
connector.

Pure: it turns text into an `Options` value or one `OptionError`. `positions.py` looks up partitions and offsets later.
Option names are not case-sensitive; values are.
"""

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from moldau.client.fetching import ISOLATION_LEVELS
from moldau.errors import MoldauError
from moldau.names import TopicPartition

EARLIEST = -2
LATEST = -1

Offsets = dict[TopicPartition, int]


class OptionError(MoldauError):
    """An invalid option; its text is one sentence for the user."""


class Subscription(NamedTuple):
    """Exactly one of the three is set: topics by name, by pattern, or single partitions."""

    topics: tuple[str, ...] = ()
    pattern: str = ""
    assigned: tuple[TopicPartition, ...] = ()


class Edge(NamedTuple):
    """Where reading starts or ends: at `default` (EARLIEST or LATEST), at offsets by partition, or at a time."""

    default: int = EARLIEST
    offsets: tuple[tuple[TopicPartition, int], ...] = ()
    timestamp_ms: int | None = None


@dataclass(frozen=True)
class Options:
    """The parsed options of a reader; picklable, because Spark sends it to the workers."""

    bootstrap_servers: str
    subscription: Subscription
    starting: Edge | None = None
    ending: Edge | None = None
    offsets_per_trigger_max: int | None = None
    fail_on_data_loss: bool = True
    latest_when_no_timestamp: bool = False
    partitions_min: int = 0
    isolation_level: str = "read_committed"


BOOTSTRAP = ("bootstrapServers", "kafka.bootstrap.servers")
ISOLATION = ("isolation.level", "kafka.isolation.level")
SUBSCRIPTIONS = ("subscribe", "subscribePattern", "assign")
OTHERS = (
    "startingOffsets", "endingOffsets", "startingTimestamp", "endingTimestamp", "startingOffsetsByTimestampStrategy",
    "maxOffsetsPerTrigger", "minPartitions", "failOnDataLoss", "includeHeaders",
)  # fmt: skip
NAMES = BOOTSTRAP + ISOLATION + SUBSCRIPTIONS + OTHERS


def read_options(given: Mapping[str, str]) -> Options:
    """Parse the options that Spark passes. Raises `OptionError` for the first wrong one."""
    values = {name.lower(): str(value).strip() for name, value in given.items()}
    _refuse_unknown(values)
    servers = [values[name.lower()] for name in BOOTSTRAP if values.get(name.lower())]
    if not servers:
        raise OptionError(
            "Option bootstrapServers is missing: it names the broker to read from, for example localhost:9092."
        )
    if len(set(servers)) > 1:
        raise OptionError("Options bootstrapServers and kafka.bootstrap.servers disagree; give one of them.")
    if not _boolean(values, "includeHeaders", True):
        raise OptionError("Option includeHeaders=false is not possible: the headers column is always there.")
    strategy = values.get("startingoffsetsbytimestampstrategy", "error")
    if strategy not in ("error", "latest"):
        raise OptionError(f"Option startingOffsetsByTimestampStrategy is error or latest, not {strategy!r}.")
    return Options(
        bootstrap_servers=servers[0],
        subscription=_subscription(values),
        starting=_edge(values, "starting"),
        ending=_edge(values, "ending"),
        offsets_per_trigger_max=_positive(values, "maxOffsetsPerTrigger"),
        fail_on_data_loss=_boolean(values, "failOnDataLoss", True),
        latest_when_no_timestamp=strategy == "latest",
        partitions_min=_positive(values, "minPartitions") or 0,
        isolation_level=_isolation(values),
    )


def _refuse_unknown(values: Mapping[str, str]) -> None:
    known = {name.lower(): name for name in NAMES}
    for name in sorted(values):
        if name in known:
            continue
        closest = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {known[closest[0]]}" if closest else f"; known are {', '.join(NAMES)}"
        raise OptionError(f"The moldau source has no option {name!r}{hint}.")


def _isolation(values: Mapping[str, str]) -> str:
    """The isolation level, read_committed by default: unlike the Kafka connector, which reads uncommitted records."""
    given = {values[name] for name in ISOLATION if name in values}
    if len(given) > 1:
        raise OptionError(f"Options {' and '.join(ISOLATION)} disagree; give one of them.")
    level = given.pop() if given else "read_committed"
    if level not in ISOLATION_LEVELS:
        raise OptionError(f"Option {ISOLATION[0]} is {' or '.join(ISOLATION_LEVELS)}, not {level!r}.")
    return level


def _subscription(values: Mapping[str, str]) -> Subscription:
    given = [name for name in SUBSCRIPTIONS if name.lower() in values]
    if len(given) != 1:
        said = " and ".join(given) if given else "none"
        raise OptionError(f"Give exactly one of the options subscribe, subscribePattern and assign ({said} given).")
    text = values[given[0].lower()]
    if not text:
        raise OptionError(f"Option {given[0]} is empty.")
    if given[0] == "subscribe":
        topics = tuple(dict.fromkeys(topic.strip() for topic in text.split(",") if topic.strip()))
        if not topics:
            raise OptionError("Option subscribe names no topic.")
        return Subscription(topics=topics)
    if given[0] == "subscribePattern":
        try:
            re.compile(text)
        except re.error as error:
            raise OptionError(f"Option subscribePattern is not a regular expression: {error}.") from None
        return Subscription(pattern=text)
    return Subscription(assigned=_assignment(text))


def _assignment(text: str) -> tuple[TopicPartition, ...]:
    example = 'like {"topic":[0,1]}'
    tree = _json(text, "assign", example)
    assigned: list[TopicPartition] = []
    for topic, partitions in tree.items():
        if not isinstance(partitions, list) or not all(type(p) is int and p >= 0 for p in partitions):
            raise OptionError(f"Option assign needs a list of partitions for topic {topic}, {example}.")
        assigned += [TopicPartition(topic, partition) for partition in partitions]
    if not assigned:
        raise OptionError("Option assign names no partition.")
    return tuple(sorted(set(assigned)))


def _edge(values: Mapping[str, str], side: str) -> Edge | None:
    """The starting or ending edge. A timestamp wins over offsets, as in the Kafka connector."""
    if f"{side}timestamp" in values:
        timestamp = values[f"{side}timestamp"]
        if not timestamp.isdecimal():
            raise OptionError(f"Option {side}Timestamp is milliseconds since 1970, not {timestamp!r}.")
        return Edge(LATEST if side == "ending" else EARLIEST, timestamp_ms=int(timestamp))
    text = values.get(f"{side}offsets")
    if text is None:
        return None
    name = f"{side}Offsets"
    if text.lower() in ("earliest", "latest"):
        default = EARLIEST if text.lower() == "earliest" else LATEST
        if side == "ending" and default == EARLIEST:
            raise OptionError("Option endingOffsets cannot be earliest: no record is before that.")
        return Edge(default)
    forbidden = EARLIEST if side == "ending" else None
    return Edge(LATEST if side == "ending" else EARLIEST, offsets=_offsets(text, name, forbidden))


def _offsets(text: str, name: str, forbidden: int | None) -> tuple[tuple[TopicPartition, int], ...]:
    example = 'earliest, latest or JSON like {"topic":{"0":23,"1":-2}}'
    offsets: Offsets = {}
    for topic, partitions in _json(text, name, example).items():
        if not isinstance(partitions, dict):
            raise OptionError(f"Option {name} must be {example}; topic {topic} has no object of partitions.")
        for partition, offset in partitions.items():
            if not partition.isdecimal() or type(offset) is not int or offset < EARLIEST:
                raise OptionError(f"Option {name} must be {example}, not {topic} partition {partition} at {offset!r}.")
            if offset == forbidden:
                raise OptionError(f"Option {name} cannot be {offset} for {topic} partition {partition}.")
            offsets[TopicPartition(topic, int(partition))] = offset
    return tuple(sorted(offsets.items()))


def _json(text: str, name: str, example: str) -> dict[str, Any]:
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        raise OptionError(f"Option {name} must be {example}, not {text[:80]!r}.") from None
    if not isinstance(tree, dict):
        raise OptionError(f"Option {name} must be {example}, not {text[:80]!r}.")
    return tree


def _boolean(values: Mapping[str, str], name: str, default: bool) -> bool:
    text = values.get(name.lower(), str(default)).lower()
    if text not in ("true", "false"):
        raise OptionError(f"Option {name} is true or false, not {text!r}.")
    return text == "true"


def _positive(values: Mapping[str, str], name: str) -> int | None:
    text = values.get(name.lower())
    if text is None:
        return None
    if not text.isdecimal() or int(text) == 0:
        raise OptionError(f"Option {name} is a whole number above zero, not {text!r}.")
    return int(text)
