"""`moldau log adopt`: topics from another broker's log folders come into ours, record for record.

Everything is looked at before anything is written, and what cannot be taken ends the command. Topics then come one
after the other, each wholly or not at all; the command may be given again after it was interrupted.
"""

import itertools
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import moldau.config
from moldau.cli.command_line import Argument, Option
from moldau.cli.log.files import FilesOnly
from moldau.cli.log.settings import lines_of, read_kafkas, settings_of
from moldau.cli.options import Json
from moldau.cli.output import note, print_json
from moldau.cluster.state.image import Image
from moldau.cluster.state.reading import read_image
from moldau.errors import ConfigError, StorageError
from moldau.files import registration
from moldau.files.adoption import Intake, bytes_of
from moldau.files.foreign import ForeignTopic, Survey, refusal, survey
from moldau.files.kafka_leftovers import Leftover
from moldau.log.folders.identity import LOCK
from moldau.metadata_store.embedded import FILE_NAME as STORE_FILE
from moldau.metadata_store.embedded import EmbeddedStore
from moldau.names import INTERNAL_TOPICS, short_id
from moldau.runtime import Disk, Runtime, is_locked

if TYPE_CHECKING:
    from moldau.config import BrokerConfig
    from moldau.files.kafka_resources import KafkaResources
    from moldau.files.kafka_security import KafkaSecurity

SPARE_BYTES: Final = 64 << 20


@dataclass(frozen=True)
class AdoptionPlan:
    """The adopted partitions, the node and cluster that they belong to, and the settings."""

    topics: Sequence[ForeignTopic]
    settings: Mapping[str, Mapping[str, str]]
    config: "BrokerConfig"
    cluster_id: str
    node_id: int | None
    """None until our folder was asked."""
    security: "KafkaSecurity | None" = None
    """Users and their rights, quotas and tokens."""
    resources: "KafkaResources | None" = None
    """Settings of all brokers and of groups, subscriptions to metrics of clients."""

    @property
    def taken(self) -> list[Leftover]:
        return [each for part in (self.security, self.resources) if part is not None for each in part.taken]


def adopt(
    folders: Annotated[list[Path], Argument("DIR...", help="The log folders of a stopped broker.")],
    data_dir: Annotated[Path, Option(metavar="OURS", help="Moldau's log folder, the one with the metadata.")] = Path(
        "moldau-data"
    ),
    topic: Annotated[list[str] | None, Option(metavar="NAME", help="Only this topic; repeatable.")] = None,
    settings: Annotated[
        list[str] | None,
        Option("--set", metavar="[TOPIC/]NAME=VALUE", help="A setting of one topic or of all; repeatable."),
    ] = None,
    config: Annotated[Path | None, Option(metavar="FILE", help="A file of such lines.")] = None,
    default_settings: Annotated[
        bool, Option("--default-settings", help="Ignore the settings that the topics have in Kafka.")
    ] = False,
    node_id: Annotated[int | None, Option(help="The node.id, if the folder is new (1).")] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Only print what would be done.")] = False,
    as_json: Json = False,
) -> None:
    """
    Take over the topics in the log folders of another broker, such as Apache Kafka. Both brokers must be stopped.

    Topics keep their names, ids, offsets and leader epochs, consumer groups their offsets. Folders are copied; those in
    DIR are not changed. A topic that Moldau already has is refused. Settings of topics are in Kafka's metadata log: if
    DIR has it (__cluster_metadata-0) they are taken along, else a topic has the default ones; --set goes before both.
    So are access rights (ACLs), users of SCRAM, quotas of clients, delegation tokens, subscriptions to metrics of
    clients, and dynamic settings of groups and of all brokers, unless --topic names topics; those that Moldau already
    has stay as they are.

    Examples:

      moldau log adopt /var/lib/kafka/data --data-dir moldau-data --dry-run

      moldau log adopt /var/lib/kafka/data --set retention.ms=-1 --set accounts/cleanup.policy=compact
    """
    runtime = Runtime(disk=FilesOnly())
    _check_folders(folders, data_dir)
    surveyed = survey(runtime.disk, folders)
    if len(surveyed.clusters) > 1:
        raise ConfigError("these folders belong to different clusters: adopt them one after the other")
    chosen = _chosen(surveyed, topic)
    base, _ = moldau.config.broker_config({})
    kafkas = None if default_settings else read_kafkas(runtime.disk, folders)
    given = [*(lines_of(config) if config else ()), *(settings or ())]
    overrides = settings_of([topic.name for topic in chosen], kafkas.settings if kafkas else None, given, base)
    cluster_id = min(surveyed.clusters, default=None) or short_id(runtime.random.uuid())
    others = kafkas.others if kafkas else []
    security, resources = None, None
    if others and not topic:  # most folders have nothing but topics, and need none of this
        from moldau.files.kafka_resources import resources_of
        from moldau.files.kafka_security import security_of

        security, resources = security_of(others), resources_of(others, base)
    plan = AdoptionPlan(chosen, overrides, base, cluster_id, node_id, security, resources)
    if dry_run and not (data_dir / STORE_FILE).exists():
        _check(plan, Image(cluster_id), runtime.disk)
    else:
        plan = _carry_out(plan, surveyed, data_dir, runtime, dry_run)
    left = [*security.left, *resources.left] if security and resources else [one.entry for one in others]
    _report(plan, surveyed, left, as_json, dry_run)


