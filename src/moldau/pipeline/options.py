"""Parses and checks the options of `spark.read.format("moldau")`. Names and meanings are those of Spark's Kafka
connector.

Pure: it turns text into an `Options` value or one `OptionError`. `positions.py` looks up partitions and offsets later.
Option names are not case-sensitive; values are.
"""

import hashlib
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from moldau.client.fetching import FETCH_MAX_BYTES, ISOLATION_LEVELS
from moldau.client.security.brokers import settings_in
from moldau.errors import ConfigError
from moldau.names import TopicPartition, guess
from moldau.pipeline.connecting import CLIENT_CONFIG, about_security, reached
from moldau.pipeline.edges import EARLIEST as EARLIEST
from moldau.pipeline.edges import LATEST as LATEST
from moldau.pipeline.edges import Edge as Edge
from moldau.pipeline.edges import OptionError as OptionError
from moldau.pipeline.edges import json_object, read_edge

if TYPE_CHECKING:
    from moldau.client.consuming.consumer_settings import ConsumerSettings

logger = logging.getLogger(__name__)
COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
TIMEOUT_MS = 30_000
TRIGGER_DELAY_MAX = "15m"


class TopicSelection(NamedTuple):
    """Exactly one of the three is set: topics by name, by pattern, or single partitions."""

    topics: tuple[str, ...] = ()
    pattern: str = ""
    assigned: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True)
class Options:
    """The parsed options of a reader; picklable, because Spark sends it to the workers. Progress is committed to
    `group_id` if there is one. The brokers carry what is said about their security."""

    bootstrap_servers: str
    subscription: TopicSelection
    starting: Edge | None = None
    ending: Edge | None = None
    offsets_per_trigger_max: int | None = None
    offsets_per_trigger_min: int | None = None
    trigger_delay_max_s: float = 900.0
    fail_on_data_loss: bool = True
    latest_when_no_timestamp: bool = False
    partitions_min: int = 0
    records_per_partition_max: int | None = None
    isolation_level: str = "read_committed"
    columns: tuple[str, ...] = COLUMNS
    filter_pushdown: bool = False
    group_id: str | None = None
    client_id: str = "moldau"
    timeout_ms: int = TIMEOUT_MS
    fetch_max_bytes: int = FETCH_MAX_BYTES


