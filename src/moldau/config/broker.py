"""Every setting of a broker that we have, one line each: Kafka's type, name, default and bounds, and our sentence.

`fixed` settings are read at start only (Kafka calls them read-only); the others may be changed while the broker runs.
Names are Kafka's with dots for underscores. What Kafka has and we do not is in `kafka_names`; what neither knows is
refused. This module knows no topic and no socket: it says what was asked for, not whether it can be had.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from moldau.config import kafka_names
from moldau.config.listeners import Listener, chosen_listeners
from moldau.config.setting import (
    BOOLEAN,
    DOUBLE,
    INT,
    INT_MAX,
    LIST,
    LONG,
    LONG_MAX,
    SHORT,
    STRING,
    Setting,
    settings_of,
)
from moldau.errors import ConfigError

COMPRESSION_TYPES = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")
_FIXED = {"read_only": True}
_NUMBER = frozenset({"node.id", "broker.id"})
"""Always given: a broker of Kafka's has no default for its number."""


# fmt: off
# ruff: noqa: E501 (one setting is one line)
@dataclass(frozen=True)
class BrokerConfig:
    """The settings of one broker; every default is the value of an empty file."""

    node_id: int = INT(1, "The number of this broker in its cluster.", low=0, **_FIXED)
    broker_id: int = INT(-1, "An older name of node.id; -1 means that node.id says it.", **_FIXED)
    broker_rack: str | None = STRING(None, "The rack or zone this broker stands in, told to clients that fetch from the closest replica.", **_FIXED)
    listeners: tuple[str, ...] = LIST(("PLAINTEXT://:9092",), "Where to listen, as NAME://HOST:PORT; no host means every interface, port 0 takes a free one.")
    advertised_listeners: tuple[str, ...] | None = LIST(None, "Where clients are told to connect, as NAME://HOST:PORT; the listener itself if not set.", **_FIXED)
    listener_security_protocol_map: str = STRING("SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT", "Which protocol each listener name speaks, as NAME:PROTOCOL pairs.")
    log_dir: tuple[str, ...] = LIST(("moldau-data",), "The folder of the data, if log.dirs does not name it.", **_FIXED)
    log_dirs: tuple[str, ...] | None = LIST(None, "The folders of the data, each on a disk of its own; a new partition goes to the one that has the fewest. The first gets the metadata.", **_FIXED)
    num_recovery_threads_per_data_dir: int = INT(2, "How many partitions of one log folder are loaded (after a crash: recovered) at the same time.", low=1)

    socket_request_max_bytes: int = INT(104857600, "The largest request that is read; a connection that announces more is closed.", low=1, **_FIXED)
    socket_send_buffer_bytes: int = INT(102400, "The send buffer of a connection (SO_SNDBUF); -1 leaves the operating system's. Where it is not set, 262144 is used.", **_FIXED)
    socket_receive_buffer_bytes: int = INT(102400, "The receive buffer of a connection (SO_RCVBUF); -1 leaves the operating system's, which is used where it is not set.", **_FIXED)
    queued_max_request_bytes: int = LONG(-1, "The memory for requests of all connections that are incomplete or wait for their turn; when it is short, the slowest connections are closed. If the value is not above 0, the larger of 268435456 and socket.request.max.bytes is used.", **_FIXED)
    max_connections: int = INT(INT_MAX, "How many connections may be open at once.", low=0)
    max_connections_per_ip: int = INT(INT_MAX, "How many connections one address may have open at once.", low=0)
    connections_max_idle_ms: int = LONG(600000, "A connection that asks nothing for this long is closed.", **_FIXED)

    message_max_bytes: int = INT(1048588, "The largest batch of records that is accepted, after compression.", low=0)
    compression_type: str = STRING("producer", "How batches are kept: as the producer compressed them, or always in one way.", choices=COMPRESSION_TYPES)
    compression_gzip_level: int = INT(-1, "The level of gzip, where the broker compresses.", low=1, high=9, also=-1)
    compression_lz4_level: int = INT(9, "The level of lz4, where the broker compresses.", low=1, high=17)
    compression_zstd_level: int = INT(3, "The level of zstd, where the broker compresses.", low=-131072, high=22)
    min_insync_replicas: int = INT(1, "How many replicas must have a record before a Produce with acks=all is acknowledged.", low=1)
    unclean_leader_election_enable: bool = BOOLEAN(False, "May a replica that lags behind become leader when no other is left, losing records.")

    num_partitions: int = INT(1, "How many partitions a topic gets if nobody says.", low=1, **_FIXED)
    default_replication_factor: int = INT(1, "How many replicas a partition gets if nobody says.", **_FIXED)
    auto_create_topics_enable: bool = BOOLEAN(True, "Does asking for a topic's metadata create it.", **_FIXED)
    delete_topic_enable: bool = BOOLEAN(True, "May topics be deleted.", **_FIXED)

    log_segment_bytes: int = INT(1073741824, "A segment that would grow beyond this is closed and a new one begun.", low=1048576)
    log_roll_ms: int | None = LONG(None, "A segment whose first record is older than this is closed; log.roll.hours if not set.")
    log_roll_hours: int = INT(168, "log.roll.ms in hours.", low=1, **_FIXED)
    log_roll_jitter_ms: int | None = LONG(None, "Up to this much is taken off log.roll.ms, so that segments do not all roll together; log.roll.jitter.hours if not set.")
    log_roll_jitter_hours: int = INT(0, "log.roll.jitter.ms in hours.", low=0, **_FIXED)
    log_retention_ms: int | None = LONG(None, "Records older than this are deleted, -1 for never; log.retention.minutes if not set.")
    log_retention_minutes: int | None = INT(None, "log.retention.ms in minutes; log.retention.hours if not set.", **_FIXED)
    log_retention_hours: int = INT(168, "log.retention.ms in hours.", **_FIXED)
    log_retention_bytes: int = LONG(-1, "A partition larger than this loses its oldest segments; -1 for no limit.")
    log_retention_check_interval_ms: int = LONG(300000, "How often logs are looked at for segments to delete.", low=1, **_FIXED)
    log_initial_task_delay_ms: int = LONG(30000, "How long after the start the first look for segments to delete is.", low=0, **_FIXED)
    log_index_size_max_bytes: int = INT(10485760, "The size an index is created with; a segment whose index is full is closed.", low=4)
    log_index_interval_bytes: int = INT(4096, "An index entry is written about every so many bytes of records.", low=0)
    log_segment_delete_delay_ms: int = LONG(60000, "How long a deleted file stays on the disk under another name.", low=0)
    log_flush_interval_messages: int = LONG(LONG_MAX, "After so many records a log is forced to the disk.", low=1)
    log_flush_interval_ms: int | None = LONG(None, "A record waits at most so long until it is forced to the disk; log.flush.scheduler.interval.ms if not set.")
    log_flush_scheduler_interval_ms: int = LONG(LONG_MAX, "How often logs are looked at for records to force to the disk.", **_FIXED)
    log_flush_offset_checkpoint_interval_ms: int = INT(60000, "How often it is written down up to where logs are safe on the disk.", low=0, **_FIXED)
    log_flush_start_offset_checkpoint_interval_ms: int = INT(60000, "How often it is written down where logs start from which records were deleted.", low=0, **_FIXED)
    replica_high_watermark_checkpoint_interval_ms: int = LONG(5000, "How often high watermarks are written down.", **_FIXED)
    log_preallocate: bool = BOOLEAN(False, "Is the space of a new segment taken at once.")
    log_message_timestamp_type: str = STRING("CreateTime", "Is a record's time the producer's, or when it was appended.", choices=TIMESTAMP_TYPES)
    log_message_timestamp_before_max_ms: int = LONG(LONG_MAX, "A record stamped longer ago than this is refused.", low=0)
    log_message_timestamp_after_max_ms: int = LONG(3600000, "A record stamped further in the future than this is refused.", low=0)
    log_cleanup_policy: tuple[str, ...] = LIST(("delete",), "What happens to old records: deleted, compacted by key, or both.", choices=("compact", "delete"))
    log_cleaner_enable: bool = BOOLEAN(True, "Are topics compacted whose cleanup.policy says so.", **_FIXED)
    log_cleaner_threads: int = INT(1, "How many logs are compacted at the same time.", low=0)
    log_cleaner_dedupe_buffer_size: int = LONG(134217728, "The memory for the keys of logs being compacted, 24 bytes a key; all that compact at the same time share it.")
    log_cleaner_io_buffer_load_factor: float = DOUBLE(0.9, "How full the memory for keys may become: more keys at once, but slower.")
    log_cleaner_io_buffer_size: int = INT(524288, "The memory for reading and writing while compacting.", low=0)
    log_cleaner_io_max_bytes_per_second: float = DOUBLE(1.7976931348623157e308, "Compaction reads and writes no more than this in a second.")
    log_cleaner_backoff_ms: int = LONG(15000, "How long compaction rests where nothing is dirty enough.", low=0)
    log_cleaner_delete_retention_ms: int = LONG(86400000, "How long compaction keeps the mark of a deleted key.", low=0)
    log_cleaner_min_compaction_lag_ms: int = LONG(0, "How long a record is safe from compaction.", low=0)
    log_cleaner_max_compaction_lag_ms: int = LONG(LONG_MAX, "How long a record may wait for compaction.", low=1)
    log_cleaner_min_cleanable_ratio: float = DOUBLE(0.5, "The part of a log that must be uncompacted before it is compacted.", low=0, high=1)
    log_local_retention_ms: int = LONG(-2, "How long tiered topics keep records on the local disk; -2 means retention.ms.", low=-2)
    log_local_retention_bytes: int = LONG(-2, "How much tiered topics keep on the local disk; -2 means retention.bytes.", low=-2)

    fetch_max_bytes: int = INT(57671680, "The most bytes one Fetch is answered with.", low=1024, **_FIXED)
    max_incremental_fetch_session_cache_slots: int = INT(1000, "How many fetch sessions are kept; who gets none names all its partitions each time.", low=0, **_FIXED)
    max_request_partition_size_limit: int = INT(2000, "The most partitions that one DescribeTopicPartitions is answered with.", low=1, **_FIXED)
    producer_id_expiration_ms: int = INT(86400000, "A producer that has been silent for so long is forgotten.", low=1)
    producer_id_expiration_check_interval_ms: int = INT(600000, "How often silent producers are looked for.", low=1, **_FIXED)

    group_min_session_timeout_ms: int = INT(6000, "The shortest session time-out a group member may ask for.", **_FIXED)
    group_max_session_timeout_ms: int = INT(1800000, "The longest session time-out a group member may ask for.", **_FIXED)
    group_initial_rebalance_delay_ms: int = INT(3000, "How long an empty group waits for more members before its first assignment.", **_FIXED)
    group_max_size: int = INT(INT_MAX, "How many members one group may have.", low=1, **_FIXED)
    group_coordinator_rebalance_protocols: tuple[str, ...] = LIST(("classic", "consumer"), "The protocols that groups may speak.", choices=("classic", "consumer"), **_FIXED)
    group_consumer_session_timeout_ms: int = INT(45000, "A member of a consumer group that is silent for so long is out.", low=1, **_FIXED)
    group_consumer_min_session_timeout_ms: int = INT(45000, "The least that group.consumer.session.timeout.ms may be.", low=1, **_FIXED)
    group_consumer_max_session_timeout_ms: int = INT(60000, "The most that group.consumer.session.timeout.ms may be.", low=1, **_FIXED)
    group_consumer_heartbeat_interval_ms: int = INT(5000, "How often members of consumer groups are told to send a heartbeat.", low=1, **_FIXED)
    group_consumer_min_heartbeat_interval_ms: int = INT(5000, "The least that group.consumer.heartbeat.interval.ms may be.", low=1, **_FIXED)
    group_consumer_max_heartbeat_interval_ms: int = INT(15000, "The most that group.consumer.heartbeat.interval.ms may be.", low=1, **_FIXED)
    group_consumer_assignment_interval_ms: int = INT(1000, "How long a consumer group keeps an assignment at least, even if members join or leave.", low=0)
    group_consumer_min_assignment_interval_ms: int = INT(0, "The least that group.consumer.assignment.interval.ms may be.", low=0, **_FIXED)
    group_consumer_max_assignment_interval_ms: int = INT(15000, "The most that group.consumer.assignment.interval.ms may be.", low=0, **_FIXED)
    group_consumer_max_size: int = INT(INT_MAX, "How many members one consumer group may have.", low=1, **_FIXED)
    group_consumer_migration_policy: str = STRING("bidirectional", "Whether a classic group with members becomes a consumer group when a member of the consumer protocol joins (upgrade), and a classic group again when the last of these leaves (downgrade).", choices=("bidirectional", "upgrade", "downgrade", "disabled"), **_FIXED)
    group_consumer_assignors: tuple[str, ...] = LIST(("uniform", "range"), "What assigns partitions to the members of consumer groups; the first does unless members ask for another.", choices=("uniform", "range"), **_FIXED)
    offset_metadata_max_bytes: int = INT(4096, "The longest note that may be committed with an offset.", **_FIXED)
    offsets_load_buffer_size: int = INT(5242880, "How much of the offsets topic is read at once when groups are loaded.", low=1, **_FIXED)
    offsets_retention_minutes: int = INT(10080, "Offsets of a group that has been empty for so long are forgotten.", low=1, **_FIXED)
    offsets_retention_check_interval_ms: int = LONG(600000, "How often forgotten offsets are looked for.", low=1, **_FIXED)
    offsets_topic_num_partitions: int = INT(50, "How many partitions the offsets topic gets when it is created.", low=1, **_FIXED)
    offsets_topic_replication_factor: int = SHORT(3, "How many replicas the offsets topic gets when it is created, as far as there are brokers.", low=1, **_FIXED)
    offsets_topic_segment_bytes: int = INT(104857600, "The segment.bytes of the offsets topic.", low=1, **_FIXED)

    transaction_max_timeout_ms: int = INT(900000, "The longest time-out a transactional producer may ask for.", low=1, **_FIXED)
    transactional_id_expiration_ms: int = INT(604800000, "A transactional id that has done nothing for so long is forgotten.", low=1, **_FIXED)
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = INT(10000, "How often transactions are looked for that have run out of time, and aborted.", low=1, **_FIXED)
    transaction_remove_expired_transaction_cleanup_interval_ms: int = INT(3600000, "How often transactional ids are looked for that are to be forgotten.", low=1, **_FIXED)
    transaction_partition_verification_enable: bool = BOOLEAN(True, "Is the first batch of a transaction in a partition checked with the coordinator, for clients that tell it themselves which partitions they write to.")
    add_partitions_to_txn_retry_backoff_ms: int = INT(20, "How long a Produce waits before it asks the coordinator again, while the producer's transaction before is being ended.", low=1, **_FIXED)
    add_partitions_to_txn_retry_backoff_max_ms: int = INT(100, "How long a Produce asks the coordinator again before its client has to.", low=0, **_FIXED)
    transaction_state_log_load_buffer_size: int = INT(5242880, "How much of the topic of transactions is read at once when it is loaded.", low=1, **_FIXED)
    transaction_state_log_min_isr: int = INT(2, "The min.insync.replicas of the topic of transactions, as far as it has replicas.", low=1, **_FIXED)
    transaction_state_log_num_partitions: int = INT(50, "How many partitions the topic of transactions gets when it is created.", low=1, **_FIXED)
    transaction_state_log_replication_factor: int = SHORT(3, "How many replicas the topic of transactions gets when it is created, as far as there are brokers.", low=1, **_FIXED)
    transaction_state_log_segment_bytes: int = INT(104857600, "The segment.bytes of the topic of transactions.", low=1, **_FIXED)

    given: frozenset[str] = _NUMBER
    """The names that were said, whatever their values: DescribeConfigs tells them from defaults."""

    @property
    def listener(self) -> Listener:
        """Where to listen: host (empty for every interface) and port (0 for a free one)."""
        return chosen_listeners(self)[0]

    @property
    def advertised_listener(self) -> Listener:
        """Where clients are told to connect; host empty and port 0 where the listener's real ones are to be used."""
        return chosen_listeners(self)[1]

    @property
    def data_folders(self) -> tuple[str, ...]:
        return self.log_dirs or self.log_dir
