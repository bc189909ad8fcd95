"""The rules that a topic's settings impose on every batch appended to its partitions."""

from typing import Final

from moldau.config import TopicConfig
from moldau.names import TopicPartition
from moldau.records.validation import Rules

KEEPS_CODEC: Final = "producer"
"""The value of `compression.type` that leaves batches as their producers compressed them."""
DEFAULT_LEVEL: Final = -1
"""The value of a compression level that leaves it to the codec."""


def rules_of(config: TopicConfig, tp: TopicPartition) -> Rules:
    """The rules for this partition's batches."""
    levels = {
        "gzip": config.compression_gzip_level,
        "lz4": config.compression_lz4_level,
        "zstd": config.compression_zstd_level,
    }
    level = levels.get(config.compression_type)
    return Rules(
        max_message_bytes=config.max_message_bytes,
        max_decompressed_bytes=config.max_decompressed_message_bytes,
        compacted=config.compacts,
        timestamp_type=config.message_timestamp_type,
        before_max_ms=config.message_timestamp_before_max_ms,
        after_max_ms=config.message_timestamp_after_max_ms,
        compression_type=config.compression_type,
        compression_level=None if level == DEFAULT_LEVEL and config.compression_type == "gzip" else level,
        partition=str(tp),
    )
