"""Every setting of a broker that we have, one line each: Kafka's type, name, default and bounds, and our sentence.

`fixed` settings are read at start only (Kafka calls them read-only); the others may be changed while the broker runs.
Names are Kafka's with dots for underscores. What Kafka has and we do not is in `kafka_names`; what neither knows is
refused. This module knows no topic and no socket: it says what was asked for, not whether it can be had.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from moldau.config import kafka_names, older_names, security
from moldau.config.choices import COMPRESSION_TYPES, TIMESTAMP_TYPES
from moldau.config.connections_per_ip import connections_per_ip
from moldau.config.listeners import (
    PLAINTEXT,
    PROTOCOLS,
    ClientListener,
    client_listeners,
    inter_broker_listener,
    listener_warnings,
    names_of_listeners,
)
from moldau.config.providers import resolved
from moldau.config.rights import check_authorizer, super_users
from moldau.config.sasl import SaslSettings, TokenSettings
from moldau.config.security import OF_LISTENER, SECURITY, OfListeners, ProtectionSettings, overrides
from moldau.config.setting import (
    BOOLEAN,
    DOUBLE,
    INT,
    INT_MAX,
    LIST,
    LONG,
    LONG_MAX,
    PASSWORD,
    SHORT,
    STRING,
    Setting,
    settings_of,
)
from moldau.config.while_running import RATES, WHILE_RUNNING
from moldau.errors import ConfigError
from moldau.names import INTERNAL_TOPICS, guess

BY_RACK = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
BY_LEADER = "org.apache.kafka.common.replica.LeaderSelector"
_FIXED = {"read_only": True}
_NUMBER = frozenset({"node.id", "broker.id"})
"""Always given: Kafka has no default for a broker's id."""