BOOTSTRAP = ("bootstrapServers", "kafka.bootstrap.servers")
ISOLATION = ("isolation.level", "kafka.isolation.level")
SUBSCRIPTIONS = ("subscribe", "subscribePattern", "assign")
OTHERS = (
    "startingOffsets", "endingOffsets", "startingTimestamp", "endingTimestamp", "startingOffsetsByTimestamp",
    "endingOffsetsByTimestamp", "startingOffsetsByTimestampStrategy", "maxOffsetsPerTrigger", "minOffsetsPerTrigger",
    "maxTriggerDelay", "minPartitions", "maxRecordsPerPartition", "failOnDataLoss", "includeHeaders", "columns",
    "groupIdPrefix", "filterPushdown", CLIENT_CONFIG,
)  # fmt: skip
KAFKA = "kafka."
WITHOUT_EFFECT = {
    "fetchOffset.numRetries": "look-ups are repeated for kafka.default.api.timeout.ms",
    "fetchOffset.retryIntervalMs": "pauses between look-ups are those of kafka.retry.backoff.ms",
    "kafkaConsumer.pollTimeoutMs": "fetches are repeated for kafka.default.api.timeout.ms",
    "kafka.max.poll.records": "maxOffsetsPerTrigger and maxRecordsPerPartition bound what is read at once",
}
"""Numbers that jobs for the Kafka connector give, which mean nothing here, and what takes their place."""
NAMES = BOOTSTRAP + ISOLATION + SUBSCRIPTIONS + OTHERS + tuple(WITHOUT_EFFECT)
INSTEAD = {
    "auto.offset.reset": "startingOffsets says where to start",
    "enable.auto.commit": "Spark's checkpoint holds the position, and groupIdPrefix publishes it",
    "key.deserializer": "keys are binary, and functions of Spark decode them",
    "value.deserializer": "values are binary, and functions of Spark decode them",
    "interceptor.classes": "records go to Spark as columns",
    "zookeeper.connect": "kafka.bootstrap.servers names the brokers",
}
"""Settings of a consumer that mean nothing here, and what takes their place."""
UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def read_options(given: Mapping[str, str]) -> Options:
    """Parse the options that Spark passes. Raises `OptionError` for the first wrong one."""
    values = {name.lower(): str(value).strip() for name, value in given.items()}
    refuse_unknown("source", values, NAMES)
    for name, instead in WITHOUT_EFFECT.items():
        number = values.pop(name.lower(), None)
        if number is not None:
            if not number.isdecimal():
                raise OptionError(f"Option {name} is a whole number, not {number!r}.")
            without_effect(name, instead)
    brokers = reached(read_bootstrap(values, "read from"), values)
    client = _client_settings(brokers, values)
    strategy = values.get("startingoffsetsbytimestampstrategy", "error")
    if strategy not in ("error", "latest"):
        raise OptionError(f"Option startingOffsetsByTimestampStrategy is error or latest, not {strategy!r}.")
    subscription = _subscription(values)
    least, most = positive(values, "minOffsetsPerTrigger"), positive(values, "maxOffsetsPerTrigger")
    if least and most and least > most:
        raise OptionError(f"Option minOffsetsPerTrigger ({least}) is above maxOffsetsPerTrigger ({most}).")
    return Options(
        bootstrap_servers=brokers,
        subscription=subscription,
        starting=read_edge(values, "starting"),
        ending=read_edge(values, "ending"),
        offsets_per_trigger_max=most,
        offsets_per_trigger_min=least,
        trigger_delay_max_s=_duration_s(values, "maxTriggerDelay", TRIGGER_DELAY_MAX),
        fail_on_data_loss=boolean(values, "failOnDataLoss", True),
        latest_when_no_timestamp=strategy == "latest",
        partitions_min=positive(values, "minPartitions") or 0,
        records_per_partition_max=positive(values, "maxRecordsPerPartition"),
        isolation_level=_isolation(values),
        columns=_columns(values),
        filter_pushdown=boolean(values, "filterPushdown", False),
        group_id=_group_id(values, subscription),
        client_id=client.client_id,
        timeout_ms=client.default_api_timeout_ms if f"{KAFKA}default.api.timeout.ms" in values else TIMEOUT_MS,
        fetch_max_bytes=_fetch_max_bytes(values, client),
    )


def read_bootstrap(values: Mapping[str, str], purpose: str) -> str:
    servers = [values[name.lower()] for name in BOOTSTRAP if values.get(name.lower())]
    if not servers:
        raise OptionError(
            f"Option bootstrapServers is missing: it names the broker to {purpose}, for example localhost:9092."
        )
    if len(set(servers)) > 1:
        raise OptionError("Options bootstrapServers and kafka.bootstrap.servers disagree; give one of them.")
    return servers[0]


def without_effect(name: str, instead: str) -> None:
    """Log that an option of the Kafka connector is accepted and means nothing here."""
    logger.debug("Option %s has no effect: %s.", name, instead)


def refuse_unknown(what: str, values: Mapping[str, str], names: tuple[str, ...]) -> None:
    """Raise `OptionError` for an option that is neither one of these nor a setting of the client."""
    known = {name.lower(): name for name in names}
    for name in sorted(values):
        if name in known or name.startswith(KAFKA):
            continue
        hint = guess(name, known.values()).removesuffix("?") or f"; known are {', '.join(names)}"
        raise OptionError(f"The moldau {what} has no option {name!r}{hint}.")


def _client_settings(brokers: str, values: Mapping[str, str]) -> "ConsumerSettings":
    """The options that begin with `kafka.`, checked as the settings of a consumer, with what the brokers carry."""
    # Spark's workers read options that the driver has checked: they start without the consumer.
    from moldau.client.consuming.consumer_settings import ConsumerSettings
    from moldau.client.settings import read_settings

    given = {name.removeprefix(KAFKA): value for name, value in values.items() if name.startswith(KAFKA)}
    for name, instead in INSTEAD.items():
        if name in given:
            raise OptionError(f"Option {KAFKA}{name} has no meaning here: {instead}.")
    try:
        return read_settings(ConsumerSettings, "The client", ({**about_security(settings_in(brokers)), **given},), {})
    except ConfigError as error:
        raise OptionError(f"Options that begin with kafka. are settings of the client: {error}.") from None


