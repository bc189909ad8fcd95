"""`moldau transactions`: list, describe, describe-producers, find-hanging, abort.

As Kafka's tool: what hangs is found by broker or topic, and ended by the partition and the offset it started at, or by
the producer's id and epochs where they are known.
"""

import time
from typing import Annotated, Any

from moldau.cli.command_line import Argument, Group, Option
from moldau.cli.options import BOOTSTRAP, BootstrapServer, Json, reachable
from moldau.cli.output import note, print_json, print_table, time_text
from moldau.client.administration.admin import Admin
from moldau.client.administration.transactions import OpenTransaction, ProducerDescription, TransactionDescription
from moldau.errors import ConfigError
from moldau.names import TopicPartition

MINUTE_MS = 60_000
Topic = Annotated[str | None, Option("--topic", help="Check the partitions of this topic.")]
Partition = Annotated[int | None, Option("--partition", min=0, help="Check only this partition; needs --topic.")]
BrokerId = Annotated[int | None, Option("--broker-id", min=0, help="Check the partitions of this broker.")]

app = Group("transactions")


@app.command("list")
def list_transactions(
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    state: Annotated[list[str] | None, Option("--state", help="Only transactions in this state; repeatable.")] = None,
    producer_id: Annotated[
        list[int] | None, Option("--producer-id", help="Only transactions of this producer id; repeatable.")
    ] = None,
    duration_filter: Annotated[
        int | None,
        Option("--duration-filter", min=0, metavar="MS", help="Only transactions that are open longer than this."),
    ] = None,
    transactional_id_pattern: Annotated[
        str | None,
        Option(
            "--transactional-id-pattern",
            metavar="RE2",
            help="Only transactional ids that match this expression as a whole.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """
    List the transactional ids that the brokers know, and the states of their transactions.

    Examples:

      moldau transactions list

      moldau transactions list --state Ongoing --duration-filter 60000
    """
    with Admin(reachable(bootstrap_server)) as admin:
        listed = admin.transactions.list(
            states=state or [],
            producer_ids=producer_id or [],
            lasting_ms=duration_filter,
            pattern=transactional_id_pattern,
        )
    if as_json:
        print_json([one._asdict() for one in listed])
    else:
        print_table(["TRANSACTIONAL ID", "COORDINATOR", "PRODUCER ID", "STATE"], listed)


@app.command()
def describe(
    transactional_ids: Annotated[list[str], Argument("TRANSACTIONAL-ID...", help="One or more transactional ids.")],
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """
    Describe transactional ids: their producers, and the start and the partitions of an open transaction.

    Examples:

      moldau transactions describe orders-1
    """
    with Admin(reachable(bootstrap_server)) as admin:
        described = [_described(admin.transactions.describe(name)) for name in transactional_ids]
    if as_json:
        print_json(described)
        return
    headers = ["TRANSACTIONAL ID", "COORDINATOR", "PRODUCER ID", "EPOCH", "STATE", "TIMEOUT MS", "STARTED", "SECONDS"]
    print_table([*headers, "PARTITIONS"], [[*list(one.values())[:-1], _named(one["partitions"])] for one in described])


def _described(one: TransactionDescription) -> dict[str, Any]:
    lasts = one.state in ("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence") and one.start_ms is not None
    return {
        "transactional_id": one.transactional_id,
        "coordinator": one.coordinator,
        "producer_id": one.producer_id,
        "producer_epoch": one.producer_epoch,
        "state": one.state,
        "timeout_ms": one.timeout_ms,
        "started": time_text(one.start_ms) if one.start_ms is not None else None,
        "seconds": _seconds_since(one.start_ms) if lasts and one.start_ms is not None else None,
        "partitions": [tp._asdict() for tp in one.partitions],
    }


def _named(partitions: list[dict[str, Any]]) -> str | None:
    return ",".join(f"{tp['topic']}-{tp['partition']}" for tp in partitions) or None


@app.command("describe-producers")
def describe_producers(
    topic: Annotated[str, Option("--topic", help="The topic.")],
    partition: Annotated[int, Option("--partition", min=0, help="The partition of the topic.")],
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    broker_id: BrokerId = None,
    as_json: Json = False,
) -> None:
    """
    Describe the producers that a partition knows: their epochs, last sequences, and where their transactions started.

    Examples:

      moldau transactions describe-producers --topic orders --partition 0
    """
    tp = TopicPartition(topic, partition)
    with Admin(reachable(bootstrap_server)) as admin:
        _check_there(admin, tp)
        producers = admin.transactions.producers([tp], broker_id)[tp]
    rows = [_producer(one) for one in producers]
    if as_json:
        print_json(rows)
        return
    headers = ["PRODUCER ID", "EPOCH", "COORDINATOR EPOCH", "LAST SEQUENCE", "LAST TIME", "START OFFSET"]
    print_table(headers, [list(row.values()) for row in rows])


def _producer(one: ProducerDescription) -> dict[str, Any]:
    return {
        "producer_id": one.producer_id,
        "producer_epoch": one.producer_epoch,
        "coordinator_epoch": one.coordinator_epoch,
        "last_sequence": one.last_sequence,
        "last_time": time_text(one.last_timestamp_ms),
        "start_offset": one.start_offset,
    }


@app.command("find-hanging")
def find_hanging(
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    broker_id: BrokerId = None,
    topic: Topic = None,
    partition: Partition = None,
    max_transaction_timeout: Annotated[
        int, Option(min=0, metavar="MINUTES", help="The brokers' transaction.max.timeout.ms: longer ones are hanging.")
    ] = 15,
    as_json: Json = False,
) -> None:
    """
    Find transactions that hang: they are open in a partition for longer than transaction.max.timeout.ms allows, and
    their coordinator does not know them. Consumers of committed records wait until you abort them.

    Examples:

      moldau transactions find-hanging --broker-id 1

      moldau transactions find-hanging --topic orders
    """
    if broker_id is None and topic is None:
        raise ConfigError("give --broker-id or --topic")
    if partition is not None and topic is None:
        raise ConfigError("--partition needs --topic")
    with Admin(reachable(bootstrap_server)) as admin:
        partitions = _partitions(admin, broker_id, topic, partition)
        hanging = admin.transactions.hanging(partitions, max_transaction_timeout * MINUTE_MS, broker_id)
    rows = [_open(one) for one in hanging]
    if as_json:
        print_json(rows)
        return
    headers = [
        "TOPIC",
        "PARTITION",
        "PRODUCER ID",
        "EPOCH",
        "COORDINATOR EPOCH",
        "START OFFSET",
        "LAST TIME",
        "MINUTES",
    ]
    print_table(headers, [list(row.values()) for row in rows])


def _open(one: OpenTransaction) -> dict[str, Any]:
    producer = one.producer
    return {
        "topic": one.partition.topic,
        "partition": one.partition.partition,
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
        "coordinator_epoch": producer.coordinator_epoch,
        "start_offset": producer.start_offset,
        "last_time": time_text(producer.last_timestamp_ms),
        "minutes": _seconds_since(producer.last_timestamp_ms) // 60,
    }


def _seconds_since(time_ms: int) -> int:
    return max(0, int(time.time()) - time_ms // 1000)


def _partitions(admin: Admin, broker_id: int | None, topic: str | None, partition: int | None) -> list[TopicPartition]:
    """The named partitions; each of them exists."""
    if broker_id is not None and broker_id not in admin.describe_cluster().brokers:
        raise ConfigError(f"broker {broker_id} does not exist")
    if topic is not None and partition is not None:
        _check_there(admin, TopicPartition(topic, partition))
    topics = admin.list_topics(internal=True) if topic is None else admin.describe_topics([topic])
    return [
        TopicPartition(name, number)
        for name, view in topics.items()
        for number, held in view.partitions.items()
        if (broker_id is None or broker_id in held.replicas) and partition in (None, number)
    ]


def _check_there(admin: Admin, tp: TopicPartition) -> None:
    if tp.partition not in admin.describe_topics([tp.topic])[tp.topic].partitions:
        raise ConfigError(f"topic {tp.topic} has no partition {tp.partition}")


@app.command()
def abort(
    topic: Annotated[str, Option("--topic", help="The topic.")],
    partition: Annotated[int, Option("--partition", min=0, help="The partition of the topic.")],
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    start_offset: Annotated[int | None, Option(min=0, help="The first offset of the transaction.")] = None,
    producer_id: Annotated[
        int | None, Option(min=0, help="The transaction's producer id, if --start-offset is unknown.")
    ] = None,
    producer_epoch: Annotated[int | None, Option(min=0, max=32767, help="With --producer-id.")] = None,
    coordinator_epoch: Annotated[int | None, Option(min=-1, help="With --producer-id.")] = None,
    as_json: Json = False,
) -> None:
    """
    Abort a transaction that hangs, in one partition. Never abort a transaction that its coordinator still knows: its
    records in this partition would be lost, and the others may be committed.

    Examples:

      moldau transactions abort --topic orders --partition 0 --start-offset 1234

      moldau transactions abort --topic orders --partition 0 --producer-id 7 --producer-epoch 0 --coordinator-epoch 3
    """
    tp = TopicPartition(topic, partition)
    by_hand = (producer_id, producer_epoch, coordinator_epoch)
    if (start_offset is None) == (producer_id is None):
        raise ConfigError("give --start-offset, or --producer-id with --producer-epoch and --coordinator-epoch")
    if start_offset is not None and by_hand != (None, None, None):
        raise ConfigError("--start-offset cannot be combined with epochs")
    with Admin(reachable(bootstrap_server)) as admin:
        _check_there(admin, tp)
        if start_offset is not None:
            producer = _started_at(admin, tp, start_offset)
            producer_id, producer_epoch, coordinator_epoch = (
                producer.producer_id,
                producer.producer_epoch,
                producer.coordinator_epoch,
            )
        if producer_id is None or producer_epoch is None or coordinator_epoch is None:
            raise ConfigError("--producer-id needs --producer-epoch and --coordinator-epoch")
        admin.transactions.abort(tp, producer_id, producer_epoch, coordinator_epoch)
    note(f"the transaction of producer {producer_id} in {tp} is aborted")
    if as_json:
        aborted = {"producer_id": producer_id, "producer_epoch": producer_epoch, "coordinator_epoch": coordinator_epoch}
        print_json({"topic": tp.topic, "partition": tp.partition, **aborted})


def _started_at(admin: Admin, tp: TopicPartition, offset: int) -> ProducerDescription:
    for producer in admin.transactions.producers([tp])[tp]:
        if producer.start_offset == offset:
            return producer
    raise ConfigError(f"no open transaction in {tp} started at offset {offset}")