def _check_folders(folders: Sequence[Path], data_dir: Path) -> None:
    for folder in folders:
        if is_locked(folder / LOCK):
            raise StorageError(f"a broker is using {folder}: stop it first")
        if folder.resolve() == data_dir.resolve():
            raise ConfigError("DIR and --data-dir are the same folder")


def _carry_out(plan: AdoptionPlan, surveyed: Survey, data_dir: Path, runtime: Runtime, dry_run: bool) -> AdoptionPlan:
    """Check everything and, unless it is dry, take it in; returns the plan without what was here before."""
    with Intake(runtime, data_dir) as intake:
        ours = intake.properties
        _check_ours(data_dir, ours)
        store = EmbeddedStore(data_dir)
        try:
            image = store.read(read_image())
            plan = replace(
                plan,
                topics=_without_known(plan.topics, image, surveyed, intake),
                cluster_id=ours.get("cluster.id", plan.cluster_id),
                node_id=_node_id(ours, plan.node_id, plan.config.node_id),
            )
            _check(plan, image or Image(plan.cluster_id), runtime.disk, intake)
            if not dry_run:
                _check_room(runtime.disk, plan, data_dir)
                _take_in(intake, plan, store, runtime)
            return plan
        finally:
            store.close()


def _chosen(surveyed: Survey, names: list[str] | None) -> list[ForeignTopic]:
    missing = [name for name in names or () if name not in surveyed.topics]
    if missing:
        raise ConfigError(f"these folders have no topic {missing[0]}")
    return [topic for name, topic in sorted(surveyed.topics.items()) if not names or name in names]


def _check_ours(data_dir: Path, properties: Mapping[str, str]) -> None:
    if properties and not (data_dir / STORE_FILE).exists():
        raise StorageError(f"{data_dir} has no {STORE_FILE}: name the log folder that has it")


def _without_known(
    chosen: Sequence[ForeignTopic], image: Image | None, surveyed: Survey, intake: Intake
) -> list[ForeignTopic]:
    """Leave out what an earlier run took in, and internal topics that we have of our own. Raises `StorageError`."""
    new: list[ForeignTopic] = []
    for topic in chosen:
        ours = image.topics.get(topic.name) if image is not None else None
        if ours is None:
            new.append(topic)
        elif ours.id == topic.id:
            surveyed.skipped.append((topic.folder, "it was taken in before"))
            intake.forget(topic.name)
        elif topic.name in INTERNAL_TOPICS:
            surveyed.skipped.append((topic.folder, f"there is a {topic.name} of our own"))
        else:
            raise StorageError(f"topic {topic.name} already exists: delete it here, or choose others with --topic")
    return new


def _node_id(ours: Mapping[str, str], given: int | None, default: int) -> int:
    """Ours as the folder has it, else as given, else the default. Raises `ConfigError`."""
    text = ours.get("node.id", ours.get("broker.id", ""))
    known = int(text) if text.isdecimal() else None
    if known is not None and given is not None and known != given:
        raise ConfigError(f"--node-id is {given}, and the folder belongs to node {known}")
    chosen = known if known is not None else given
    return default if chosen is None else chosen


