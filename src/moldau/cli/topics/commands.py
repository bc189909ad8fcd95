"""`moldau topics`: list, create, describe, alter, delete; offsets and delete-records are in modules of their own."""

from collections.abc import Iterable
from typing import Annotated, Any

from moldau.cli.command_line import Argument, Group, Option, UsageError
from moldau.cli.options import BOOTSTRAP, BootstrapServer, ChangedConfig, DeletedConfig, Json, changes, pairs, reachable
from moldau.cli.output import done_one_by_one, note, print_json, print_table
from moldau.client.administration.admin import Admin
from moldau.errors import ErrorCode, KafkaError
from moldau.names import TopicPartition, counted

app = Group(
    "topics",
    {
        "offsets": "moldau.cli.topics.offsets:offsets",
        "delete-records": "moldau.cli.topics.delete_records:delete_records",
    },
)

Topics = Annotated[list[str], Argument("TOPIC...", help="One or more topics.")]


@app.command("list")
def list_topics(
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    internal: Annotated[bool, Option("--internal", help="Also list internal topics.")] = False,
    as_json: Json = False,
) -> None:
    """
    List the topics.

    Examples:

      moldau topics list

      moldau topics list --internal --json
    """
    with Admin(reachable(bootstrap_server)) as admin:
        topics = admin.list_topics(internal=internal)
    listed = [
        {
            "topic": name,
            "partitions": len(topic.partitions),
            "replication_factor": max((len(p.replicas) for p in topic.partitions.values()), default=0),
            "internal": topic.internal,
        }
        for name, topic in topics.items()
    ]
    if as_json:
        print_json(listed)
    else:
        print_table(["TOPIC", "PARTITIONS", "REPLICAS"], [list(t.values())[:3] for t in listed])


@app.command()
def create(
    topics: Topics,
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    partitions: Annotated[
        int, Option("--partitions", "-p", help="The number of partitions; -1 means the broker's default.")
    ] = -1,
    replication_factor: Annotated[
        int, Option(help="The number of replicas of each partition; -1 means the broker's default.")
    ] = -1,
    config: Annotated[list[str] | None, Option(metavar="NAME=VALUE", help="A setting; repeatable.")] = None,
    if_not_exists: Annotated[bool, Option("--if-not-exists", help="Succeed if the topic already exists.")] = False,
    as_json: Json = False,
) -> None:
    """
    Create topics.

    Examples:

      moldau topics create events --partitions 4

      moldau topics create accounts --config cleanup.policy=compact --if-not-exists
    """
    configs = pairs(config or [], "--config")
    with (
        done_one_by_one("created", "created topic {}", as_json) as created,
        Admin(reachable(bootstrap_server)) as admin,
    ):
        for topic in topics:
            try:
                admin.create_topic(topic, partitions=partitions, replication_factor=replication_factor, configs=configs)
            except KafkaError as failure:
                if failure.code != ErrorCode.TOPIC_ALREADY_EXISTS or not if_not_exists:
                    raise
                note(f"topic {topic} already exists")
            else:
                created.append(topic)


@app.command()
def describe(topics: Topics, bootstrap_server: BootstrapServer = BOOTSTRAP, as_json: Json = False) -> None:
    """
    Describe topics: partitions, leaders, replicas, offsets, and the settings that differ from the defaults. A partition
    without a leader has none, and no offsets; nor has one whose leader does not answer. One whose new leader waits for
    its in-sync replicas has no end offset yet.

    Examples:

      moldau topics describe events

      moldau topics describe events accounts --json
    """
    with Admin(reachable(bootstrap_server)) as admin:
        described = [_description(admin, topic) for topic in topics]
    if as_json:
        print_json(described)
        return
    for number, topic in enumerate(described):
        configs = " ".join(f"{name}={value}" for name, value in topic["configs"].items())
        print(f"{chr(10) if number else ''}{topic['topic']}  id {topic['topic_id']}  {configs}".rstrip())
        headers = ["PARTITION", "LEADER", "REPLICAS", "ISR", "FIRST OFFSET", "END OFFSET"]
        print_table(headers, [list(p.values()) for p in topic["partitions"]])


