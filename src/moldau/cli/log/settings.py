"""Which settings the topics of `moldau log adopt` get: Kafka's own where its metadata log is among the folders, and on
top of them what was given on the command line, for all ordinary topics or for one.

What speaks of other brokers is left out: there is one replica here, so no write could ever find two in sync.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from moldau.cli.options import pairs
from moldau.config import read_properties, topic_config
from moldau.errors import ConfigError, StorageError
from moldau.files.kafka_settings import FOLDER, FinalMetadata, read_metadata
from moldau.names import INTERNAL_TOPICS
from moldau.runtime import Disk

if TYPE_CHECKING:
    from moldau.config import BrokerConfig

INTERNAL_SETTINGS: Final = {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "104857600"}
"""What Kafka gives to its topics of offsets and transactions."""
OF_REPLICAS: Final = (
    "min.insync.replicas", "leader.replication.throttled.replicas", "follower.replication.throttled.replicas",
)  # fmt: skip
TopicSettings = dict[str, dict[str, str]]


def read_kafkas(disk: Disk, folders: Sequence[Path]) -> FinalMetadata | None:
    """What Kafka's controllers wrote down; None if none of these folders has it. Raises `StorageError`, `OSError`."""
    for folder in folders:
        if disk.exists(folder / FOLDER):
            try:
                return read_metadata(disk, folder / FOLDER)
            except StorageError as wrong:
                raise StorageError(f"{wrong}; --default-settings ignores them") from wrong
    return None


def lines_of(file: Path) -> list[str]:
    """A file of `[TOPIC/]NAME=VALUE` lines. Raises `ConfigError`."""
    return [f"{name}={value}" for name, value in read_properties(file).items()]


def settings_of(
    names: Sequence[str], kafkas: TopicSettings | None, given: Sequence[str], broker: "BrokerConfig"
) -> TopicSettings:
    """Each topic's own settings, the strongest last. Raises `ConfigError` for what was given wrongly."""
    of_all: dict[str, str] = {}
    of_one: TopicSettings = {name: {} for name in names}
    for name, value in pairs(list(given), "--set").items():
        topic, slash, setting = name.rpartition("/")
        if slash and topic not in of_one:
            raise ConfigError(f"--set {name}: these folders have no topic {topic}")
        (of_one[topic] if slash else of_all)[setting] = value
    settings = {}
    for name, own in of_one.items():
        base = dict(INTERNAL_SETTINGS) if name in INTERNAL_TOPICS else {}
        base |= _usable((kafkas or {}).get(name, {}), broker)
        settings[name] = base | ({} if name in INTERNAL_TOPICS else of_all) | own
        topic_config(broker, settings[name])
    return settings


def _usable(kafkas: Mapping[str, str], broker: "BrokerConfig") -> dict[str, str]:
    """Those that a topic can have here."""
    usable = {}
    for name, value in kafkas.items():
        try:
            topic_config(broker, {name: value})
        except ConfigError:
            continue
        if name not in OF_REPLICAS:
            usable[name] = value
    return usable