def _check(plan: AdoptionPlan, image: Image, disk: Disk, intake: Intake | None = None) -> None:
    """Raises `ConfigError` or `StorageError` for the first thing that keeps a topic from being taken in."""
    for topic in plan.topics:
        wrong = registration.refusal(image, topic.name, topic.id)
        if wrong is not None:
            raise StorageError(wrong.message or wrong.code.sentence)
        in_the_way = intake.in_the_way(topic) if intake is not None else None
        if in_the_way is not None:
            raise StorageError(f"{in_the_way} exists already and belongs to no topic: move it elsewhere")
    for topic in plan.topics:
        sentence = refusal(disk, topic)
        if sentence is not None:
            raise StorageError(sentence)


def _check_room(disk: Disk, plan: AdoptionPlan, data_dir: Path) -> None:
    wanted, free = bytes_of(disk, plan.topics) + SPARE_BYTES, shutil.disk_usage(data_dir).free
    if wanted > free:
        raise StorageError(
            f"{wanted:,} bytes are needed and {free:,} are free in {data_dir}: choose fewer with --topic"
        )


def _take_in(intake: Intake, plan: AdoptionPlan, store: EmbeddedStore, runtime: Runtime) -> None:
    node_id = plan.node_id
    assert node_id is not None
    image = registration.open_cluster(store, plan.cluster_id)
    if not intake.properties:
        intake.claim(image.cluster_id, node_id, short_id(runtime.random.uuid()))
    for topic in plan.topics:
        overrides = plan.settings[topic.name]
        ready = intake.current(topic) or intake.stage(topic, moldau.config.topic_config(plan.config, overrides))
        intake.place(topic.name, ready)
        done = [ready.partitions[number] for number in sorted(ready.partitions)]
        registration.register(
            store,
            node_id,
            topic.name,
            ready.topic_id,
            [partition.leader_epoch for partition in done],
            overrides,
            max(partition.producer_id_max for partition in done),
        )
        intake.forget(topic.name)
    if plan.security is not None:
        from moldau.files.security_registration import register_security

        register_security(store, plan.security)
    if plan.resources is not None:
        from moldau.files.resource_registration import register_resources

        register_resources(store, plan.resources)
    intake.end()


def _report(plan: AdoptionPlan, surveyed: Survey, left: Sequence[Leftover], as_json: bool, dry_run: bool) -> None:
    shown: list[dict[str, Any]] = [
        {
            "topic": topic.name,
            "partitions": len(topic.partitions),
            "records": sum(partition.records for partition in topic.partitions.values()),
            "settings": dict(plan.settings[topic.name]),
        }
        for topic in plan.topics
    ]
    skipped = [{"path": str(path), "reason": reason} for path, reason in surveyed.skipped]
    if as_json:
        adopted: dict[str, Any] = {"adopted": [] if dry_run else shown, "adoptable": shown if dry_run else []}
        others = {"taken_along": plan.taken, "left_behind": left}
        named = {word: [each._asdict() for each in entries] for word, entries in others.items()}
        print_json({**adopted, "skipped": skipped, **named})
        return
    word = "would adopt" if dry_run else "adopted"
    for each in shown:
        of = ", ".join(f"{name}={value}" for name, value in each["settings"].items()) or "default settings"
        print(f"{word} topic {each['topic']}: partitions: {each['partitions']}, records: {each['records']:,}; {of}")
    for each in skipped:
        print(f"skipped {each['path']}: {each['reason']}")
    for what, entries in ((f"{word} {{}}", plan.taken), ("left behind: {}", left)):
        for kind, group in itertools.groupby(entries, key=lambda each: each.kind):
            print(f"{what.format(kind)}: {'; '.join(each.name for each in group)}")
    if any({*each["settings"]}.isdisjoint({"retention.ms", "cleanup.policy"}) for each in shown):
        note("by default the broker deletes records that are older than a week: --set retention.ms=-1 keeps them")