# fmt: off
# ruff: noqa: E501 (one setting is one line)
@dataclass(frozen=True)
class BrokerConfig(ProtectionSettings, SaslSettings, TokenSettings, OfListeners):
    """The settings of one broker; every default is the value of an empty file."""

    node_id: int = INT(1, "This broker's id in its cluster; with zookeeper.connect it must be given.", low=0, **_FIXED)
    broker_id: int = INT(-1, "The older name of node.id; -1 means that node.id is used.", low=-1, **_FIXED)
    metrics_port: int = INT(-1, "The port of the metrics for Prometheus, at http://HOST:PORT/metrics; 0 is a free port, -1 means none.", low=-1, high=65535, **_FIXED)
    metrics_host: str = STRING("", "The address that metrics.port listens on; empty: every interface. Every client that reaches it can read the names of topics and groups.", **_FIXED)
    metrics_names: tuple[str, ...] = LIST(("kafka",), "The names of metrics besides moldau_*: those of Kafka's JMX exporter and of kafka_exporter (kafka), those of kminion, or both.", choices=("kafka", "kminion"), **_FIXED)
    client_metrics_topic: str = STRING("", "The topic that metrics pushed by clients go to (KIP-714); empty: none, and clients push no metrics. It is created at the first push.")
    telemetry_max_bytes: int = INT(1048576, "The most bytes of metrics in one push of a client, compressed; they may inflate to 16 times as much, up to 64 MiB.", low=1, **_FIXED)
    broker_rack: str | None = STRING(None, "This broker's rack or zone, for clients that fetch from the closest replica.", **_FIXED)
    listeners: tuple[str, ...] = LIST(("PLAINTEXT://:9092",), "The listeners, as NAME://HOST:PORT; no host means every interface, port 0 a free port.")
    advertised_listeners: tuple[str, ...] | None = LIST(None, "The addresses that the clients of each listener connect to, as NAME://HOST:PORT; the value of listeners if not set.", **_FIXED)
    listener_security_protocol_map: str = STRING("SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT", "The security protocol of each listener name, as NAME:PROTOCOL pairs.")
    inter_broker_listener_name: str | None = STRING(None, "The listener that other brokers connect to; if not set, the one with the name of security.inter.broker.protocol.", **_FIXED)
    security_inter_broker_protocol: str = STRING(PLAINTEXT, "The name of the listener that other brokers connect to, if inter.broker.listener.name is not set; only one of the two may be.", choices=PROTOCOLS, **_FIXED)
    controller_listener_names: tuple[str, ...] | None = LIST(None, "The listeners of Kafka's controllers, which are not opened; CONTROLLER if not set.", **_FIXED)
    log_dir: tuple[str, ...] = LIST(("moldau-data",), "The log folder, if log.dirs is not set.", **_FIXED)
    log_dirs: tuple[str, ...] | None = LIST(None, "The log folders, each on its own disk; a new partition goes to the folder with the fewest partitions. The metadata is in the first.", **_FIXED)
    num_recovery_threads_per_data_dir: int = INT(2, "The number of partitions of one log folder that are loaded, or recovered after a crash, at the same time.", low=1)

    zookeeper_connect: str | None = STRING(None, "The servers of the ZooKeeper that has the cluster's metadata, as HOST:PORT,HOST:PORT/PATH; the metadata is below the path. Or file:PATH, a file on a disk of this machine for a cluster of brokers that all run here.", **_FIXED)
    zookeeper_session_timeout_ms: int = INT(18000, "A broker that ZooKeeper (or, with a file, another broker) does not hear for this long counts as dead.", low=1, **_FIXED)
    zookeeper_connection_timeout_ms: int | None = INT(None, "The longest time to wait for ZooKeeper at the start; zookeeper.session.timeout.ms if not set.", low=1, **_FIXED)
    zookeeper_max_in_flight_requests: int = INT(10, "The maximum number of questions to ZooKeeper that are not answered yet. Where it is not set, 1000 is used.", low=1, **_FIXED)
    zookeeper_set_acl: bool = BOOLEAN(False, "Whether only this broker's user in ZooKeeper may change the nodes that it creates, and read the sensitive ones among them.", **_FIXED)
    zookeeper_clientCnxnSocket: str | None = STRING(None, "The class of ZooKeeper's Java client that makes connections. It has no effect here, but one without TLS is refused if zookeeper.ssl.client.enable is true.", **_FIXED)  # noqa: N815
    authorizer_class_name: str = STRING("", "Which rights clients need. Kafka's authorizers (org.apache.kafka.metadata.authorizer.StandardAuthorizer, kafka.security.authorizer.AclAuthorizer) turn access control lists (ACLs) on; empty: every client may do everything.", **_FIXED)
    super_users: str = STRING("", "The principals that may do everything, even against a DENY, as User:NAME;User:NAME.", **_FIXED)
    allow_everyone_if_no_acl_found: bool = BOOLEAN(False, "Whether every client may use a resource without any ACL.", **_FIXED)
    audit_log_file: str | None = STRING(None, "The file with a line of JSON for each request that access rights have refused; only the broker's user can read it, and it is created again if it was moved away. If not set, the lines are in the broker's log.", **_FIXED)
    cluster_secret_file: str | None = STRING(None, "A file with a secret that all brokers of the cluster share, which only they may read. Without it, every program that can read the metadata store can act as a broker.", **_FIXED)
    zookeeper_ssl_client_enable: bool = BOOLEAN(False, "Whether connections to ZooKeeper use TLS.", **_FIXED)
    zookeeper_ssl_keystore_location: str | None = STRING(None, "The file with the certificate and the key of this broker for ZooKeeper.", **_FIXED)
    zookeeper_ssl_keystore_password: str | None = PASSWORD(None, "The password of that file.", **_FIXED)
    zookeeper_ssl_keystore_type: str | None = STRING(None, "The format of that file, PEM or PKCS12; by the end of its name if not set.", **_FIXED)
    zookeeper_ssl_truststore_location: str | None = STRING(None, "The file with the certificates that ZooKeeper's servers are trusted by; the system's if not set.", **_FIXED)
    zookeeper_ssl_truststore_password: str | None = PASSWORD(None, "The password of that file.", **_FIXED)
    zookeeper_ssl_truststore_type: str | None = STRING(None, "The format of that file, PEM or PKCS12; by the end of its name if not set.", **_FIXED)
    zookeeper_ssl_protocol: str = STRING("TLSv1.2", "The version of TLS, if zookeeper.ssl.enabled.protocols is not set.", **_FIXED)
    zookeeper_ssl_enabled_protocols: tuple[str, ...] | None = LIST(None, "The versions of TLS that may be used.", **_FIXED)
    zookeeper_ssl_cipher_suites: tuple[str, ...] | None = LIST(None, "The cipher suites of TLS 1.2 that may be used, by Java's names or OpenSSL's; all that Python allows if not set.", **_FIXED)
    zookeeper_ssl_endpoint_identification_algorithm: str = STRING("HTTPS", "HTTPS: the certificate of a ZooKeeper server must name its host. Empty: it need not.", **_FIXED)

    socket_request_max_bytes: int = INT(104857600, "The largest request; a connection that announces a larger one is closed.", low=1, **_FIXED)
    socket_send_buffer_bytes: int = INT(102400, "The send buffer of a connection (SO_SNDBUF); -1 leaves the operating system's. Where it is not set, 262144 is used.", **_FIXED)
    socket_receive_buffer_bytes: int = INT(102400, "The receive buffer of a connection (SO_RCVBUF); -1 leaves the operating system's, which is used where it is not set.", **_FIXED)
    queued_max_request_bytes: int = LONG(-1, "The memory for requests of all connections that are incomplete or wait for their turn; when it is short, the slowest connections are closed. If the value is not above 0, the larger of 268435456 and socket.request.max.bytes is used.", **_FIXED)
    max_connections: int = INT(INT_MAX, "The maximum number of open connections; the next ones wait until others end, or, on the listener for brokers if it is one of several, the least recently used one of another listener is closed.", low=0)
    max_connections_per_ip: int = INT(INT_MAX, "The maximum number of open connections from one IP address.", low=0)
    max_connections_per_ip_overrides: str = STRING("", "max.connections.per.ip of some addresses, as ADDRESS:NUMBER pairs; localhost stands for 127.0.0.1 and ::1, other host names are refused.")
    max_connection_creation_rate: int = INT(INT_MAX, "The maximum number of new connections in a second; the next ones wait.", low=0)
    quota_window_num: int = INT(11, "The number of samples over which the rates of quotas and of new connections are measured.", low=1, **_FIXED)
    quota_window_size_seconds: int = INT(1, "The length of a sample, see quota.window.num.", low=1, **_FIXED)
    controller_quota_window_num: int = INT(11, "The number of samples of the quota on changes of topics: what its rate allows in all of them together may be changed at once.", low=1, **_FIXED)
    controller_quota_window_size_seconds: int = INT(1, "The length of a sample, see controller.quota.window.num.", low=1, **_FIXED)
    connections_max_idle_ms: int = LONG(600000, "A connection without a request for this long is closed.", **_FIXED)

    max_decompressed_message_bytes: int = INT(2147483639, "The largest record that is accepted in a compressed batch, in bytes before compression.", low=1, high=2147483639)
    message_max_bytes: int = INT(1048588, "The largest record batch that is accepted, after compression.", low=0)
    compression_type: str = STRING("producer", "The compression of stored batches: the producer's, or always the same one.", choices=COMPRESSION_TYPES)
    compression_gzip_level: int = INT(-1, "The gzip level, where the broker compresses.", low=1, high=9, also=-1)
    compression_lz4_level: int = INT(9, "The lz4 level, where the broker compresses.", low=1, high=17)
    compression_zstd_level: int = INT(3, "The zstd level, where the broker compresses.", low=-131072, high=22)
    min_insync_replicas: int = INT(1, "The minimum number of in-sync replicas; with fewer, a Produce with acks=all is refused.", low=1)
    unclean_leader_election_enable: bool = BOOLEAN(False, "Whether a replica that is not in sync may become the leader if no other is left, which loses records.")

    num_partitions: int = INT(1, "The number of partitions of a new topic if the request does not say.", low=1, **_FIXED)
    default_replication_factor: int = INT(1, "The replication factor of a new topic if the request does not say.", **_FIXED)
    auto_create_topics_enable: bool = BOOLEAN(True, "Whether a request for a topic's metadata creates the topic.", **_FIXED)
    delete_topic_enable: bool = BOOLEAN(True, "Whether topics can be deleted.", **_FIXED)

    log_segment_bytes: int = INT(1073741824, "The maximum size of a segment; the next append beyond it starts a new one.", low=1048576)
    log_roll_ms: int | None = LONG(None, "The maximum age of a segment's first record before a new segment starts; log.roll.hours if not set.")
    log_roll_hours: int = INT(168, "log.roll.ms in hours.", low=1, **_FIXED)
    log_roll_jitter_ms: int | None = LONG(None, "The maximum random time subtracted from log.roll.ms, so that segments do not all roll together; log.roll.jitter.hours if not set.")
    log_roll_jitter_hours: int = INT(0, "log.roll.jitter.ms in hours.", low=0, **_FIXED)
    log_retention_ms: int | None = LONG(None, "Records older than this are deleted; -1 means never; log.retention.minutes if not set.")
    log_retention_minutes: int | None = INT(None, "log.retention.ms in minutes; log.retention.hours if not set.", **_FIXED)
    log_retention_hours: int = INT(168, "log.retention.ms in hours.", **_FIXED)
    log_retention_bytes: int = LONG(-1, "If a partition is larger than this, its oldest segments are deleted; -1 means no limit.")
    log_retention_check_interval_ms: int = LONG(300000, "The interval between checks for segments to delete.", low=1, **_FIXED)
    log_initial_task_delay_ms: int = LONG(30000, "The time from the start to the first check for segments to delete.", low=0, **_FIXED)
    log_index_size_max_bytes: int = INT(10485760, "The initial size of an index; a full index starts a new segment.", low=4)
    log_index_interval_bytes: int = INT(4096, "The number of bytes of records between two index entries, approximately.", low=0)
    log_segment_delete_delay_ms: int = LONG(60000, "The time that a deleted file stays on the disk under another name.", low=0)
    log_flush_interval_messages: int = LONG(LONG_MAX, "The number of records after which a log is flushed to the disk.", low=1)
    log_flush_interval_ms: int | None = LONG(None, "The longest time before a record is flushed to the disk; log.flush.scheduler.interval.ms if not set.")
    log_flush_scheduler_interval_ms: int = LONG(LONG_MAX, "The interval between checks for records to flush to the disk.", **_FIXED)
    log_flush_offset_checkpoint_interval_ms: int = INT(60000, "The interval at which recovery points (the offsets up to which logs are flushed) are saved.", low=0, **_FIXED)
    log_flush_start_offset_checkpoint_interval_ms: int = INT(60000, "The interval at which log start offsets are saved.", low=0, **_FIXED)
    replica_lag_time_max_ms: int = LONG(30000, "A replica that has not caught up with its leader for this long leaves the in-sync replicas; a broker that does not contact the controller for this long loses its leaderships.", **_FIXED)
    controlled_shutdown_enable: bool = BOOLEAN(True, "Whether a broker of a cluster hands its partitions to other leaders before it stops.", **_FIXED)
    controlled_shutdown_max_retries: int = INT(3, "A stopping broker waits at most this many times controlled.shutdown.retry.backoff.ms for other replicas to take over its partitions.", **_FIXED)
    controlled_shutdown_retry_backoff_ms: int = LONG(5000, "See controlled.shutdown.max.retries.", **_FIXED)
    replica_fetch_max_bytes: int = INT(1048576, "The most bytes of one partition that a follower asks its leader for at a time; a larger batch is sent whole.", low=0, **_FIXED)
    replica_fetch_response_max_bytes: int = INT(10485760, "The most bytes of all partitions together that a follower asks a leader for at a time; a larger batch is sent whole.", low=0, **_FIXED)
    replica_fetch_min_bytes: int = INT(1, "The number of bytes that a leader waits for before it answers a follower, at most for replica.fetch.wait.max.ms.", **_FIXED)
    replica_fetch_wait_max_ms: int = INT(500, "The longest time that a follower's request waits at its leader if there is nothing to fetch; at most replica.lag.time.max.ms. Not more than a sixth of zookeeper.session.timeout.ms is used.", low=0, **_FIXED)
    replica_fetch_backoff_ms: int = INT(1000, "The pause of a follower after an error of its leader, or of a partition.", low=0, **_FIXED)
    replica_socket_timeout_ms: int = INT(30000, "The longest time that a follower waits for an answer before it connects to its leader again; not more than 10 s above replica.fetch.wait.max.ms are used.", low=1, **_FIXED)
    replica_selector_class: str | None = STRING(None, f"Which replica a consumer reads from: {BY_RACK} sends a consumer that names its rack (client.rack) to an in-sync replica there, see broker.rack; {BY_LEADER}, or not set: always the leader.", **_FIXED)
    replication_quota_window_num: int = INT(11, "The number of samples over which the rates of throttled replication are measured.", low=1, **_FIXED)
    replication_quota_window_size_seconds: int = INT(1, "The length of a sample, see replication.quota.window.num.", low=1, **_FIXED)
    auto_leader_rebalance_enable: bool = BOOLEAN(True, "Whether the controller moves leadership back to preferred replicas by itself.", **_FIXED)
    auto_leader_rebalance_in_sync_enable: bool = BOOLEAN(False, "Whether a broker that is in sync with all its partitions leads those that it is preferred for within seconds, for example after a restart; otherwise at the next check. It needs auto.leader.rebalance.enable.", **_FIXED)
    leader_imbalance_check_interval_seconds: int = LONG(300, "The interval at which the controller checks for partitions that their preferred replica does not lead.", low=1, **_FIXED)
    leader_imbalance_per_broker_percentage: int = INT(10, "If a broker lacks the leadership of more than this percentage of its preferred partitions, they are moved back to it.", low=0, **_FIXED)
    replica_high_watermark_checkpoint_interval_ms: int = LONG(5000, "The interval at which high watermarks are saved.", **_FIXED)
    log_preallocate: bool = BOOLEAN(False, "Whether the space of a new segment is allocated at once.")
    log_message_timestamp_type: str = STRING("CreateTime", "Whether a record's timestamp is the producer's or the time of the append.", choices=TIMESTAMP_TYPES)
    log_message_timestamp_before_max_ms: int = LONG(LONG_MAX, "A record whose timestamp is further in the past than this is refused.", low=0)
    log_message_timestamp_after_max_ms: int = LONG(3600000, "A record whose timestamp is further in the future than this is refused.", low=0)
    log_cleanup_policy: tuple[str, ...] = LIST(("delete",), "Whether old records are deleted, compacted by key, or both.", choices=("compact", "delete"))
    log_cleaner_enable: bool = BOOLEAN(True, "Whether topics with cleanup.policy=compact are compacted.", **_FIXED)
    log_cleaner_threads: int = INT(1, "The number of logs that are compacted at the same time.", low=0)
    log_cleaner_dedupe_buffer_size: int = LONG(134217728, "The memory for the keys of logs being compacted, 24 bytes for each key; all cleaner threads share it.")
    log_cleaner_io_buffer_load_factor: float = DOUBLE(0.9, "How full the memory for keys may become; a higher value takes more keys at once but is slower.")
    log_cleaner_io_buffer_size: int = INT(524288, "The memory for reading and writing during compaction.", low=0)
    log_cleaner_io_max_bytes_per_second: float = DOUBLE(1.7976931348623157e308, "The maximum rate at which compaction reads and writes, in bytes per second.")
    log_cleaner_backoff_ms: int = LONG(15000, "The pause of compaction when no log is dirty enough.", low=0)
    log_cleaner_delete_retention_ms: int = LONG(86400000, "The time that compaction keeps tombstones (records that delete a key).", low=0)
    log_cleaner_min_compaction_lag_ms: int = LONG(0, "The minimum time before a record can be compacted.", low=0)
    log_cleaner_max_compaction_lag_ms: int = LONG(LONG_MAX, "The maximum time before a record is compacted.", low=1)
    log_cleaner_min_cleanable_ratio: float = DOUBLE(0.5, "The dirty share of a log from which it is compacted.", low=0, high=1)
    log_remote_copy_lag_bytes: int = LONG(-1, "The bytes of a tiered topic that may wait to be copied to remote storage; -1 means no limit.", low=-1)
    log_remote_copy_lag_ms: int = LONG(0, "The time that a tiered topic waits before it copies a segment to remote storage.", low=-1)
    log_local_retention_ms: int = LONG(-2, "The time that tiered topics keep records on the local disk; -2 means retention.ms.", low=-2)
    log_local_retention_bytes: int = LONG(-2, "The bytes that tiered topics keep on the local disk; -2 means retention.bytes.", low=-2)

    fetch_max_bytes: int = INT(57671680, "The maximum bytes of records in the reply to one Fetch.", low=1024, **_FIXED)
    max_incremental_fetch_session_cache_slots: int = INT(1000, "The maximum number of fetch sessions; a client without one names all its partitions in every Fetch.", low=0, **_FIXED)
    max_request_partition_size_limit: int = INT(2000, "The maximum number of partitions in the reply to one DescribeTopicPartitions.", low=1, **_FIXED)
    producer_id_expiration_ms: int = INT(86400000, "A producer id that is unused for this long is forgotten.", low=1)
    producer_id_expiration_check_interval_ms: int = INT(600000, "The interval between checks for unused producer ids.", low=1, **_FIXED)

    group_min_session_timeout_ms: int = INT(6000, "The shortest session timeout that a group member may request.", **_FIXED)
    group_max_session_timeout_ms: int = INT(1800000, "The longest session timeout that a group member may request.", **_FIXED)
    group_initial_rebalance_delay_ms: int = INT(0, "The time that an empty classic group waits for more members before its first assignment; 3000 in Kafka.", **_FIXED)
    group_max_size: int = INT(INT_MAX, "The maximum number of members of a classic group.", low=1, **_FIXED)
    group_coordinator_rebalance_protocols: tuple[str, ...] = LIST(("classic", "consumer"), "The group protocols that are enabled.", choices=("classic", "consumer"), **_FIXED)
    group_consumer_session_timeout_ms: int = INT(45000, "A member of a consumer group without a heartbeat for this long is removed.", low=1, **_FIXED)
    group_consumer_min_session_timeout_ms: int = INT(45000, "The lowest allowed group.consumer.session.timeout.ms.", low=1, **_FIXED)
    group_consumer_max_session_timeout_ms: int = INT(60000, "The highest allowed group.consumer.session.timeout.ms.", low=1, **_FIXED)
    group_consumer_heartbeat_interval_ms: int = INT(5000, "The interval at which members of consumer groups send heartbeats.", low=1, **_FIXED)
    group_consumer_min_heartbeat_interval_ms: int = INT(5000, "The lowest allowed group.consumer.heartbeat.interval.ms.", low=1, **_FIXED)
    group_consumer_max_heartbeat_interval_ms: int = INT(15000, "The highest allowed group.consumer.heartbeat.interval.ms.", low=1, **_FIXED)
    group_consumer_assignment_interval_ms: int = INT(1000, "The minimum time between two assignments of a consumer group, even if members join or leave.", low=0)
    group_consumer_min_assignment_interval_ms: int = INT(0, "The lowest allowed group.consumer.assignment.interval.ms.", low=0, **_FIXED)
    group_consumer_max_assignment_interval_ms: int = INT(15000, "The highest allowed group.consumer.assignment.interval.ms.", low=0, **_FIXED)
    group_consumer_max_size: int = INT(INT_MAX, "The maximum number of members of a consumer group.", low=1, **_FIXED)
    group_consumer_migration_policy: str = STRING("bidirectional", "Whether a classic group with members becomes a consumer group when a member of the consumer protocol joins (upgrade), and a classic group again when the last of these leaves (downgrade).", choices=("bidirectional", "upgrade", "downgrade", "disabled"), **_FIXED)
    group_consumer_assignors: tuple[str, ...] = LIST(("uniform", "range"), "The assignors of consumer groups; the first is used unless members ask for another.", choices=("uniform", "range"), **_FIXED)
    offset_metadata_max_bytes: int = INT(4096, "The maximum size of the metadata committed with an offset.", **_FIXED)
    offsets_commit_timeout_ms: int = INT(5000, "The longest time that a commit of offsets, or another change of a group, waits until all in-sync replicas have it.", low=1, **_FIXED)
    offsets_load_buffer_size: int = INT(5242880, "The bytes of the offsets topic that are read at once when groups are loaded.", low=1, **_FIXED)
    offsets_retention_minutes: int = INT(10080, "The committed offsets of a group that is empty for this long are deleted.", low=1, **_FIXED)
    offsets_retention_check_interval_ms: int = LONG(600000, "The interval between checks for offsets to delete.", low=1, **_FIXED)
    offsets_topic_num_partitions: int = INT(50, "The number of partitions of the offsets topic when it is created.", low=1, **_FIXED)
    offsets_topic_replication_factor: int = SHORT(3, "The replication factor of the offsets topic, which is created once this many brokers are running. A standalone broker makes one replica.", low=1, **_FIXED)
    offsets_topic_segment_bytes: int = INT(104857600, "The segment.bytes of the offsets topic.", low=1, **_FIXED)

    transaction_max_timeout_ms: int = INT(900000, "The longest transaction timeout that a producer may request.", low=1, **_FIXED)
    transactional_id_expiration_ms: int = INT(604800000, "A transactional id that is unused for this long is forgotten.", low=1, **_FIXED)
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = INT(10000, "The interval between checks for transactions to abort because they timed out.", low=1, **_FIXED)
    transaction_remove_expired_transaction_cleanup_interval_ms: int = INT(3600000, "The interval between checks for transactional ids to forget.", low=1, **_FIXED)
    transaction_partition_verification_enable: bool = BOOLEAN(True, "Whether the first batch of a transaction in a partition is verified with the coordinator, for clients that add partitions to their transactions themselves.")
    add_partitions_to_txn_retry_backoff_ms: int = INT(20, "The pause before a Produce asks the coordinator again while the producer's previous transaction is being completed.", low=1, **_FIXED)
    add_partitions_to_txn_retry_backoff_max_ms: int = INT(100, "The time for which a Produce asks the coordinator again before the client must retry.", low=0, **_FIXED)
    transaction_state_log_load_buffer_size: int = INT(5242880, "The bytes of the transaction topic that are read at once when it is loaded.", low=1, **_FIXED)
    transaction_state_log_min_isr: int = INT(2, "The min.insync.replicas of the transaction topic, at most its number of replicas.", low=1, **_FIXED)
    transaction_state_log_num_partitions: int = INT(50, "The number of partitions of the transaction topic when it is created.", low=1, **_FIXED)
    transaction_state_log_replication_factor: int = SHORT(3, "The replication factor of the transaction topic, which is created once this many brokers are running. A standalone broker makes one replica.", low=1, **_FIXED)
    transaction_state_log_segment_bytes: int = INT(104857600, "The segment.bytes of the transaction topic.", low=1, **_FIXED)

    given: frozenset[str] = _NUMBER
    """The names that were set, even to their defaults: DescribeConfigs distinguishes the two."""

    leader_replication_throttled_rate: int | None = None
    follower_replication_throttled_rate: int | None = None
    leader_reassignment_throttled_rate: int | None = None
    follower_reassignment_throttled_rate: int | None = None
    replica_alter_log_dirs_io_max_bytes_per_second: int | None = None
    """All in bytes a second, None for no limit; they are only set while the broker runs (`while_running.RATES`)."""

    @property
    def client_listeners(self) -> tuple[ClientListener, ...]:
        """The listeners to open, in the order of `listeners`, at least one. Raises `ConfigError`."""
        return client_listeners(self)

    @property
    def inter_broker_listener(self) -> str:
        """The name of the listener that other brokers connect to."""
        return inter_broker_listener(self)

    @property
    def brokers_use_tls(self) -> bool:
        """Whether the listener that other brokers connect to has TLS."""
        name = self.inter_broker_listener
        return any(one.name == name and one.protocol.endswith("SSL") for one in self.client_listeners)

    @property
    def is_guarded(self) -> bool:
        """Whether any part of security is configured: else none of it is imported."""
        return bool(self.authorizer_class_name) or any(one.protocol != PLAINTEXT for one in self.client_listeners)

    def of_listener(self, name: str) -> "BrokerConfig":
        """These settings with the values that the listener has for itself."""
        own = self.own_settings.get(name)
        return replace(self, **own) if own else self

    def of_mechanism(self, listener: str, mechanism: str) -> "BrokerConfig":
        """These settings with the values that the listener has for itself, or for one mechanism of SASL."""
        own = self.own_settings.get(f"{listener}/{mechanism}")
        return replace(self.of_listener(listener), **own) if own else self.of_listener(listener)

    @property
    def privileged(self) -> frozenset[str]:
        """The principals of super.users. Raises `ConfigError`."""
        return super_users(self)

    @property
    def reads_near(self) -> bool:
        """Whether consumers that name a rack read from a replica there."""
        return self.replica_selector_class == BY_RACK

    @property
    def data_folders(self) -> tuple[str, ...]:
        return self.log_dirs or self.log_dir
