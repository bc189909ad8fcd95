"""Resolves options into partitions and offsets, with the broker's metadata and the ends of its logs.

Used on the driver only. Every error is one sentence: `OptionError` for an impossible request of the user, `DataLost`
for deleted records, `KafkaError` from the client for all others.
"""

import logging
import re
import uuid
from collections.abc import Collection, Iterable, Mapping

from moldau.client.fetching import describe_topics, list_offsets
from moldau.errors import ErrorCode, KafkaError, MoldauError
from moldau.names import TopicPartition
from moldau.pipeline.options import EARLIEST, LATEST, TIMEOUT_MS, Edge, OptionError, Options, TopicSelection

logger = logging.getLogger(__name__)
Offsets = dict[TopicPartition, int]
Subscribed = dict[TopicPartition, uuid.UUID | None]
"""Partitions, sorted, with the ids of their topics; None where brokers give topics no ids (Kafka before 2.8)."""
CONTACT_MS = 5_000
"""How long a first request may take: a broker that does not exist is reported within seconds."""


class DataLost(MoldauError):
    """Requested records are no longer in the log, or their partition no longer exists."""


class Unreachable(MoldauError):
    """No broker answered the first request of a query."""


def subscribed(
    bootstrap: str,
    subscription: TopicSelection,
    *,
    missing_ok: bool = False,
    timeout_ms: int = TIMEOUT_MS,
    client_id: str = "moldau",
) -> Subscribed:
    """The partitions that are subscribed to and exist. Unless `missing_ok`, a named topic or partition that does not
    exist is an OptionError."""
    names: list[str] | None = None
    if not subscription.pattern and not missing_ok:
        names = list(subscription.topics) or sorted({tp.topic for tp in subscription.assigned})
    try:
        topics = describe_topics(bootstrap, names, timeout_ms=timeout_ms, client_id=client_id)
    except KafkaError as error:
        if error.code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION):
            known = describe_topics(bootstrap, None, timeout_ms=timeout_ms, client_id=client_id)
            missing = [name for name in names or () if name not in known] or names or ()
            raise OptionError(f"No topic has this name: {', '.join(missing)}.") from None
        raise
    there = {
        TopicPartition(name, number): topic.topic_id if topic.topic_id.int else None
        for name, topic in sorted(topics.items())
        for number in sorted(topic.partitions)
    }
    if subscription.assigned:
        for tp in subscription.assigned:
            if tp not in there and not missing_ok:
                raise OptionError(f"Topic {tp.topic} has no partition {tp.partition}.")
        return {tp: there[tp] for tp in subscription.assigned if tp in there}
    if subscription.pattern:
        pattern = re.compile(subscription.pattern)
        return {tp: topic_id for tp, topic_id in there.items() if pattern.fullmatch(tp.topic)}
    return {tp: topic_id for tp, topic_id in there.items() if tp.topic in subscription.topics}


def first_contact(options: Options, *, missing_ok: bool = False) -> Subscribed:
    """As `subscribed`, for the first request of a query. Raises `Unreachable` if no broker answers within seconds."""
    timeout_ms = min(CONTACT_MS, options.timeout_ms)
    try:
        return subscribed(
            options.bootstrap_servers, options.subscription, missing_ok=missing_ok, timeout_ms=timeout_ms,
            client_id=options.client_id,
        )  # fmt: skip
    except KafkaError as error:
        if error.code in (ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT):
            raise Unreachable(f"No broker answers at {options.bootstrap_servers}: {error}.") from None
        raise


def earliest(
    bootstrap: str, partitions: Iterable[TopicPartition], *, timeout_ms: int = TIMEOUT_MS, client_id: str = "moldau"
) -> Offsets:
    wanted = dict.fromkeys(partitions, EARLIEST)
    return list_offsets(bootstrap, wanted, timeout_ms=timeout_ms, client_id=client_id) if wanted else {}


