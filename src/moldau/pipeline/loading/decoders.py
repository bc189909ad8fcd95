"""The decoder of each topic of a load, chosen on the driver: from what the user said, the topic's table, and a sample
of what is to be loaded.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from moldau.names import TopicPartition
from moldau.pipeline.decoding.choosing import Decoding, decoder_of
from moldau.pipeline.decoding.sampling import sampled
from moldau.pipeline.decoding.topic_decoder import TopicDecoder
from moldau.pipeline.options import Subscription
from moldau.pipeline.positions import earliest, latest, subscribed
from moldau.pipeline.ranges import OffsetRange, between
from moldau.pipeline.tables.table import Table
from moldau.pipeline.tables.warehouse import Warehouse


def decoders(
    bootstrap: str, topics: Sequence[str], warehouse: Warehouse, decoding: Decoding, isolation_level: str
) -> dict[str, TopicDecoder]:
    """Decoders by topic; none for a topic that has neither records nor a table. Raises `ConfigError`, `RegistryError`
    and `KafkaError`."""
    decoding.check()
    found: dict[str, TopicDecoder] = {}
    for topic in dict.fromkeys(topics if decoding.kind != "none" else ()):
        table = Table.open(warehouse.place(topic))
        if decoding.inferred and table is None and not _new(bootstrap, topic, table, isolation_level):
            continue

        def sample(topic: str = topic, table: Table | None = table) -> Iterator[bytes]:
            return sampled(bootstrap, _new(bootstrap, topic, table, isolation_level), isolation_level)

        known = None if table is None else pa.schema([field.with_type(plain(field.type)) for field in table.columns])
        decoder = decoder_of(topic, decoding, sample, known)
        if decoder is not None:
            found[topic] = decoder
    return found


def _new(bootstrap: str, topic: str, table: Table | None, isolation_level: str) -> list[OffsetRange]:
    """What of the topic is not in its table yet."""
    partitions: list[TopicPartition] = list(subscribed(bootstrap, Subscription(topics=(topic,))))
    first, end = earliest(bootstrap, partitions), latest(bootstrap, partitions, isolation_level)
    loaded = {} if table is None else table.offsets(partitions)
    start = {tp: min(max(loaded.get(tp, 0), first[tp]), end[tp]) for tp in partitions}
    return between(start, end)


def plain(kind: pa.DataType) -> pa.DataType:
    """The type as decoders have it, of what a reader of Delta tables calls it."""
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, plain(field.type)) for field in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(plain(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(plain(kind.key_type), plain(kind.item_type))
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    return kind
