"""The decoder of a topic of a load, chosen on the driver: from what the user said, the topic's table, and a sample of
what is to be loaded.
"""

from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa

from moldau.pipeline.decoding.choosing import Decoding, decoder_of
from moldau.pipeline.decoding.json_fields import Sampled
from moldau.pipeline.decoding.keys import with_keys
from moldau.pipeline.decoding.sampling import sampled
from moldau.pipeline.loading.decoding import ValueDecoder
from moldau.pipeline.ranges import OffsetRange
from moldau.pipeline.tables.columns import plain
from moldau.pipeline.tables.committing import LoadedTable


def decoder_for(
    bootstrap: str,
    topic: str,
    table: LoadedTable | None,
    ranges: Sequence[OffsetRange],
    decoding: Decoding,
    keys: Decoding,
    isolation_level: str,
) -> ValueDecoder | None:
    """The decoder of a topic, whose table may not exist yet, for these ranges; None if values and keys stay as they
    are. Raises `ConfigError`, `RegistryError` and `KafkaError`."""

    def sample(of: str) -> Iterator[Sampled]:
        return sampled(bootstrap, ranges, isolation_level, of)

    known = None if table is None else pa.schema([field.with_type(plain(field.type)) for field in table.columns])
    if keys.kind == "none":
        return decoder_of(topic, decoding, partial(sample, "value"), known)
    return with_keys(topic, decoding, keys, sample, known)