def _fetch_max_bytes(values: Mapping[str, str], client: "ConsumerSettings") -> int:
    limits = {
        "fetch.max.bytes": client.fetch_max_bytes,
        "max.partition.fetch.bytes": client.max_partition_fetch_bytes,
    }
    return min((limit for name, limit in limits.items() if KAFKA + name in values), default=FETCH_MAX_BYTES)


def _group_id(values: Mapping[str, str], subscription: TopicSelection) -> str | None:
    """The group that progress is committed to: kafka.group.id, which wins as in the Kafka connector, or the prefix with
    a digest of what is read, so that a restarted query has the same group."""
    prefix, group_id = values.get("groupidprefix"), values.get(f"{KAFKA}group.id")
    if "" in (prefix, group_id):
        raise OptionError("The name of a group is empty.")
    if prefix is not None and group_id is not None:
        without_effect("groupIdPrefix", "kafka.group.id names the group")
    if prefix is None or group_id is not None:
        return group_id
    return f"{prefix}-{hashlib.sha256(repr(subscription).encode()).hexdigest()[:8]}"


def _columns(values: Mapping[str, str]) -> tuple[str, ...]:
    """The columns to read, in the order given."""
    with_headers = boolean(values, "includeHeaders", True)
    if "columns" not in values:
        return COLUMNS if with_headers else COLUMNS[:-1]
    known = {name.lower(): name for name in COLUMNS}
    wanted = [name.strip() for name in values["columns"].split(",")]
    for name in wanted:
        if name.lower() not in known:
            raise OptionError(f"Option columns names {name!r}, which is not one of {', '.join(COLUMNS)}.")
    chosen = tuple(known[name.lower()] for name in wanted)
    if len(set(chosen)) < len(chosen):
        raise OptionError("Option columns names a column twice.")
    if not with_headers and "headers" in chosen:
        raise OptionError("Option columns names headers, but includeHeaders is false.")
    return chosen


def _isolation(values: Mapping[str, str]) -> str:
    """The isolation level, read_committed by default: unlike the Kafka connector, which reads uncommitted records."""
    given = {values[name] for name in ISOLATION if name in values}
    if len(given) > 1:
        raise OptionError(f"Options {' and '.join(ISOLATION)} disagree; give one of them.")
    level = given.pop() if given else "read_committed"
    if level not in ISOLATION_LEVELS:
        raise OptionError(f"Option {ISOLATION[0]} is {' or '.join(ISOLATION_LEVELS)}, not {level!r}.")
    return level


def _subscription(values: Mapping[str, str]) -> TopicSelection:
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
        return TopicSelection(topics=topics)
    if given[0] == "subscribePattern":
        try:
            re.compile(text)
        except re.error as error:
            raise OptionError(f"Option subscribePattern is not a regular expression: {error}.") from None
        return TopicSelection(pattern=text)
    return TopicSelection(assigned=_assignment(text))


def _assignment(text: str) -> tuple[TopicPartition, ...]:
    example = 'like {"topic":[0,1]}'
    tree = json_object(text, "assign", example)
    assigned: list[TopicPartition] = []
    for topic, partitions in tree.items():
        if not isinstance(partitions, list) or not all(type(p) is int and p >= 0 for p in partitions):
            raise OptionError(f"Option assign needs a list of partitions for topic {topic}, {example}.")
        assigned += [TopicPartition(topic, partition) for partition in partitions]
    if not assigned:
        raise OptionError("Option assign names no partition.")
    return tuple(sorted(set(assigned)))


def _duration_s(values: Mapping[str, str], name: str, default: str) -> float:
    text = values.get(name.lower(), default)
    parts = re.fullmatch(r"(\d+)\s*(ms|s|m|min|h|d)?", text.lower())
    if parts is None:
        raise OptionError(f"Option {name} is a duration such as 30s or 15m, not {text!r}.")
    unit = parts[2] or "ms"
    return int(parts[1]) * UNITS_S["m" if unit == "min" else unit]


def boolean(values: Mapping[str, str], name: str, default: bool) -> bool:
    text = values.get(name.lower(), str(default)).lower()
    if text not in ("true", "false"):
        raise OptionError(f"Option {name} is true or false, not {text!r}.")
    return text == "true"


def positive(values: Mapping[str, str], name: str) -> int | None:
    text = values.get(name.lower())
    if text is None:
        return None
    if not text.isdecimal() or int(text) == 0:
        raise OptionError(f"Option {name} is a whole number above zero, not {text!r}.")
    return int(text)
