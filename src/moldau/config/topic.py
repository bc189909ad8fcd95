"""Every setting of a topic, one line each, and how a topic gets its values: its own, else the broker's, else the
default.

All of Kafka 4.4's names are here, so that DescribeConfigs lists what clients expect; tiered storage is
refused. `OURS` are settings that Kafka does not have: DescribeConfigs lists them only where they are set.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from moldau.config.choices import COMPRESSION_TYPES, TIMESTAMP_TYPES
from moldau.config.inheriting import all_inherited, own_values
from moldau.config.setting import (
    BOOLEAN,
    DOUBLE,
    INT,
    INT_MAX,
    LIST,
    LONG,
    LONG_MAX,
    STRING,
    Setting,
    settings_of,
)
from moldau.errors import ConfigError

if TYPE_CHECKING:  # a log needs the settings of topics, and none of the hundreds of a broker
    from moldau.config.broker import BrokerConfig


# fmt: off
# ruff: noqa: E501 (one setting is one line)
@dataclass(frozen=True)
class TopicConfig:
    """The settings of one topic."""

    cleanup_policy: tuple[str, ...] = LIST(("delete",), "Whether old records are deleted, compacted by key, or both.", choices=("compact", "delete"), broker_names=("log.cleanup.policy",))
    compression_type: str = STRING("producer", "The compression of stored batches: the producer's, or always the same one.", choices=COMPRESSION_TYPES, broker_names=("compression.type",))
    compression_gzip_level: int = INT(-1, "The gzip level, where the broker compresses.", low=1, high=9, also=-1, broker_names=("compression.gzip.level",))
    compression_lz4_level: int = INT(9, "The lz4 level, where the broker compresses.", low=1, high=17, broker_names=("compression.lz4.level",))
    compression_zstd_level: int = INT(3, "The zstd level, where the broker compresses.", low=-131072, high=22, broker_names=("compression.zstd.level",))
    delete_retention_ms: int = LONG(86400000, "The time that compaction keeps tombstones (records that delete a key).", low=0, broker_names=("log.cleaner.delete.retention.ms",))
    errors_deadletterqueue_group_enable: bool = BOOLEAN(False, "Whether share groups may write records that they cannot process to this topic; this broker has no share groups.")
    file_delete_delay_ms: int = LONG(60000, "The time that a deleted file stays on the disk under another name.", low=0, broker_names=("log.segment.delete.delay.ms",))
    flush_messages: int = LONG(LONG_MAX, "The number of records after which the log is flushed to the disk.", low=1, broker_names=("log.flush.interval.messages",))
    flush_ms: int = LONG(LONG_MAX, "The longest time before a record is flushed to the disk.", low=0, broker_names=("log.flush.interval.ms", "log.flush.scheduler.interval.ms"))
    follower_replication_throttled_replicas: tuple[str, ...] = LIST((), "The throttled follower replicas, as PARTITION:BROKER pairs or *.")
    index_interval_bytes: int = INT(4096, "The number of bytes of records between two index entries, approximately.", low=0, broker_names=("log.index.interval.bytes",))
    leader_replication_throttled_replicas: tuple[str, ...] = LIST((), "The throttled leader replicas, as PARTITION:BROKER pairs or *.")
    local_retention_bytes: int = LONG(-2, "The bytes that a tiered topic keeps on the local disk; -2 means retention.bytes.", low=-2, broker_names=("log.local.retention.bytes",))
    local_retention_ms: int = LONG(-2, "The time that a tiered topic keeps records on the local disk; -2 means retention.ms.", low=-2, broker_names=("log.local.retention.ms",))
    max_compaction_lag_ms: int = LONG(LONG_MAX, "The maximum time before a record is compacted.", low=1, broker_names=("log.cleaner.max.compaction.lag.ms",))
    max_decompressed_message_bytes: int = INT(2147483639, "The largest record that is accepted in a compressed batch, in bytes before compression.", low=1, high=2147483639, broker_names=("max.decompressed.message.bytes",))
    max_message_bytes: int = INT(1048588, "The largest record batch that is accepted, after compression.", low=0, broker_names=("message.max.bytes",))
    message_timestamp_after_max_ms: int = LONG(3600000, "A record whose timestamp is further in the future than this is refused.", low=0, broker_names=("log.message.timestamp.after.max.ms",))
    message_timestamp_before_max_ms: int = LONG(LONG_MAX, "A record whose timestamp is further in the past than this is refused.", low=0, broker_names=("log.message.timestamp.before.max.ms",))
    message_timestamp_type: str = STRING("CreateTime", "Whether a record's timestamp is the producer's or the time of the append.", choices=TIMESTAMP_TYPES, broker_names=("log.message.timestamp.type",))
    min_cleanable_dirty_ratio: float = DOUBLE(0.5, "The dirty share of the log from which it is compacted.", low=0, high=1, broker_names=("log.cleaner.min.cleanable.ratio",))
    min_compaction_lag_ms: int = LONG(0, "The minimum time before a record can be compacted.", low=0, broker_names=("log.cleaner.min.compaction.lag.ms",))
    min_insync_replicas: int = INT(1, "The minimum number of in-sync replicas; with fewer, a Produce with acks=all is refused.", low=1, broker_names=("min.insync.replicas",))
    mirror_source: str = STRING("", "The topic of another cluster that this one mirrors, as CLUSTER_ID/TOPIC_ID; while it is set, only `moldau mirror` writes here. Ours; listed where it is set.")
    preallocate: bool = BOOLEAN(False, "Whether the space of a new segment is allocated at once.", broker_names=("log.preallocate",))
    remote_copy_lag_bytes: int = LONG(-1, "The bytes of a tiered topic that may wait to be copied to remote storage; -1 means no limit.", low=-1, broker_names=("log.remote.copy.lag.bytes",))
    remote_copy_lag_ms: int = LONG(0, "The time that a tiered topic waits before it copies a segment to remote storage.", low=-1, broker_names=("log.remote.copy.lag.ms",))
    remote_log_copy_disable: bool = BOOLEAN(False, "Whether copying segments to remote storage is switched off.")
    remote_log_delete_on_disable: bool = BOOLEAN(False, "Whether remote data is deleted when remote storage is switched off.")
    remote_storage_enable: bool = BOOLEAN(False, "Whether the topic uses remote storage, which this broker does not support.")
    retention_bytes: int = LONG(-1, "If a partition is larger than this, its oldest segments are deleted; -1 means no limit.", broker_names=("log.retention.bytes",))
    retention_ms: int = LONG(604800000, "Records whose timestamps are older than this are deleted; -1 means never.", low=-1, broker_names=("log.retention.ms", "log.retention.minutes", "log.retention.hours"))
    segment_bytes: int = INT(1073741824, "The maximum size of a segment; the next append beyond it starts a new one.", low=1048576, broker_names=("log.segment.bytes",))
    segment_index_bytes: int = INT(10485760, "The initial size of an index; a full index starts a new segment.", low=4, broker_names=("log.index.size.max.bytes",))
    segment_jitter_ms: int = LONG(0, "The maximum random time subtracted from segment.ms, so that segments do not all roll together.", low=0, broker_names=("log.roll.jitter.ms", "log.roll.jitter.hours"))
    segment_ms: int = LONG(604800000, "The maximum age of a segment's first record before a new segment starts.", low=1, broker_names=("log.roll.ms", "log.roll.hours"))
    unclean_leader_election_enable: bool = BOOLEAN(False, "Whether a replica that is not in sync may become the leader if no other is left, which loses records.", broker_names=("unclean.leader.election.enable",))

    @property
    def compacts(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def deletes(self) -> bool:
        return "delete" in self.cleanup_policy
# fmt: on


TOPIC_SETTINGS: dict[str, Setting] = settings_of(TopicConfig)
OURS = ("mirror.source",)
"""Topic settings of ours. A request that resets all settings that it does not name leaves these as they are."""
_SOURCE = re.compile(r"[A-Za-z0-9_-]{1,64}/[A-Za-z0-9_-]{22}")


def topic_config(broker: "BrokerConfig", overrides: Mapping[str, str], *, judge: bool = True) -> TopicConfig:
    """The settings of a topic with `overrides` of its own. Raises `ConfigError` for unknown names and bad values.

    Without `judge` the overrides were accepted once, and the broker's settings may have changed since: what does not fit
    them any more stays, and unknown names have no effect.
    """
    if not overrides:
        return _defaults(broker)
    config = replace(_defaults(broker), **own_values(TOPIC_SETTINGS, overrides, "topic", judge=judge))
    if judge:
        _check(config)
    return config


@lru_cache(maxsize=8)
def _defaults(broker: "BrokerConfig") -> TopicConfig:
    """The settings of a topic without overrides."""
    return TopicConfig(**all_inherited(TOPIC_SETTINGS, broker))


def _check(config: TopicConfig) -> None:
    """Check the rules that concern more than one setting."""
    if config.min_compaction_lag_ms > config.max_compaction_lag_ms:
        raise ConfigError("min.compaction.lag.ms must not be above max.compaction.lag.ms")
    if config.remote_storage_enable:
        raise ConfigError("remote.storage.enable cannot be true: this broker has no remote storage")
    if config.mirror_source and not _SOURCE.fullmatch(config.mirror_source):
        raise ConfigError("mirror.source must be CLUSTER_ID/TOPIC_ID, as moldau mirror sets it")
    for name in ("follower_replication_throttled_replicas", "leader_replication_throttled_replicas"):
        replicas: tuple[str, ...] = getattr(config, name)
        if replicas != ("*",) and not all(_is_replica(replica) for replica in replicas):
            raise ConfigError(f"{name.replace('_', '.')} must be a list of PARTITION:BROKER, or *")


def _is_replica(text: str) -> bool:
    partition, colon, broker = text.partition(":")
    return bool(colon) and all(
        part.isascii() and part.isdigit() and int(part) <= INT_MAX for part in (partition, broker)
    )
