"""Resolves options into partitions and offsets, with the broker's metadata and the ends of its logs.

Used on the driver only. Every error is one sentence: `OptionError` for an impossible request of the user, `DataLost`
for deleted records, `KafkaError` from the client for all others.
"""

import re
from collections.abc import Iterable, Mapping

from moldau.client.fetching import list_offsets, topic_partitions
from moldau.errors import ErrorCode, KafkaError, MoldauError
from moldau.names import TopicPartition
from moldau.pipeline.options import EARLIEST, LATEST, Edge, OptionError, Options, Subscription

Offsets = dict[TopicPartition, int]


class DataLost(MoldauError):
    """Requested records are no longer in the log, or their partition no longer exists."""


def subscribed(bootstrap: str, subscription: Subscription) -> list[TopicPartition]:
    """The partitions that are subscribed to and exist, sorted; a named topic that does not exist is an OptionError."""
    names: list[str] | None = None
    if not subscription.pattern:
        names = list(subscription.topics) or sorted({tp.topic for tp in subscription.assigned})
    try:
        found = topic_partitions(bootstrap, names)
    except KafkaError as error:
        if error.code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION):
            raise OptionError(f"No topic has this name: {', '.join(names or ())}.") from None
        raise
    there = {TopicPartition(topic, partition) for topic in found for partition in found[topic]}
    if subscription.assigned:
        for tp in subscription.assigned:
            if tp not in there:
                raise OptionError(f"Topic {tp.topic} has no partition {tp.partition}.")
        return list(subscription.assigned)
    if subscription.pattern:
        pattern = re.compile(subscription.pattern)
        there = {tp for tp in there if pattern.fullmatch(tp.topic)}
    return sorted(there)


def earliest(bootstrap: str, partitions: Iterable[TopicPartition]) -> Offsets:
    return _list(bootstrap, dict.fromkeys(partitions, EARLIEST))


def latest(bootstrap: str, partitions: Iterable[TopicPartition], isolation_level: str = "read_committed") -> Offsets:
    """The end of the readable records: the last stable offset with isolation level read_committed, else the high
    watermark."""
    return _list(bootstrap, dict.fromkeys(partitions, LATEST), isolation_level)


def at_edge(options: Options, edge: Edge, partitions: list[TopicPartition], side: str) -> Offsets:
    """The offset of every partition at the starting or ending edge.

    Offsets given by partition must name every partition and no other, as in the Kafka connector.
    """
    if edge.timestamp_ms is not None:
        return _at_time(options, edge.timestamp_ms, partitions, side)
    given = dict(edge.offsets)
    if not given:
        return _list(options.bootstrap_servers, dict.fromkeys(partitions, edge.default), options.isolation_level)
    if sorted(given) != partitions:
        said, there = [", ".join(map(str, sorted(these))) or "none" for these in (given, partitions)]
        raise OptionError(f"Option {side}Offsets names the partitions {said}, but the subscribed ones are {there}.")
    edges = {tp: at for tp, at in given.items() if at < 0}
    resolved = _list(options.bootstrap_servers, edges, options.isolation_level)
    return {tp: resolved.get(tp, given[tp]) for tp in partitions}


def _at_time(options: Options, timestamp_ms: int, partitions: list[TopicPartition], side: str) -> Offsets:
    wanted = dict.fromkeys(partitions, timestamp_ms)
    found = _list(options.bootstrap_servers, wanted, options.isolation_level)
    missing = [tp for tp in partitions if found[tp] < 0]
    if missing and side == "starting" and not options.latest_when_no_timestamp:
        raise OptionError(
            f"No record of {missing[0].topic} partition {missing[0].partition} is as new as startingTimestamp "
            f"{timestamp_ms}; set startingOffsetsByTimestampStrategy to latest to start at its end."
        )
    return {**found, **latest(options.bootstrap_servers, missing, options.isolation_level)}


def within_log(wanted: Offsets, first: Mapping[TopicPartition, int], fail_on_data_loss: bool) -> Offsets:
    """The start offsets, raised to the log start where records were deleted. Raises `DataLost` instead with
    `fail_on_data_loss`."""
    for tp, offset in sorted(wanted.items()):
        if offset < first[tp] and fail_on_data_loss:
            raise DataLost(
                f"Offsets {offset} to {first[tp] - 1} of {tp.topic} partition {tp.partition} are gone from the log; "
                "set failOnDataLoss to false to read what is left."
            )
    return {tp: max(offset, first[tp]) for tp, offset in wanted.items()}


def waits_for_transaction(bootstrap: str, tp: TopicPartition, offset: int) -> bool:
    """Whether the log reaches `offset`, so that only an open transaction keeps readers of committed records from it."""
    return offset <= latest(bootstrap, [tp], "read_uncommitted")[tp]


def _list(bootstrap: str, wanted: Mapping[TopicPartition, int], isolation_level: str = "read_uncommitted") -> Offsets:
    return list_offsets(bootstrap, wanted, isolation_level=isolation_level) if wanted else {}