# fmt: on


SETTINGS: dict[str, Setting] = settings_of(BrokerConfig)


def broker_config(properties: Mapping[str, str]) -> tuple[BrokerConfig, list[str]]:
    """The settings that `properties` say, and warnings for people. Raises `ConfigError` for what cannot be meant."""
    values: dict[str, Any] = {}
    absent = []
    for name, text in properties.items():
        setting = SETTINGS.get(name)
        if setting is not None:
            values[setting.field] = setting.parse(text)
        elif kafka_names.is_refused(name, text):
            raise ConfigError(kafka_names.REFUSED[name])
        elif kafka_names.known(name):
            absent.append(name)
        else:
            import difflib  # no start needs it

            close = difflib.get_close_matches(name, [*SETTINGS, *kafka_names.NAMES], 1)
            raise ConfigError(f"there is no setting {name!r}" + (f"; did you mean {close[0]}?" if close else ""))
    given = _NUMBER.union(name for name in properties if name in SETTINGS)
    _agree_on_node_id(values)
    config = BrokerConfig(**values, given=given)
    _check(config)
    warnings = [f"these Kafka settings have no effect here: {', '.join(absent)}"] if absent else []
    warnings += chosen_listeners(config)[2]
    return config, warnings


def with_changes(config: BrokerConfig, changes: Mapping[str, str]) -> BrokerConfig:
    """The settings after some were changed; names that are not ours say nothing. Raises `ConfigError`."""
    for name in changes.keys() & kafka_names.KEPT.keys():
        kafka_names.KEPT[name].parse(changes[name])
    values: dict[str, Any] = {
        SETTINGS[n].field: SETTINGS[n].parse(text) for n, text in changes.items() if n in SETTINGS
    }
    changed = replace(config, **values)
    _check(changed)
    return changed