# fmt: on


_OF_BROKER = settings_of(BrokerConfig)
SETTINGS: dict[str, Setting] = {n: s for n, s in _OF_BROKER.items() if n not in SECURITY} | SECURITY


def broker_config(properties: Mapping[str, str]) -> tuple[BrokerConfig, list[str]]:
    """The settings in `properties`, and warnings for people. Raises `ConfigError` for unknown names and invalid values."""
    values: dict[str, Any] = {}
    absent, of_listeners = [], {}
    properties, older = older_names.current(resolved(properties))
    for name, text in properties.items():
        setting = SETTINGS.get(name)
        if kafka_names.is_refused(name, text):
            raise ConfigError(kafka_names.REFUSED[name])
        if setting is not None:
            values[setting.field] = setting.parse(text)
        elif name.startswith(OF_LISTENER):
            of_listeners[name] = text
        elif name in RATES:
            older.append(
                f"{name} has no effect in a file: set it with `moldau configs alter broker` while the broker runs"
            )
        elif kafka_names.known(name):
            absent.append(name)
        else:
            names = [*SETTINGS, *kafka_names.NAMES, *older_names.NAMES]
            raise ConfigError(f"unknown setting {name!r}{guess(name, names)}")
    given = _NUMBER.union(name for name in properties if name in SETTINGS)
    _agree_on_node_id(values)
    config = BrokerConfig(**values, given=given)
    _check(config)
    if of_listeners:
        own, without_effect = overrides(of_listeners, _is_known, *names_of_listeners(config))
        config, absent = replace(config, own_settings=own), absent + without_effect
    warnings = [f"these Kafka settings have no effect here: {', '.join(absent)}"] if absent else []
    client_listeners(config)
    return config, older + warnings + listener_warnings(config)