def latest(
    bootstrap: str,
    partitions: Iterable[TopicPartition],
    isolation_level: str = "read_committed",
    *,
    timeout_ms: int = TIMEOUT_MS,
    client_id: str = "moldau",
) -> Offsets:
    """The end of the readable records: the last stable offset with isolation level read_committed, else the high
    watermark."""
    wanted = dict.fromkeys(partitions, LATEST)
    if not wanted:
        return {}
    return list_offsets(bootstrap, wanted, isolation_level=isolation_level, timeout_ms=timeout_ms, client_id=client_id)


def at_edge(options: Options, edge: Edge, partitions: Collection[TopicPartition], side: str) -> Offsets:
    """The offset of every partition at the starting or ending edge.

    Offsets and times given by partition must name every partition and no other, as in the Kafka connector.
    """
    if edge.timestamp_ms is not None:
        return _at_times(options, edge.times_of(partitions), side, f"{side}Timestamp")
    if edge.timestamps_ms:
        name = f"{side}OffsetsByTimestamp"
        _check_names(name, [tp for tp, _ in edge.timestamps_ms], partitions)
        return _at_times(options, edge.times_of(partitions), side, name)
    given = edge.given_offsets
    if not given:
        return look_up(options, dict.fromkeys(partitions, edge.default))
    _check_names(f"{side}Offsets", given, partitions)
    resolved = look_up(options, {tp: at for tp, at in given.items() if at < 0})
    return {tp: resolved.get(tp, given[tp]) for tp in partitions}


def starting_offsets(options: Options, edge: Edge, partitions: Collection[TopicPartition]) -> Offsets:
    """The offset at which every partition starts. An offset beyond the end of its log belongs to a log that is not
    there any more: `DataLost`, or a warning and the end of the log without failOnDataLoss. One that waits for an open
    transaction stays."""
    starts = at_edge(options, edge, partitions, "starting")
    given = sorted(tp for tp, offset in edge.given_offsets.items() if offset > 0)
    ends = look_up(options, dict.fromkeys(given, LATEST))
    for tp in given:
        if starts[tp] <= ends[tp] or waits_for_transaction(options.bootstrap_servers, tp, starts[tp]):
            continue
        where = f"Option startingOffsets names offset {starts[tp]} of {tp}, but the log ends at {ends[tp]}"
        if options.fail_on_data_loss:
            raise DataLost(f"{where}; set failOnDataLoss to false to start at its end.")
        logger.warning("%s: reading starts there.", where)
        starts[tp] = ends[tp]
    return starts


def look_up(options: Options, wanted: Mapping[TopicPartition, int]) -> Offsets:
    """The offset of each partition at EARLIEST, LATEST or a time in ms; -1 if no record is as new as the time."""
    if not wanted:
        return {}
    return list_offsets(
        options.bootstrap_servers, wanted, isolation_level=options.isolation_level, timeout_ms=options.timeout_ms,
        client_id=options.client_id,
    )  # fmt: skip


def _check_names(name: str, given: Iterable[TopicPartition], partitions: Iterable[TopicPartition]) -> None:
    if sorted(given) != sorted(partitions):
        said, there = [", ".join(map(str, sorted(these))) or "none" for these in (given, partitions)]
        raise OptionError(f"Option {name} names the partitions {said}, but the subscribed ones are {there}.")


def _at_times(options: Options, times: Mapping[TopicPartition, int], side: str, name: str) -> Offsets:
    offsets = look_up(options, times)
    missing = [tp for tp in times if offsets[tp] < 0]
    if missing and side == "starting" and not options.latest_when_no_timestamp:
        raise OptionError(
            f"No record of {missing[0].topic} partition {missing[0].partition} is as new as {name} "
            f"{times[missing[0]]}; set startingOffsetsByTimestampStrategy to latest to start at its end."
        )
    return {**offsets, **look_up(options, dict.fromkeys(missing, LATEST))}


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