def _agree_on_node_id(values: dict[str, Any]) -> None:
    """`broker.id` is an older name of `node.id`: each stands for the other, and they may not differ."""
    broker_id = values.get("broker_id", -1)
    if broker_id < 0:
        values["broker_id"] = values.get("node_id", BrokerConfig.node_id)
    elif values.setdefault("node_id", broker_id) != broker_id:
        raise ConfigError(
            f"node.id is {values['node_id']} and broker.id is {broker_id}: give one of them, or the same to both"
        )


def _check(config: BrokerConfig) -> None:
    """What no single setting can say of itself."""
    if not all(config.log_dirs or config.log_dir) or not (config.log_dirs or config.log_dir):
        raise ConfigError("log.dirs names no folder")
    if len(set(config.data_folders)) < len(config.data_folders):
        raise ConfigError("log.dirs names a folder twice")
    if 0 < config.queued_max_request_bytes < config.socket_request_max_bytes:
        raise ConfigError(
            f"queued.max.request.bytes is {config.queued_max_request_bytes}, but must be at least "
            f"socket.request.max.bytes, {config.socket_request_max_bytes}"
        )
    if config.group_min_session_timeout_ms > config.group_max_session_timeout_ms:
        raise ConfigError("group.min.session.timeout.ms must not be above group.max.session.timeout.ms")
    for name in ("session_timeout", "heartbeat_interval", "assignment_interval"):
        low, value, high = (getattr(config, f"group_consumer_{which}{name}_ms") for which in ("min_", "", "max_"))
        if not low <= value <= high:
            dotted = name.replace("_", ".")
            raise ConfigError(
                f"group.consumer.{dotted}.ms is {value}, but must be within group.consumer.min.{dotted}.ms and "
                f"group.consumer.max.{dotted}.ms: {low} to {high}"
            )
    if not config.group_consumer_assignors:
        raise ConfigError("group.consumer.assignors names no assignor")
    if "classic" not in config.group_coordinator_rebalance_protocols:
        raise ConfigError("group.coordinator.rebalance.protocols must have classic")
    if config.log_cleaner_min_compaction_lag_ms > config.log_cleaner_max_compaction_lag_ms:
        raise ConfigError("log.cleaner.min.compaction.lag.ms must not be above log.cleaner.max.compaction.lag.ms")
    if config.log_cleaner_dedupe_buffer_size <= max(config.log_cleaner_threads, 1) << 20:
        raise ConfigError("log.cleaner.dedupe.buffer.size must be more than 1048576 for each of log.cleaner.threads")
    for name in ("log_retention_ms", "log_retention_minutes", "log_retention_hours"):
        value = getattr(config, name)
        if value == 0 or (value is not None and value < -1):
            raise ConfigError(f"{name.replace('_', '.')} must be -1 for never, or above 0, not {value}")
    for name in ("log_roll_ms", "log_roll_jitter_ms", "log_flush_interval_ms"):
        value = getattr(config, name)
        if value is not None and value < (name == "log_roll_ms"):
            raise ConfigError(f"{name.replace('_', '.')} must not be {value}")
