"""`moldau verifiable consume`: a member of a group, and a line for whatever happens to it."""

from collections.abc import Iterable
from typing import Annotated, Any

from moldau.cli.command_line import Argument, Option
from moldau.cli.options import BOOTSTRAP, BootstrapServer, CommandProperty, client_settings, reachable
from moldau.cli.verifying.events import ENDED, STARTED, EventLines, content
from moldau.client.consuming.consumer import Consumer
from moldau.client.consuming.fetched.record import Record
from moldau.errors import KafkaError
from moldau.names import TopicPartition

POLL_MS, POLL_RECORDS = 200, 1_000


def consume(
    topic: Annotated[str, Argument("TOPIC", help="The topic to read.")],
    group_id: Annotated[str, Option("--group-id", metavar="NAME", help="The group.")],
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    max_messages: Annotated[
        int, Option("--max-messages", "-n", min=-1, help="Stop after this number; -1, the default: at SIGTERM.")
    ] = -1,
    group_protocol: Annotated[str, Option(help="classic or consumer.")] = "classic",
    group_instance_id: Annotated[str | None, Option(metavar="NAME", help="Makes it a static member.")] = None,
    session_timeout: Annotated[int | None, Option(min=1, metavar="MS", help="Of the classic protocol.")] = None,
    reset_policy: Annotated[str, Option(help="earliest (the default), latest or none.")] = "earliest",
    enable_autocommit: Annotated[
        bool, Option("--enable-autocommit", help="Commit in the background, not after each batch.")
    ] = False,
    verbose: Annotated[bool, Option("--verbose", help="A line for each record too.")] = False,
    command_property: CommandProperty = None,
) -> None:
    """
    Consume as a member of a group and print lines of JSON: partitions_assigned and partitions_revoked, records_consumed
    with the offsets of each partition, offsets_committed; with --verbose record_data.

    Examples:

      moldau verifiable consume events --group-id checkers --max-messages 1000 --verbose
    """
    given = {
        "group_id": group_id, "auto_offset_reset": reset_policy, "group_protocol": group_protocol,
        "group_instance_id": group_instance_id, "session_timeout_ms": session_timeout,
        "enable_auto_commit": str(enable_autocommit).lower(),
    }  # fmt: skip
    settings = client_settings(reachable(bootstrap_server), command_property, given)
    events, left = EventLines(), max_messages
    with Consumer({"client.id": "moldau-verifiable-consumer", **settings}) as consumer:
        events.tell(STARTED)
        consumer.subscribe(
            [topic],
            on_assigned=lambda tps: events.tell("partitions_assigned", partitions=_listed(tps)),
            on_revoked=lambda tps: events.tell("partitions_revoked", partitions=_listed(tps)),
        )
        while left:
            records = consumer.poll(POLL_MS, POLL_RECORDS if left < 0 else min(POLL_RECORDS, left))
            if not records:
                continue
            left -= len(records) if left > 0 else 0
            _tell(events, records, verbose=verbose)
            if not enable_autocommit:
                _commit(events, consumer, records)
    events.tell(ENDED)


def _listed(tps: Iterable[TopicPartition]) -> list[dict[str, Any]]:
    return [tp._asdict() for tp in sorted(tps)]


def _tell(events: EventLines, records: list[Record], *, verbose: bool) -> None:
    offsets: dict[TopicPartition, list[int]] = {}
    for record in records:
        offsets.setdefault(TopicPartition(record.topic, record.partition), []).append(record.offset)
        if verbose:
            place = {"topic": record.topic, "partition": record.partition, "offset": record.offset}
            events.tell("record_data", **content("key", record.key), **content("value", record.value), **place)
    parts = [
        {**tp._asdict(), "count": len(read), "minOffset": read[0], "maxOffset": read[-1]}
        for tp, read in sorted(offsets.items())
    ]
    events.tell("records_consumed", count=len(records), partitions=parts)


def _commit(events: EventLines, consumer: Consumer, records: list[Record]) -> None:
    """Commit behind these records. What fails is told; the group gives them to another member, or again to this one."""
    behind = {TopicPartition(record.topic, record.partition): record.offset + 1 for record in records}
    offsets = [{**tp._asdict(), "offset": offset} for tp, offset in sorted(behind.items())]
    try:
        consumer.commit(behind)
    except KafkaError as error:
        events.tell("offsets_committed", offsets=offsets, success=False, error=str(error))
    else:
        events.tell("offsets_committed", offsets=offsets, success=True)