def _description(admin: Admin, name: str) -> dict[str, Any]:
    topic = admin.describe_topics([name])[name]
    led = [TopicPartition(name, number) for number, part in topic.partitions.items() if part.leader >= 0]
    first, end = (admin.offsets(dict.fromkeys(led, position), known_only=True) for position in ("earliest", "latest"))
    configs = {c.name: c.value for c in admin.topic_configs(name) if not c.is_default}
    partitions = [
        {
            "partition": number,
            "leader": p.leader if p.leader >= 0 else None,
            "replicas": list(p.replicas),
            "isr": list(p.isr),
            "first_offset": first.get(TopicPartition(name, number)),
            "end_offset": end.get(TopicPartition(name, number)),
        }
        for number, p in topic.partitions.items()
    ]
    return {"topic": name, "topic_id": str(topic.topic_id), "configs": configs, "partitions": partitions}


@app.command()
def alter(
    topics: Topics,
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    partitions: Annotated[
        int | None,
        Option("--partitions", "-p", min=1, help="The new number of partitions, larger than the old one."),
    ] = None,
    replication_factor: Annotated[
        int | None,
        Option("--replication-factor", min=1, help="The new number of replicas."),
    ] = None,
    config: ChangedConfig = None,
    delete_config: DeletedConfig = None,
    as_json: Json = False,
) -> None:
    """
    Change settings of topics, or give them more partitions or replicas. New replicas are in sync when they have caught
    up, which `moldau cluster status` shows.

    Examples:

      moldau topics alter events --partitions 8

      moldau topics alter events --replication-factor 3

      moldau topics alter events accounts --config retention.ms=86400000 --delete-config segment.ms
    """
    wanted = changes(config, delete_config)
    if partitions is None and replication_factor is None and not wanted:
        raise UsageError("give --partitions, --replication-factor, --config NAME=VALUE or --delete-config NAME")
    with (
        done_one_by_one("altered", "altered topic {}", as_json) as altered,
        Admin(reachable(bootstrap_server)) as admin,
    ):
        if partitions is not None:  # all of this is checked before anything is changed
            _raise_first(admin.expand_topics(dict.fromkeys(topics, partitions), validate_only=True).values())
        if wanted:
            for topic in topics:
                admin.configs.alter("topic", topic, wanted, validate_only=True)
        for topic in topics:
            if replication_factor is not None:
                _replicate(admin, topic, replication_factor)
            if wanted:
                admin.alter_topic_configs(topic, wanted)
            if partitions is not None:
                admin.create_partitions(topic, partitions)
            altered.append(topic)


def _replicate(admin: Admin, topic: str, factor: int) -> None:
    """Raises `KafkaError` for the first partition that is refused, `ConfigError`."""
    from moldau.cli.cluster.replication_factors import with_replicas  # imports the brokers' settings

    view = admin.describe_topics([topic])[topic]
    plan = with_replicas(view, factor, admin.describe_cluster().racks)
    if not plan:
        note(f"topic {topic} has {counted(factor, 'replica')} already")
        return
    moves = {TopicPartition(topic, number): replicas for number, replicas in plan.items()}
    _raise_first(admin.alter_reassignments(moves).values())


def _raise_first(outcomes: Iterable[KafkaError | None]) -> None:
    for refused in outcomes:
        if refused is not None:
            raise refused


@app.command()
def delete(
    topics: Topics,
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    if_exists: Annotated[bool, Option("--if-exists", help="Succeed if the topic does not exist.")] = False,
    as_json: Json = False,
) -> None:
    """
    Delete topics with all their records.

    Examples:

      moldau topics delete events
    """
    with (
        done_one_by_one("deleted", "deleted topic {}", as_json) as deleted,
        Admin(reachable(bootstrap_server)) as admin,
    ):
        for topic in topics:
            try:
                admin.delete_topic(topic)
            except KafkaError as failure:
                if failure.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or not if_exists:
                    raise
                note(f"topic {topic} does not exist")
            else:
                deleted.append(topic)
