"""The settings of a producer."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from moldau.client.producing.serializers import Serializer as Serializer
from moldau.client.settings import INT32_MAX, one_of, setting, settings
from moldau.client.zookeeper.zookeeper_settings import ZooKeeperSettings
from moldau.errors import ConfigError
from moldau.records.compression import CODECS

Partitioner = Callable[[str, bytes | None, int], int]
AS_JAVA = "murmur2_random"
"""librdkafka's name of what is done without a partitioner: keys by murmur2, others anywhere."""
ROUND_ROBIN = "round_robin"
_BY_FUNCTION = "to put keys where it does, give a function(topic, key, partitions)"
PARTITIONERS_OF_OTHERS = {
    "random": "partitioner_ignore_keys=True spreads all records, with a key or without",
    "murmur2": f"it hashes keys as {AS_JAVA} does, the default here, and sends all other records to one partition",
    "consistent": f"it hashes keys by CRC-32: {_BY_FUNCTION} that returns zlib.crc32(key or b'') % partitions",
    "consistent_random": f"it hashes keys by CRC-32: {_BY_FUNCTION} that returns zlib.crc32(key) % partitions for them",
    "fnv1a": f"it hashes keys by FNV-1a: {_BY_FUNCTION}",
    "fnv1a_random": f"it hashes keys by FNV-1a: {_BY_FUNCTION}",
}
"""librdkafka's partitioners that ours is not -> what to give."""
IDEMPOTENT_IN_FLIGHT_MAX = 5
JAVA_SERIALIZERS = dict.fromkeys(
    ("ByteArraySerializer", "ByteBufferSerializer", "BytesSerializer", "StringSerializer"), None
)
"""Java's serializers of what is sent without one here."""


@settings
class ProducerSettings(ZooKeeperSettings):
    """The settings of a producer; sizes are in bytes, times in ms."""

    owner: ClassVar[str] = "the producer"

    acks: str | int = setting(default="all", about="Which replicas must have a record: all, 1 (the leader) or 0.")
    enable_idempotence: bool | None = setting(
        default=None, about="Retries never duplicate or reorder records; by default with acks=all."
    )
    compression_type: str = setting(default="none", about="none, gzip, snappy, lz4 or zstd.")
    batch_size: int = setting(default=128 * 1024, low=1, about="The largest batch that `send` fills.")
    column_batch_size: int = setting(default=1_000_000, low=1, about="The largest batch that `send_table` fills.")
    linger_ms: int = setting(default=5, low=0, about="A batch that is not full waits this long for more records.")
    buffer_memory: int = setting(
        default=64 * 1024 * 1024, low=1, about="The most that all records that are not acknowledged may take up."
    )
    max_request_size: int = setting(default=1024 * 1024, low=1, about="The largest request with several batches.")
    max_block_ms: int = setting(default=60_000, low=0, about="`send` waits this long for metadata or room.")
    delivery_timeout_ms: int = setting(default=120_000, low=1, about="A record that takes longer has failed.")

    max_in_flight_requests_per_connection: int = setting(
        default=5, low=1, about="Requests to one broker that wait for their answers; at most 5 with idempotence."
    )
    retries: int = setting(
        default=INT32_MAX, low=0, about="A batch is sent again this many times, within delivery_timeout_ms."
    )
    transactional_id: str | None = setting(
        default=None, about="The name under which transactions survive a restart; makes the producer transactional."
    )
    transaction_timeout_ms: int = setting(
        default=60_000, low=1, about="The coordinator aborts a transaction that is open for longer."
    )
    partitioner: str | Partitioner | None = setting(
        default=None,
        about="Chooses partitions: by the hash of the key, else the sticky one (None, or murmur2_random), round_robin,"
        " or your own function(topic, key, partitions).",
    )
    partitioner_ignore_keys: bool = setting(default=False, about="Records with a key go where the others go, too.")
    partitioner_adaptive_partitioning_enable: bool = setting(
        default=True, about="Partitions with fewer waiting batches get more of the records without a key (KIP-794)."
    )
    interceptors: Sequence[Any] | None = setting(
        default=None, about="Objects with on_send(record) or on_acknowledgement(error, delivered)."
    )
    key_serializer: Serializer | None = setting(
        default=None,
        classes=JAVA_SERIALIZERS,
        about="A function from a key to bytes or None; by default keys are bytes, text or None.",
    )
    value_serializer: Serializer | None = setting(
        default=None,
        classes=JAVA_SERIALIZERS,
        about="A function from a value to bytes or None; by default values are bytes, text or None.",
    )

    audit_topic: str | None = setting(
        default=None, about="Counts of what was acknowledged go to this topic, for `moldau pipeline audit`."
    )
    audit_window_ms: int = setting(
        default=60_000, low=1_000, about="Counts are kept by windows of event time this long."
    )
    audit_interval_ms: int = setting(default=10_000, low=100, about="Counts are sent this often, and by `close`.")
    audit_headers: bool = setting(
        default=False, about="Records get the headers audit.timestamp (ms since 1970) and audit.server."
    )

    @property
    def acks_number(self) -> int:
        return {"all": -1, "-1": -1, "0": 0, "1": 1}[str(self.acks)]

    @property
    def is_idempotent(self) -> bool:
        return self.acks_number == -1 if self.enable_idempotence is None else self.enable_idempotence

    def check(self) -> None:
        super().check()
        one_of("acks", str(self.acks), ("all", "1", "0", "-1"))
        one_of("compression_type", self.compression_type, CODECS)
        if self.audit_topic == "":
            raise ConfigError("audit_topic is empty")
        if self.transactional_id == "":
            raise ConfigError("transactional_id is empty")
        if self.transactional_id is not None and not self.is_idempotent:
            raise ConfigError("transactional_id needs acks=all and enable_idempotence")
        if self.partitioner is not None and not callable(self.partitioner):
            if isinstance(self.partitioner, str) and (why := PARTITIONERS_OF_OTHERS.get(self.partitioner)):
                raise ConfigError(f"partitioner={self.partitioner!r} is librdkafka's: {why}")
            one_of("partitioner", self.partitioner, (ROUND_ROBIN, AS_JAVA))
        if self.is_idempotent and self.max_in_flight_requests_per_connection > IDEMPOTENT_IN_FLIGHT_MAX:
            raise ConfigError(
                f"max_in_flight_requests_per_connection={self.max_in_flight_requests_per_connection} needs"
                f" enable_idempotence=False: a broker remembers {IDEMPOTENT_IN_FLIGHT_MAX} batches of a producer"
            )
        if self.is_idempotent and not self.retries:
            raise ConfigError("retries=0 needs enable_idempotence=False")
        for name in ("key_serializer", "value_serializer"):
            given = getattr(self, name)
            if given is not None and not callable(given):
                raise ConfigError(f"{name}={given!r} is not a function, for example moldau.serializers.to_json")
        self._check_interceptors()
        if self.enable_idempotence and self.acks_number != -1:
            raise ConfigError("enable_idempotence=True needs acks=all")

    def _check_interceptors(self) -> None:
        given = () if self.interceptors is None else self.interceptors
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise ConfigError(f"interceptors={given!r} is not a list of objects")
        for one in given:
            if isinstance(one, type) or not (hasattr(one, "on_send") or hasattr(one, "on_acknowledgement")):
                raise ConfigError(
                    f"interceptors has {one!r}, which is not an object with on_send or on_acknowledgement, such as"
                    " a moldau.ProducerInterceptor"
                )