def _is_known(name: str) -> bool:
    return name in SETTINGS or kafka_names.known(name)


def with_changes(config: BrokerConfig, changes: Mapping[str, str]) -> BrokerConfig:
    """The settings after some were changed; unknown names have no effect. Raises `ConfigError`."""
    values: dict[str, Any] = {
        SETTINGS[n].field: SETTINGS[n].parse(text) for n, text in changes.items() if n in SETTINGS
    }
    for name in changes.keys() & WHILE_RUNNING.keys():
        value = WHILE_RUNNING[name].parse(changes[name])
        if name in RATES:
            values[RATES[name].field] = value
    if any(map(security.changes_listener, changes)):
        values["own_settings"] = security.changed(config.own_settings, changes, names_of_listeners(config)[0])
    changed = replace(config, **values)
    _check(changed)
    return changed


def _agree_on_node_id(values: dict[str, Any]) -> None:
    """`broker.id` is an older name of `node.id`: each stands for the other, and they may not differ."""
    broker_id = values.get("broker_id", -1)
    if broker_id < 0:
        if "node_id" not in values and values.get("zookeeper_connect"):
            raise ConfigError("a broker of a cluster needs an id that no other one has: give it with broker.id=N")
        values["broker_id"] = values.get("node_id", BrokerConfig.node_id)
    elif values.setdefault("node_id", broker_id) != broker_id:
        raise ConfigError(
            f"node.id is {values['node_id']} and broker.id is {broker_id}: give one of them, or the same to both"
        )


def _check(config: BrokerConfig) -> None:
    """Check the rules that concern more than one setting."""
    if not all(config.log_dirs or config.log_dir) or not (config.log_dirs or config.log_dir):
        raise ConfigError("log.dirs names no folder")
    if len(set(config.data_folders)) < len(config.data_folders):
        raise ConfigError("log.dirs names a folder twice")
    check_authorizer(config)
    if config.client_metrics_topic in INTERNAL_TOPICS:
        raise ConfigError(f"client.metrics.topic is {config.client_metrics_topic}, which has other records")
    if 0 < config.queued_max_request_bytes < config.socket_request_max_bytes:
        raise ConfigError(
            f"queued.max.request.bytes is {config.queued_max_request_bytes}, but must be at least "
            f"socket.request.max.bytes, {config.socket_request_max_bytes}"
        )
    if config.replica_fetch_wait_max_ms > min(config.replica_lag_time_max_ms, config.replica_socket_timeout_ms):
        raise ConfigError(
            "replica.fetch.wait.max.ms must not be above replica.lag.time.max.ms or replica.socket.timeout.ms"
        )
    if config.replica_selector_class not in (None, "", BY_LEADER, BY_RACK):
        raise ConfigError(
            f"replica.selector.class is {config.replica_selector_class}, and no class of your own can be loaded here: "
            f"set {BY_RACK}, or remove it to read from leaders"
        )
    connections_per_ip(config.max_connections_per_ip_overrides)
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
